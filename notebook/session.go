package notebook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/cellard/cellard/protocol/api"
)

// Session is what Write says of a session besides its cells.
type Session struct {
	Kernel     Kernel
	ContextID  string
	Generation int
	Fetch      Fetch
}

// Write writes the session so far as a notebook of nbformat 4.5. A cell that runs is in it
// as it is now. An error leaves half of it written.
func (j *Journal) Write(ctx context.Context, w io.Writer, s Session) error {
	wr := &writer{ctx: ctx, j: j, s: s, w: w}
	var dropped int
	wr.entries, dropped = j.snapshot()
	if err := wr.findFinal(); err != nil {
		return err
	}
	if _, err := io.WriteString(w, "{\n \"cells\": ["); err != nil {
		return err
	}
	if dropped > 0 {
		if err := wr.note("dropped", fmt.Sprintf("*%d earlier cells are no longer kept.*", dropped), nil); err != nil {
			return err
		}
	}
	for i, e := range wr.entries {
		if i > 0 && e.generation != wr.entries[i-1].generation {
			err := wr.note(fmt.Sprintf("generation-%d-%d", e.generation, i), "*A new kernel runs the cells from here on: what those above had set is gone.*",
				map[string]any{"generation": e.generation})
			if err != nil {
				return err
			}
		}
		if err := wr.cell(i, e); err != nil {
			return err
		}
	}
	metadata := s.Kernel.metadata()
	metadata["cellard"] = map[string]any{"context": s.ContextID, "generation": s.Generation, "droppedCells": dropped}
	b, err := json.MarshalIndent(metadata, " ", " ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "\n ],\n \"metadata\": %s,\n \"nbformat\": 4,\n \"nbformat_minor\": 5\n}\n", b)
	return err
}

// snapshot is what there is. The events of a cell that runs are read here: its execution
// may not be there any more when the writer comes to it.
func (j *Journal) snapshot() (list []stored, dropped int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.entries {
		s := stored{entry: *e}
		if e.cell != nil {
			s.x = outcome(e.cell)
			s.running = readLog(e.cell, j.largest/2)
			s.displays = bytes.Contains(s.running, []byte(`"displayId":`))
		}
		list = append(list, s)
	}
	return list, j.dropped
}

// stored is an entry with what it had put out when the writer began, if it ran then.
type stored struct {
	entry
	running []byte
}

func (j *Journal) read(p *part, s span) ([]byte, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return p.read(s)
}

// writer is one call of Write.
type writer struct {
	ctx     context.Context
	j       *Journal
	s       Session
	w       io.Writer
	entries []stored
	final   map[display]place
	wrote   bool
}

// display is what a display id names: each kernel has its own.
type display struct {
	generation int
	id         string
}

// place is where an event lies: in which cell's events.
type place struct {
	entry     int
	off, size int
}

func (wr *writer) log(e *stored) ([]byte, error) {
	if e.cell != nil {
		return e.running, nil
	}
	return wr.j.read(e.part, e.log)
}

// findFinal looks for the last event of each display: a cell may update what an earlier one
// has shown, and the earlier one is written first.
func (wr *writer) findFinal() error {
	wr.final = map[display]place{}
	for i := range wr.entries {
		e := &wr.entries[i]
		if !e.displays {
			continue
		}
		log, err := wr.log(e)
		if err != nil {
			continue // its cell will say so
		}
		at := 0
		for line := range bytes.Lines(log) {
			if bytes.Contains(line, []byte(`"displayId":`)) {
				var ev struct{ DisplayID string }
				if json.Unmarshal(line, &ev) == nil && ev.DisplayID != "" {
					wr.final[display{e.generation, ev.DisplayID}] = place{i, at, len(line)}
				}
			}
			at += len(line)
		}
		if err := wr.ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// lastOf is a display's last event, if it is still kept.
func (wr *writer) lastOf(generation int, id string) (ev api.Event, ok bool) {
	at, ok := wr.final[display{generation, id}]
	if !ok {
		return ev, false
	}
	e := &wr.entries[at.entry]
	var line []byte
	var err error
	if e.cell != nil {
		line = e.running[at.off : at.off+at.size]
	} else {
		line, err = wr.j.read(e.part, span{e.log.off + int64(at.off), int64(at.size), e.log.spare})
	}
	return ev, err == nil && json.Unmarshal(line, &ev) == nil
}

func (wr *writer) cell(i int, e stored) error {
	code, err := wr.j.read(e.part, e.code)
	var log []byte
	if err == nil {
		log, err = wr.log(&wr.entries[i])
	}
	if err != nil { // it was pushed out since
		return wr.note("gone-"+e.id, "*A cell that is no longer kept.*", nil)
	}
	outputs := &Outputs{Fetch: wr.s.Fetch, Final: func(id string) (api.Event, bool) { return wr.lastOf(e.generation, id) }}
	for line := range bytes.Lines(log) {
		var ev api.Event
		if err := json.Unmarshal(line, &ev); err != nil {
			return err
		}
		if err := outputs.Event(wr.ctx, ev); err != nil {
			return err
		}
	}
	if e.unkept {
		outputs.written("stderr", "[what this cell put out could not be kept: the disk was full]\n")
	}
	outputs.End(e.x)
	return wr.value(map[string]any{"cell_type": "code", "id": e.id, "source": Lines(strings.ToValidUTF8(string(code), "\uFFFD")),
		"outputs": outputs.List(), "execution_count": outputs.Count(),
		"metadata": map[string]any{"execution": Times(e.x.Timing), "cellard": fate(&e)}})
}

// fate is what a notebook has no place of its own for: how the cell ended, and what is not
// all there.
func fate(e *stored) map[string]any {
	m := map[string]any{"status": e.x.Status, "state": e.x.State, "generation": e.generation, "durationMs": e.x.DurationMs}
	if e.x.Lost != nil {
		m["lost"] = e.x.Lost
	}
	if e.x.LostBytes > 0 {
		m["lostBytes"] = e.x.LostBytes
	}
	if e.x.Incomplete {
		m["incomplete"] = true
	}
	if len(e.x.Overflow) > 0 {
		m["overflow"] = e.x.Overflow
	}
	if e.codeBytes > 0 {
		m["sourceBytes"] = e.codeBytes
	}
	return m
}

// note writes a cell of the agent's own.
func (wr *writer) note(id, text string, about map[string]any) error {
	metadata := map[string]any{}
	if about != nil {
		metadata["cellard"] = about
	}
	return wr.value(map[string]any{"cell_type": "markdown", "id": id, "metadata": metadata, "source": Lines(text)})
}

func (wr *writer) value(v any) error {
	if err := wr.ctx.Err(); err != nil {
		return err
	}
	var b bytes.Buffer
	if wr.wrote {
		b.WriteByte(',')
	}
	wr.wrote = true
	b.WriteString("\n  ")
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("  ", " ")
	if err := e.Encode(v); err != nil {
		return err
	}
	b.Truncate(b.Len() - 1) // the line's end
	_, err := wr.w.Write(b.Bytes())
	return err
}
