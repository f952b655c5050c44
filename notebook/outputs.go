package notebook

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/cellard/cellard/mime"
	"github.com/cellard/cellard/protocol/api"
)

// Fetch opens what a ref stands for. ErrLeftOut, wrapped, says that the notebook is to do
// without it; any other error ends the making of the notebook.
type Fetch func(ctx context.Context, ref api.Ref) (io.ReadCloser, error)

// ErrLeftOut is what a Fetch says of a value that is not there any more, or too large.
var ErrLeftOut = errors.New("left out of the notebook")

// Outputs makes a cell's outputs of its events, as nbclient makes them of messages.
type Outputs struct {
	// Fetch gets what is not in an event itself.
	Fetch Fetch
	// Shown, if set, knows the displays of all cells: an update changes those that it names,
	// in whatever cell.
	Shown Shown
	// Final, if set, is asked for what a display came to: the event that was its last. With
	// it no Shown is needed. False: nothing but the display itself is known.
	Final func(displayID string) (api.Event, bool)

	list    []map[string]any
	count   *int
	waiting bool // a clear_output waits for the next output
	text    strings.Builder
	stream  map[string]any // the last output, where it is a stream
	failed  bool           // the kernel's own error is among them
}

// Shown are the outputs that a display id names.
type Shown map[string][]map[string]any

// List is what there is so far; never nil.
func (o *Outputs) List() []map[string]any {
	if o.list == nil {
		return []map[string]any{}
	}
	return o.list
}

// Count is the cell's execution count, or nil.
func (o *Outputs) Count() *int { return o.count }

// Event takes the next event.
func (o *Outputs) Event(ctx context.Context, ev api.Event) error {
	switch ev.K {
	case api.KindStart:
		o.count = &ev.N
	case api.KindStdout, api.KindStderr:
		o.written(string(ev.K), ev.Text)
	case api.KindGap:
		o.written("stderr", fmt.Sprintf("[%d events were lost: the cell put out too much at once]\n", ev.Missed))
	case api.KindClear:
		if o.waiting = ev.Wait; !ev.Wait {
			o.clear()
		}
	case api.KindResult:
		return o.result(ctx, ev)
	case api.KindUpdate:
		if len(o.Shown[ev.DisplayID]) == 0 {
			return nil
		}
		data, metadata, err := o.bundle(ctx, ev)
		if err != nil {
			return err
		}
		for _, out := range o.Shown[ev.DisplayID] {
			out["data"], out["metadata"] = data, metadata
		}
	case api.KindError:
		o.failure(ev.Err)
	case api.KindExecution:
		o.End(*ev.Execution)
	}
	return nil
}

// End adds what only the cell's end tells: a kernel that died has sent no error of its own,
// and the count may be another than the one at the start.
func (o *Outputs) End(x api.Execution) {
	if x.ExecutionCount > 0 {
		if o.count == nil {
			o.count = new(int)
		}
		*o.count = x.ExecutionCount // results have the same pointer
	}
	switch {
	case o.failed:
	case x.Error != nil:
		o.failure(x.Error)
	case x.Status == api.StatusLost && x.Lost != nil:
		o.failure(&api.CellError{Name: "KernelDied", Value: x.Lost.Message})
	}
}

func (o *Outputs) result(ctx context.Context, ev api.Event) error {
	last := ev
	if ev.DisplayID != "" && o.Final != nil {
		if final, ok := o.Final(ev.DisplayID); ok {
			last = final
		}
	}
	data, metadata, err := o.bundle(ctx, last)
	if err != nil {
		return err
	}
	out := map[string]any{"output_type": "display_data", "data": data, "metadata": metadata}
	if ev.Main {
		out["output_type"], out["execution_count"] = "execute_result", o.count
	}
	if ev.DisplayID != "" && o.Shown != nil {
		// A display of an id that is shown already updates what is shown.
		for _, earlier := range o.Shown[ev.DisplayID] {
			earlier["data"], earlier["metadata"] = data, metadata
		}
		o.Shown[ev.DisplayID] = append(o.Shown[ev.DisplayID], out)
	}
	o.add(out)
	return nil
}

func (o *Outputs) clear() { o.list, o.stream = nil, nil }

func (o *Outputs) add(out map[string]any) {
	if o.waiting {
		o.clear()
		o.waiting = false
	}
	o.stream = nil
	o.list = append(o.list, out)
}

func (o *Outputs) written(name, s string) {
	if s == "" {
		return
	}
	if o.stream == nil || o.stream["name"] != name || o.waiting {
		out := map[string]any{"output_type": "stream", "name": name}
		o.add(out)
		o.stream = out
		o.text.Reset()
	}
	o.text.WriteString(s)
	o.stream["text"] = Lines(o.text.String())
}

func (o *Outputs) failure(e *api.CellError) {
	o.failed = true
	lines := []string{}
	if e.Traceback != "" {
		lines = strings.Split(e.Traceback, "\n")
	}
	o.add(map[string]any{"output_type": "error", "ename": e.Name, "evalue": e.Value, "traceback": lines})
}

// bundle is a result's data as nbformat has it, with what its refs stand for. A ref that is
// left out is told in the output's metadata.
func (o *Outputs) bundle(ctx context.Context, ev api.Event) (data, metadata map[string]any, err error) {
	data, metadata = map[string]any{}, map[string]any{}
	if err := errors.Join(decodeAll(ev.Data, data), decodeAll(ev.Metadata, metadata)); err != nil {
		return nil, nil, err
	}
	left := map[string]any{}
	for _, t := range slices.Sorted(maps.Keys(ev.Refs)) {
		if t == mime.TableType {
			continue
		}
		ref := ev.Refs[t]
		v, err := o.fetch(ctx, t, ref)
		if errors.Is(err, ErrLeftOut) {
			left[t] = map[string]any{"path": ref.Path, "bytes": ref.Bytes, "sha256": ref.SHA256, "why": err.Error()}
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		data[t] = v
	}
	delete(data, mime.TableType) // the agent's own; text/html stands for it here
	if len(left) > 0 {
		metadata["cellard"] = map[string]any{"refs": left}
		if _, ok := data["text/plain"]; !ok {
			data["text/plain"] = fmt.Sprintf("[left out of the notebook: %s]", strings.Join(slices.Sorted(maps.Keys(left)), ", "))
		}
	}
	for t, v := range data {
		if s, ok := v.(string); ok && isText(t) {
			data[t] = Lines(s)
		}
	}
	return data, metadata, nil
}

func decodeAll(from map[string]json.RawMessage, into map[string]any) error {
	for k, raw := range from {
		var v any
		if err := decode(raw, &v); err != nil {
			return err
		}
		into[k] = v
	}
	return nil
}

func (o *Outputs) fetch(ctx context.Context, t string, ref api.Ref) (any, error) {
	from, err := o.Fetch(ctx, ref)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	b, err := io.ReadAll(from)
	if err != nil {
		return nil, err
	}
	switch {
	case mime.IsJSON(t):
		var v any
		err := decode(b, &v)
		return v, err
	case mime.IsBinary(t):
		return base64.StdEncoding.EncodeToString(b), nil
	}
	return string(b), nil
}

func isText(t string) bool {
	return strings.HasPrefix(t, "text/") || t == "image/svg+xml" || t == "application/javascript"
}
