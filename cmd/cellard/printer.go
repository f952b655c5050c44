package main

import (
	"cmp"
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
	"strconv"
	"strings"
	"sync"

	"github.com/cellard/cellard/internal/drawing"
	"github.com/cellard/cellard/mime"
	"github.com/cellard/cellard/protocol/api"
)

// printer shows what comes of cells.
type printer struct {
	agent    *agentCall
	out      *written
	errOut   io.Writer
	outDir   string
	graphics graphics
	quiet    bool
	tap      func(context.Context, api.Event) error // gets the events too, where it is set
	ask      bool                                   // answer input() from the terminal
	saved    int
	tty      bool // stdout is a terminal
	line     bool // stdout is in the midst of a line
	answers  answers
}

// written is stdout, with the first error of a write to it.
type written struct {
	io.Writer
	err error
}

func (o *written) Write(b []byte) (int, error) {
	n, err := o.Writer.Write(b)
	if err != nil && o.err == nil {
		o.err = err
	}
	return n, err
}

func newPrinter(c *agentCall, outDir string) *printer {
	p := &printer{agent: c, out: &written{Writer: os.Stdout}, errOut: os.Stderr, outDir: outDir}
	if p.tty = isTerminal(os.Stdout); p.tty {
		p.graphics = terminalGraphics(os.Getenv)
	}
	return p
}

// run runs a cell and shows its events. running has its id meanwhile.
func (p *printer) run(ctx context.Context, req api.RunRequest, running *current) (*api.Execution, error) {
	if p.ask {
		req.Stdin = &api.Stdin{Live: true}
	}
	s, err := p.agent.Stream(ctx, req)
	if err != nil {
		return nil, err
	}
	running.set(s.ID())
	defer running.set("")
	// A question is answered beside the events: a cell that is interrupted asks no more.
	asking, answered := context.WithCancel(ctx)
	var wait sync.WaitGroup
	defer wait.Wait()
	defer answered()
	for ev, err := range s.Events() {
		if err != nil {
			if ctx.Err() != nil {
				err = errors.New("left; the cell is interrupted")
			}
			return nil, err
		}
		if p.tap != nil {
			if err := p.tap(ctx, ev); err != nil {
				return nil, err
			}
		}
		if p.quiet {
			continue
		}
		if ev.K == api.KindInput {
			wait.Wait() // its last question was answered
			p.line = false
			wait.Add(1)
			go func() {
				defer wait.Done()
				p.input(asking, s.ID(), ev)
			}()
			continue
		}
		if err := cmp.Or(p.event(ctx, ev), p.out.err); err != nil {
			return nil, err
		}
	}
	return s.Wait()
}

func (p *printer) event(ctx context.Context, ev api.Event) error {
	switch ev.K {
	case api.KindStdout:
		if ev.Text != "" {
			p.line = !strings.HasSuffix(ev.Text, "\n")
		}
		_, _ = io.WriteString(p.out, ev.Text)
	case api.KindStderr:
		_, _ = io.WriteString(p.errOut, ev.Text)
	case api.KindProgress:
		fmt.Fprintln(p.errOut, strings.TrimSuffix(ev.Text, "\n"))
	case api.KindGap:
		fmt.Fprintf(p.errOut, "[%d events were lost: the cell put out too much at once]\n", ev.Missed)
	case api.KindResult, api.KindUpdate:
		return p.result(ctx, ev)
	}
	return nil
}

// input answers a cell that asks. Its prompt was in stdout already. What can't be answered
// is interrupted.
func (p *printer) input(ctx context.Context, id string, ev api.Event) {
	var answer string
	var err error
	if ev.Password {
		answer, err = p.answers.secret(ctx)
	} else {
		answer, err = p.answers.line(ctx)
	}
	if err == nil {
		err = p.agent.Input(ctx, id, answer)
	}
	switch {
	case err == nil, ctx.Err() != nil, errors.Is(err, &api.Error{Code: api.CodeConflict}): // it was over before the answer came
		return
	case err == io.EOF:
		fmt.Fprintln(p.errOut, "\nthe cell asks for input, and there is no more: it is interrupted")
	default:
		fmt.Fprintf(p.errOut, "\nthe cell is interrupted, for it got no answer: %s\n", shown(err.Error()))
	}
	_, _ = p.agent.InterruptExecution(ctx, id)
}

// ending says how a cell ended that was not ok.
func (p *printer) ending(command string, x *api.Execution) {
	if p.tty {
		p.endLine() // elsewhere the output stays as it is
	}
	why := ""
	if x.Lost != nil {
		// The rest of its last words was shown as it came.
		why, _, _ = strings.Cut(": "+x.Lost.Message, "\n")
	}
	if x.Error != nil && (x.Lost == nil || x.Error.Value != x.Lost.Message) {
		if x.Error.Traceback != "" {
			fmt.Fprintln(p.errOut, strings.TrimRight(x.Error.Traceback, "\n"))
		} else {
			fmt.Fprintf(p.errOut, "%s: %s\n", x.Error.Name, x.Error.Value)
		}
	}
	for _, o := range x.Overflow {
		p.agent.keep = true
		switch {
		case o.Path == "":
			fmt.Fprintf(p.errOut, "[%s had %d bytes, which could not be kept: is the disk full?]\n", o.Stream, o.Bytes)
		case o.Dropped > 0:
			fmt.Fprintf(p.errOut, "[the first %d of %d bytes of %s: %s]\n", o.Bytes-o.Dropped, o.Bytes, o.Stream, o.Path)
		default:
			fmt.Fprintf(p.errOut, "[all %d bytes of %s: %s]\n", o.Bytes, o.Stream, o.Path)
		}
	}
	if x.LostBytes > 0 {
		fmt.Fprintf(p.errOut, "[%d bytes were lost]\n", x.LostBytes)
	}
	if x.Status == api.StatusOK {
		return
	}
	fmt.Fprintf(p.errOut, "cellard %s: the cell ended as %s%s\n", command, x.Status, why)
}

func (p *printer) endLine() {
	if p.line {
		fmt.Fprintln(p.out)
		p.line = false
	}
}

// result shows one bundle by the best that there is of it: a file or an image, a table,
// text.
func (p *printer) result(ctx context.Context, ev api.Event) error {
	p.endLine()
	shown, told := false, false // by something; by a line of its own
	types := sortedKeys(ev.Data)
	only := p.outDir != "" && onlyFile(ev)
	for _, t := range types {
		b, ok := fileBytes(t, ev.Data[t], only)
		if !ok {
			continue
		}
		done, err := p.file(t, b)
		if err != nil {
			return err
		}
		shown, told = shown || done, true
	}
	for _, t := range sortedKeys(ev.Refs) {
		if t == "text/html" && !only || t == mime.TableType {
			continue // the text stands for them
		}
		done, err := p.ref(ctx, t, ev.Refs[t])
		if err != nil {
			return err
		}
		shown, told = shown || done, true
	}
	var table mime.Table
	if raw := ev.Data[mime.TableType]; raw != nil && json.Unmarshal(raw, &table) == nil {
		fmt.Fprint(p.out, drawing.Table(table, terminalWidth()))
		return nil
	}
	var text string
	switch {
	case shown:
	case json.Unmarshal(ev.Data["text/plain"], &text) == nil:
		fmt.Fprintln(p.out, text)
	case len(types) > 0 && !told:
		fmt.Fprintf(p.out, "[%s]\n", strings.Join(types, ", "))
	}
	return nil
}

// onlyFile tells of a bundle that it has one form besides the text, as that of a file has
// whose path the text is. One of several forms is worth no file of its own.
func onlyFile(ev api.Event) bool {
	forms := 0
	for _, t := range append(sortedKeys(ev.Data), sortedKeys(ev.Refs)...) {
		if t != "text/plain" {
			forms++
		}
		if t == mime.TableType {
			return false
		}
	}
	return forms == 1
}

// fileBytes decodes what is worth a file: images and PDF, and all but text/plain where the
// bundle stands for a file.
func fileBytes(mimeType string, raw json.RawMessage, all bool) ([]byte, bool) {
	if !strings.HasPrefix(mimeType, "image/") && mimeType != "application/pdf" && (!all || mimeType == "text/plain") {
		return nil, false
	}
	if mime.IsJSON(mimeType) {
		return raw, true
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return nil, false
	}
	if !mime.IsBinary(mimeType) {
		return []byte(text), true
	}
	b, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	return b, err == nil
}

// file saves or shows bytes. It reports whether they stand for the whole bundle.
func (p *printer) file(mimeType string, b []byte) (bool, error) {
	if p.outDir != "" {
		name, err := p.create(mimeType)
		if err != nil {
			return false, err
		}
		if err := os.WriteFile(name, b, 0o644); err != nil {
			return false, err
		}
		fmt.Fprintf(p.out, "[%s, %d bytes: %s]\n", mimeType, len(b), name)
		return true, nil
	}
	if p.graphics != nil && p.graphics(p.out, mimeType, b) {
		return true, nil
	}
	fmt.Fprintf(p.out, "[%s, %d bytes; --out-dir saves it]\n", mimeType, len(b))
	return false, nil
}

// maxShown bounds an image that is fetched only to be shown.
const maxShown = 32 << 20

func (p *printer) ref(ctx context.Context, mimeType string, ref api.Ref) (bool, error) {
	image := strings.HasPrefix(mimeType, "image/") && ref.Bytes <= maxShown && p.graphics != nil
	if p.outDir == "" && !image {
		p.agent.keep = true
		fmt.Fprintf(p.out, "[%s, %d bytes: %s]\n", mimeType, ref.Bytes, ref.Path)
		return false, nil
	}
	// <workspace>/.runtime/interpreter/<context>/out/<file>
	contextID := path.Base(path.Dir(path.Dir(ref.Path)))
	from, err := p.agent.Result(ctx, contextID, ref)
	if err != nil {
		return false, err
	}
	defer from.Close()
	if p.outDir == "" {
		b, err := io.ReadAll(from)
		if err != nil {
			return false, err
		}
		return p.file(mimeType, b)
	}
	name, err := p.create(mimeType)
	if err != nil {
		return false, err
	}
	to, err := os.Create(name)
	if err != nil {
		return false, err
	}
	defer to.Close()
	if _, err := io.Copy(to, from); err != nil {
		return false, err
	}
	fmt.Fprintf(p.out, "[%s, %d bytes: %s]\n", mimeType, ref.Bytes, name)
	return true, to.Close()
}

// create names the next file of --out-dir. No name that comes from the guest is taken.
func (p *printer) create(mimeType string) (string, error) {
	if err := os.MkdirAll(p.outDir, 0o755); err != nil {
		return "", err
	}
	for {
		p.saved++
		name := filepath.Join(p.outDir, strconv.Itoa(p.saved)+mime.Extension(mimeType))
		if _, err := os.Lstat(name); errors.Is(err, os.ErrNotExist) {
			return name, nil
		}
	}
}

func sortedKeys[V any](m map[string]V) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
