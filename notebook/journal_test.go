package notebook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cellard/cellard/protocol/api"
)

// script is an execution's log.
type script struct{ lines [][]byte }

func (s *script) Next(context.Context) ([]byte, error) {
	if len(s.lines) == 0 {
		return nil, io.EOF
	}
	first := s.lines[0]
	s.lines = s.lines[1:]
	return first, nil
}

// cellOf is a cell with these events, and the whole Execution last as each log has it.
func cellOf(id string, generation int, code string, x api.Execution, events ...api.Event) Cell {
	var lines [][]byte
	seq := int64(0)
	x.ID = id
	for _, ev := range append(events, api.Event{K: api.KindExecution, Execution: &x}) {
		seq++
		ev.Seq = seq
		line, err := api.Marshal(ev)
		if err != nil {
			panic(err)
		}
		lines = append(lines, append(line, '\n'))
	}
	return Cell{ID: id, Generation: generation, Code: code, Outcome: func() api.Execution { return x },
		Events: func() Events { return &script{slices.Clone(lines)} }, LastSeq: func() int64 { return seq }}
}

func newJournal(t *testing.T, o JournalOptions) *Journal {
	dir := t.TempDir()
	o.Temp = func() (*os.File, error) {
		f, err := os.CreateTemp(dir, "")
		if err == nil {
			err = os.Remove(f.Name())
		}
		return f, err
	}
	j := NewJournal(o)
	t.Cleanup(j.Close)
	return j
}

// written is a notebook, decoded.
type written struct {
	Cells []struct {
		CellType       string `json:"cell_type"`
		ID             string
		Source         json.RawMessage
		ExecutionCount *int `json:"execution_count"`
		Outputs        []map[string]any
		Metadata       struct {
			Execution map[string]string
			Cellard   map[string]any
		}
	}
	Metadata struct {
		Cellard struct {
			Generation, DroppedCells int
		}
	}
	Nbformat int
	Minor    int `json:"nbformat_minor"`
}

func write(t *testing.T, j *Journal, s Session) written {
	t.Helper()
	var b bytes.Buffer
	if err := j.Write(context.Background(), &b, s); err != nil {
		t.Fatal(err)
	}
	var nb written
	if err := json.Unmarshal(b.Bytes(), &nb); err != nil || nb.Nbformat != 4 || nb.Minor != 5 {
		t.Fatalf("%v: %.500s", err, b.Bytes())
	}
	seen := map[string]bool{}
	for _, c := range nb.Cells {
		if seen[c.ID] || c.ID == "" || len(c.ID) > 64 {
			t.Errorf("cell id %q", c.ID)
		}
		seen[c.ID] = true
	}
	return nb
}

func ok(n int) api.Execution {
	return api.Execution{Status: api.StatusOK, State: api.StateKept, ExecutionCount: n}
}

func text1(s string) map[string]json.RawMessage {
	b, _ := json.Marshal(s)
	return map[string]json.RawMessage{"text/plain": b}
}

// An update changes what an earlier cell has shown, in its own kernel alone.
func TestDisplays(t *testing.T) {
	for _, memory := range []int{1 << 20, 1} {
		j := newJournal(t, JournalOptions{Memory: memory})
		show := func(s string) api.Event {
			return api.Event{K: api.KindResult, DisplayID: "d", Data: text1(s)}
		}
		for i, c := range []Cell{
			cellOf("a", 1, "show", ok(1), show("one")),
			cellOf("b", 1, "update", ok(2), api.Event{K: api.KindUpdate, DisplayID: "d", Data: text1("two")}),
			cellOf("c", 2, "show again", ok(1), show("other")),
		} {
			j.Begin(c)
			if i < 2 {
				j.End(c.ID)
			} // the last one runs
		}
		nb := write(t, j, Session{Generation: 2})
		var got []string
		for _, c := range nb.Cells {
			got = append(got, fmt.Sprintf("%s %s %v", c.CellType, c.ID, c.Outputs))
		}
		want := []string{
			"code a [map[data:map[text/plain:[two]] metadata:map[] output_type:display_data]]", "code b []",
			"markdown generation-2-2 []",
			"code c [map[data:map[text/plain:[other]] metadata:map[] output_type:display_data]]"}
		if !slices.Equal(got, want) {
			t.Errorf("memory %d: %q", memory, got)
		}
	}
}

// What is kept is bounded, the oldest goes, and the notebook says so.
func TestBounds(t *testing.T) {
	j := newJournal(t, JournalOptions{Bytes: 64 << 10, Memory: 1 << 10, Cells: 1000})
	long := strings.Repeat("x", 3000)
	for i := range 100 {
		c := cellOf(fmt.Sprintf("c%d", i), 1, long, ok(i+1), api.Event{K: api.KindStart, N: i + 1}, api.Event{K: api.KindStdout, Text: long})
		j.Begin(c)
		j.End(c.ID)
	}
	nb := write(t, j, Session{Generation: 1})
	kept := len(nb.Cells) - 1 // and one that tells of the rest
	if kept < 3 || kept > 10 || nb.Metadata.Cellard.DroppedCells != 100-kept || nb.Cells[0].CellType != "markdown" ||
		nb.Cells[kept].ID != "c99" || *nb.Cells[kept].ExecutionCount != 100 {
		t.Errorf("%d kept, %+v", kept, nb.Metadata)
	}

	// One cell alone can't have it all.
	huge := strings.Repeat("y\n", 50_000)
	c := cellOf("huge", 1, huge, ok(1), api.Event{K: api.KindStdout, Text: long}, api.Event{K: api.KindStdout, Text: huge}, api.Event{K: api.KindStdout, Text: "last"})
	j.Begin(c)
	j.End("huge")
	nb = write(t, j, Session{Generation: 1})
	last := nb.Cells[len(nb.Cells)-1]
	if last.Metadata.Cellard["sourceBytes"] != 100_000.0 || len(last.Source) > 64<<10 {
		t.Errorf("its source: %d bytes, %v", len(last.Source), last.Metadata.Cellard)
	}
	if len(last.Outputs) != 2 || !strings.Contains(fmt.Sprint(last.Outputs[1]), "[3 events were lost") {
		t.Errorf("its outputs: %.300v", last.Outputs)
	}

	j = newJournal(t, JournalOptions{Cells: 10})
	for i := range 100 {
		c := cellOf(fmt.Sprintf("c%d", i), 1, "", ok(1))
		j.Begin(c)
		j.End(c.ID)
	}
	if nb := write(t, j, Session{}); len(nb.Cells) > 11 || nb.Metadata.Cellard.DroppedCells < 90 {
		t.Errorf("%d cells", len(nb.Cells))
	}
}

// A journal without room on the disk keeps what its memory takes, and of each other cell
// that it ran, and what is missing.
func TestNoRoom(t *testing.T) {
	for name, temp := range map[string]func() (*os.File, error){
		"no file":   func() (*os.File, error) { return nil, errors.New("no room") },
		"full disk": func() (*os.File, error) { return os.OpenFile("/dev/full", os.O_RDWR, 0) },
	} {
		j := NewJournal(JournalOptions{Memory: 400, Temp: temp})
		said := func(s string) api.Event { return api.Event{K: api.KindStdout, Text: s} }
		for i, c := range []Cell{
			cellOf("memory", 1, strings.Repeat("m", 300), ok(1), said("one")),
			cellOf("spare", 1, strings.Repeat("s", 200), ok(2), said("two"), api.Event{K: api.KindResult, Data: text1("2"), DisplayID: "d"}),
			cellOf("output", 1, "small", ok(3), said(strings.Repeat("o", 500))),
			cellOf("code", 1, strings.Repeat("c", 500), ok(4), said("f")),
		} {
			j.Begin(c)
			j.End(c.ID)
			if got := len(j.entries); got != i+1 {
				t.Errorf("%s: %d entries", name, got)
			}
		}
		nb := write(t, j, Session{Generation: 1})
		var got []string
		for _, c := range nb.Cells {
			var source []string
			if err := json.Unmarshal(c.Source, &source); err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprint(c.ID, " ", len(strings.Join(source, "")), " ", *c.ExecutionCount, " ", c.Metadata.Cellard["sourceBytes"], " ", len(c.Outputs)))
		}
		want := "memory 300 1 <nil> 1, spare 200 2 <nil> 2, output 5 3 <nil> 1, code 0 4 500 1"
		if s := strings.Join(got, ", "); s != want || nb.Metadata.Cellard.DroppedCells != 0 {
			t.Errorf("%s: %s\n%v", name, s, nb.Cells)
		}
		if o := fmt.Sprint(nb.Cells[2].Outputs); !strings.Contains(o, "the disk was full") {
			t.Errorf("%s: %s", name, o)
		}
		j.Close()
	}
}

// How a cell ended is told, also where no error was raised.
func TestFates(t *testing.T) {
	j := newJournal(t, JournalOptions{})
	signal := "SIGKILL"
	for _, c := range []Cell{
		cellOf("lost", 1, "die", api.Execution{Status: api.StatusLost, State: api.StateLost, LostBytes: 7, Incomplete: true,
			Lost: &api.Lost{Reason: api.LostSignal, Signal: &signal, Message: "ended by SIGKILL"}}),
		cellOf("late", 2, "loop", api.Execution{Status: api.StatusTimeout, State: api.StateKept},
			api.Event{K: api.KindError, Err: &api.CellError{Name: "KeyboardInterrupt", Traceback: "a\nb"}}),
	} {
		j.Begin(c)
		j.End(c.ID)
	}
	nb := write(t, j, Session{})
	if o := fmt.Sprint(nb.Cells[0].Outputs); o != "[map[ename:KernelDied evalue:ended by SIGKILL output_type:error traceback:[]]]" {
		t.Error(o)
	}
	if m := nb.Cells[0].Metadata.Cellard; m["status"] != "lost" || m["lostBytes"] != 7.0 || m["incomplete"] != true || fmt.Sprint(m["lost"]) == "" {
		t.Error(m)
	}
	if o := fmt.Sprint(nb.Cells[2].Outputs); o != "[map[ename:KeyboardInterrupt evalue: output_type:error traceback:[a b]]]" || nb.Cells[2].Metadata.Cellard["status"] != "timeout" {
		t.Error(o)
	}
}

// A ref is read back, or told.
func TestRefs(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "there"), []byte("\x00\x01"), 0o600); err != nil {
		t.Fatal(err)
	}
	j := newJournal(t, JournalOptions{})
	j.Begin(cellOf("a", 1, "", ok(1), api.Event{K: api.KindResult, Refs: map[string]api.Ref{
		"image/png": {Path: "there"}, "text/html": {Path: "gone", Bytes: 9}, "application/vnd.runtime.table+json": {Path: "gone"}}}))
	j.End("a")
	nb := write(t, j, Session{Fetch: func(_ context.Context, ref api.Ref) (io.ReadCloser, error) {
		f, err := os.Open(filepath.Join(dir, ref.Path))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrLeftOut, err)
		}
		return f, nil
	}})
	out := nb.Cells[0].Outputs[0]
	data := out["data"].(map[string]any)
	if data["image/png"] != "AAE=" || len(data) != 2 || !strings.Contains(fmt.Sprint(data["text/plain"]), "left out of the notebook: text/html") ||
		!strings.Contains(fmt.Sprint(out["metadata"]), "bytes:9 path:gone") {
		t.Errorf("%v", out)
	}
}

func TestLanguageInfo(t *testing.T) {
	for raw, want := range map[string]string{
		``:                           `{"name":"given"}`,
		`[]`:                         `{"name":"given"}`,
		`{"name":1,"version":"2"}`:   `{"name":"given","version":"2"}`,
		`{"name":"a","mimetype":{}}`: `{"name":"a"}`,
		`{"name":"a","codemirror_mode":{"name":"ipython","version":3},"file_extension":".py"}`: `{"codemirror_mode":{"name":"ipython","version":3},"file_extension":".py","name":"a"}`,
		`{"name":"a","codemirror_mode":[]}`:                                                    `{"name":"a"}`,
		`{"name":"` + strings.Repeat("x", 20_000) + `"}`:                                       `{"name":"given"}`,
	} {
		if got := string(LanguageInfo(json.RawMessage(raw), "given")); got != want {
			t.Errorf("%.80s: %s", raw, got)
		}
	}
}

func TestLines(t *testing.T) {
	for text, want := range map[string]string{"": `[]`, "a": `["a"]`, "a\nb\n": `["a\n","b\n"]`, "\n\n<b>": `["\n","\n","<b>"]`} {
		if b, err := marshal(Lines(text)); err != nil || string(b) != want {
			t.Errorf("%q: %s, %v", text, b, err)
		}
	}
	many := strings.Repeat("\n", maxLines+1)
	var s string
	if b, err := marshal(Lines(many)); err != nil || json.Unmarshal(b, &s) != nil || s != many {
		t.Errorf("%v %.100s", err, b)
	}
}
