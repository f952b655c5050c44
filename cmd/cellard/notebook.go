package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cellard/cellard/mime"
	"github.com/cellard/cellard/protocol/api"
)

// maxNotebook bounds a notebook's file in bytes.
const maxNotebook = 256 << 20

// notebook is a Jupyter notebook of nbformat 4. What is not looked at here is kept as it
// is: the whole is a JSON value.
type notebook struct {
	file  string
	root  map[string]any
	cells []map[string]any
	// shown are the outputs that a display id names, in whatever cell.
	shown map[string][]map[string]any
}

func readNotebook(file string) (*notebook, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxNotebook+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxNotebook {
		return nil, fmt.Errorf("%s has over %d bytes; clear its outputs", file, maxNotebook)
	}
	nb := &notebook{file: file, shown: map[string][]map[string]any{}}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber() // a number is written as it was
	if err := d.Decode(&nb.root); err != nil {
		return nil, fmt.Errorf("%s is no notebook: %w", file, err)
	}
	if v, ok := nb.root["nbformat"].(json.Number); !ok || v != "4" {
		return nil, fmt.Errorf("%s is no notebook of nbformat 4; jupyter nbconvert --to notebook makes one of an older one", file)
	}
	all, _ := nb.root["cells"].([]any)
	for _, c := range all {
		cell, ok := c.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s: a cell is no object", file)
		}
		nb.cells = append(nb.cells, cell)
	}
	return nb, nil
}

// language is the one that the notebook's kernelspec stands for.
func (nb *notebook) language() string {
	name := text(at(nb.root, "metadata", "kernelspec", "name"))
	switch lang := strings.ToLower(text(at(nb.root, "metadata", "kernelspec", "language"))); {
	case name == "python3" || lang == "python":
		return "python"
	case name == "ir":
		return "r"
	case name != "":
		return strings.ToLower(name)
	}
	if lang := strings.ToLower(text(at(nb.root, "metadata", "language_info", "name"))); lang != "" {
		return lang
	}
	return "python"
}

func at(v any, keys ...string) any {
	for _, k := range keys {
		m, _ := v.(map[string]any)
		v = m[k]
	}
	return v
}

func text(v any) string { s, _ := v.(string); return s }

// joined is a text that nbformat may hold as a list of lines.
func joined(v any) string {
	if l, ok := v.([]any); ok {
		var b strings.Builder
		for _, s := range l {
			b.WriteString(text(s))
		}
		return b.String()
	}
	return text(v)
}

// split is a text as nbformat writes it: a list of lines with their ends.
func split(s string) []any {
	lines := []any{}
	for l := range strings.Lines(s) {
		lines = append(lines, l)
	}
	return lines
}

func hasTag(cell map[string]any, tag string) bool {
	tags, _ := at(cell, "metadata", "tags").([]any)
	return slices.Contains(tags, any(tag))
}

// save replaces the file as a whole: who reads it meanwhile sees no half of it.
func (nb *notebook) save(file string) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ") // as nbformat writes it
	if err := e.Encode(nb.root); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".cellard-*.ipynb")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	mode := os.FileMode(0o644)
	if fi, err := os.Stat(file); err == nil {
		mode = fi.Mode().Perm()
	}
	_, err = f.Write(b.Bytes())
	err = errors.Join(err, f.Chmod(mode), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}

// runNotebook runs a notebook's cells as nbclient does, and saves it after each.
func (f *runFlags) runNotebook(ctx context.Context, p *printer, running *current) (int, error) {
	nb := f.notebook
	p.quiet = true // what comes goes into the notebook
	n := 0
	for i, cell := range nb.cells {
		code := joined(cell["source"])
		if cell["cell_type"] != "code" || strings.TrimSpace(code) == "" || hasTag(cell, "skip-execution") {
			continue
		}
		n++
		req := f.req
		req.Code = code
		sink := &cellOutputs{nb: nb, cell: cell, agent: p.agent}
		sink.clear()
		cell["execution_count"] = nil
		p.tap = sink.event
		x, err := p.run(ctx, req, running)
		if err == nil {
			err = nb.save(f.notebookOut)
		} else {
			err = errors.Join(err, nb.save(f.notebookOut))
		}
		if err != nil {
			return exitAgent, err
		}
		allowed := x.Status == api.StatusError && x.State == api.StateKept && (f.allowErrors || hasTag(cell, "raises-exception"))
		if x.Status != api.StatusOK && !allowed {
			fmt.Fprintf(os.Stderr, "cell %d of %s:\n", i+1, nb.file)
			p.ending("run", x)
			return exitOf(x.Status), nil
		}
	}
	if n == 0 {
		return exitOK, nb.save(f.notebookOut)
	}
	return exitOK, nil
}

// cellOutputs makes a cell's outputs of events.
type cellOutputs struct {
	nb      *notebook
	cell    map[string]any
	agent   *agentCall
	outputs []any
	waiting bool // a clear_output waits for the next output
	text    strings.Builder
	stream  map[string]any // the last output, where it is a stream
	failed  bool           // the kernel's own error is among them
}

func (o *cellOutputs) clear() {
	o.outputs, o.stream = []any{}, nil
	o.cell["outputs"] = o.outputs
}

func (o *cellOutputs) add(out map[string]any) {
	if o.waiting {
		o.clear()
		o.waiting = false
	}
	o.stream = nil
	o.outputs = append(o.outputs, out)
	o.cell["outputs"] = o.outputs
}

func (o *cellOutputs) event(ctx context.Context, ev api.Event) error {
	switch ev.K {
	case api.KindStart:
		o.cell["execution_count"] = ev.N
	case api.KindStdout, api.KindStderr:
		o.written(string(ev.K), ev.Text)
	case api.KindGap:
		o.written("stderr", fmt.Sprintf("[%d events were lost: the cell put out too much at once]\n", ev.Missed))
	case api.KindClear:
		if o.waiting = ev.Wait; !ev.Wait {
			o.clear()
		}
	case api.KindResult:
		data, err := o.bundle(ctx, ev)
		if err != nil {
			return err
		}
		out := map[string]any{"output_type": "display_data", "data": data, "metadata": map[string]any{}}
		if ev.Main {
			out["output_type"], out["execution_count"] = "execute_result", o.cell["execution_count"]
		}
		if ev.DisplayID != "" {
			// A display of an id that is shown already updates what is shown.
			for _, earlier := range o.nb.shown[ev.DisplayID] {
				earlier["data"] = data
			}
			o.nb.shown[ev.DisplayID] = append(o.nb.shown[ev.DisplayID], out)
		}
		o.add(out)
	case api.KindUpdate:
		data, err := o.bundle(ctx, ev)
		if err != nil {
			return err
		}
		for _, out := range o.nb.shown[ev.DisplayID] {
			out["data"] = data
		}
	case api.KindError:
		o.failure(ev.Err)
	case api.KindExecution:
		// A kernel that died has sent no error of its own.
		if x := ev.Execution; x.Error != nil && !o.failed {
			o.failure(x.Error)
		}
	}
	return nil
}

func (o *cellOutputs) written(name, s string) {
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
	o.stream["text"] = split(o.text.String())
}

func (o *cellOutputs) failure(e *api.CellError) {
	o.failed = true
	lines := []any{}
	if e.Traceback != "" {
		for _, l := range strings.Split(e.Traceback, "\n") {
			lines = append(lines, l)
		}
	}
	o.add(map[string]any{"output_type": "error", "ename": e.Name, "evalue": e.Value, "traceback": lines})
}

// bundle is a result's data as nbformat has it, with what its refs stand for.
func (o *cellOutputs) bundle(ctx context.Context, ev api.Event) (map[string]any, error) {
	data := map[string]any{}
	for t, raw := range ev.Data {
		var v any
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			return nil, err
		}
		data[t] = v
	}
	for t, ref := range ev.Refs {
		if t == mime.TableType {
			continue
		}
		from, err := o.agent.Result(ctx, path.Base(path.Dir(path.Dir(ref.Path))), ref)
		if err != nil {
			return nil, err
		}
		b, err := io.ReadAll(from)
		from.Close()
		if err != nil {
			return nil, err
		}
		switch {
		case isJSON(t):
			var v any
			d := json.NewDecoder(bytes.NewReader(b))
			d.UseNumber()
			if err := d.Decode(&v); err != nil {
				return nil, err
			}
			data[t] = v
		case isText(t):
			data[t] = string(b)
		default:
			data[t] = base64.StdEncoding.EncodeToString(b)
		}
	}
	delete(data, mime.TableType) // the agent's own; text/html stands for it here
	for t, v := range data {
		if s, ok := v.(string); ok && isText(t) {
			data[t] = split(s)
		}
	}
	return data, nil
}

func isJSON(t string) bool { return t == "application/json" || strings.HasSuffix(t, "+json") }

func isText(t string) bool {
	return strings.HasPrefix(t, "text/") || t == "image/svg+xml" || t == "application/javascript"
}
