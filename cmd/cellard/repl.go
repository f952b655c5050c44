package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/peterh/liner"
	"golang.org/x/sys/unix"

	"github.com/cellard/cellard/client"
	"github.com/cellard/cellard/internal/drawing"
	"github.com/cellard/cellard/protocol/api"
)

const replHelp = `
cellard repl is a conversation with a kernel: line editing, history, completion by Tab, and
as many lines as the kernel says that a cell has. Without --agent it has an agent of its
own. Ctrl-C interrupts a cell, or drops what is typed; Ctrl-D leaves.

Where what is typed comes from a file or a pipe, it stops at the first cell that is not ok,
as cellard run does, and exits with the same codes (cellard run --help).

Usage: cellard repl [flags]

  NAME? or ?NAME     what the kernel knows of NAME
  :restart           a new kernel
  :contexts          the agent's contexts
  :help  :quit       also exit and quit`

// questionTime bounds a question to the kernel while the user waits to type on.
const questionTime = 5 * time.Second

// repl is a conversation.
type repl struct {
	agent    *agentCall
	printer  *printer
	lines    *liner.State
	req      api.RunRequest
	context  string // its id
	running  *current
	before   string // the lines of the cell so far
	terminal bool
}

// runRepl is cellard repl.
func runRepl(args []string) int {
	fs := newFlags("repl")
	call := newCallFlags(fs, true)
	r := &repl{terminal: stdinTerminal()}
	var outDir string
	fs.StringVar(&r.req.Language, "language", "", "`NAME` of a language or of an installed kernelspec (default python)")
	fs.StringVar(&r.req.Context, "context", "", "`ID` of the context of --agent to be in (default: the language's own)")
	fs.StringVar(&outDir, "out-dir", "", "`DIR` to save images and files in that cells show, and what is large")
	if code, ok := parse(fs, args, replHelp); !ok {
		return code
	}
	r.req.TimeoutMs = milliseconds(0)
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	var err error
	if r.agent, err = call.open(ctx); err != nil {
		return fail("repl", err)
	}
	defer r.agent.Close()
	r.running = watchSignals(ctx, r.agent, leave)
	if err := r.agent.ready(ctx, r.req.Context, r.req.Language); err != nil {
		return fail("repl", err)
	}
	r.printer = newPrinter(r.agent, outDir)
	r.printer.ask = true
	c, err := r.enter(ctx)
	if err != nil {
		return fail("repl", err)
	}
	r.context = c.ID
	if r.terminal {
		fmt.Printf("%s %s, context %s; :help tells more\n", drawing.Text(c.Kernel.Name), drawing.Text(c.Kernel.Version), c.ID)
	}
	return r.running.code(r.loop(ctx))
}

// enter finds the context that was asked for, or has it made.
func (r *repl) enter(ctx context.Context) (api.Context, error) {
	c, err := r.agent.Context(ctx, cmp.Or(r.req.Context, r.req.Language, "python"))
	if err == nil && (r.req.Language == "" || r.req.Language == c.Language) {
		return c, nil
	}
	if err != nil && r.req.Context == "" {
		name := cmp.Or(r.req.Language, "python")
		c, err = r.agent.CreateContext(ctx, api.ContextRequest{ID: name, Language: name})
		if !errors.Is(err, &api.Error{Code: api.CodeInvalidRequest}) && !errors.Is(err, &api.Error{Code: api.CodeConflict}) {
			return c, err
		}
	}
	// A cell of nothing is refused by what is wrong, or tells the context that goes with a
	// name that is no id.
	hello := r.req
	hello.Code = ""
	x, err := r.agent.Run(ctx, hello)
	if err != nil {
		return c, err
	}
	return r.agent.Context(ctx, x.ContextID)
}

// next is the count of the next cell, whoever ran the last one, and on whichever kernel.
func (r *repl) next(ctx context.Context) int {
	q, cancel := context.WithTimeout(ctx, questionTime)
	defer cancel()
	c, err := r.agent.Context(q, r.context)
	if err != nil || c.State == api.ContextDead || c.State == api.ContextStarting {
		return 1
	}
	return c.ExecutionCount + 1
}

func (r *repl) loop(ctx context.Context) int {
	// The editor's mode of the terminal would hold while cells run: no Ctrl-C, no echo.
	stdin := int(os.Stdin.Fd())
	cooked, cookedErr := unix.IoctlGetTermios(stdin, unix.TCGETS)
	r.lines = liner.NewLiner()
	defer r.lines.Close()
	raw, rawErr := unix.IoctlGetTermios(stdin, unix.TCGETS)
	mode := func(m *unix.Termios) {
		if cookedErr == nil && rawErr == nil {
			_ = unix.IoctlSetTermios(stdin, unix.TCSETS, m)
		}
	}
	if rawErr == nil {
		// The editor takes Ctrl-C only once its prompt stands there; before, it would be the
		// signal to leave.
		raw.Lflag &^= unix.ISIG
	}
	r.lines.SetCtrlCAborts(true)
	r.lines.SetMultiLineMode(true)
	r.lines.SetTabCompletionStyle(liner.TabPrints)
	r.lines.SetWordCompleter(func(line string, pos int) (string, []string, string) { return r.complete(ctx, line, pos) })
	defer r.history()()
	for ctx.Err() == nil {
		mode(raw) // also while the agent is asked: what is typed meanwhile is the editor's
		n := 0
		if r.terminal {
			n = r.next(ctx)
		}
		code, err := r.readUnlessLeft(ctx, n)
		if errors.Is(err, liner.ErrPromptAborted) || err == nil && strings.TrimSpace(code) == "" {
			continue
		}
		mode(cooked)
		switch {
		case ctx.Err() != nil:
			if r.terminal {
				fmt.Println()
			}
			return exitInterrupted
		case errors.Is(err, io.EOF):
			if r.terminal {
				fmt.Println()
			}
			return exitOK
		case err != nil:
			return fail("repl", err)
		}
		if r.terminal {
			r.lines.AppendHistory(strings.TrimRight(code, "\n"))
		}
		if isExit(code) {
			return exitOK
		}
		if isCommand(code) {
			if code := r.command(ctx, code); code != exitOK && !r.terminal {
				return code
			}
			continue
		}
		req := r.req
		req.Code = code
		x, err := r.printer.run(ctx, req, r.running)
		if err != nil {
			if code := fail("repl", err); ctx.Err() != nil || !r.terminal || !refused(err) {
				return code
			}
			continue
		}
		r.printer.ending("repl", x)
		if x.Status != api.StatusOK && !r.terminal {
			return exitOf(x.Status)
		}
	}
	return exitInterrupted
}

// refused tells that the agent is there, and only didn't want that.
func refused(err error) bool {
	var e *api.Error
	return errors.As(err, &e)
}

// readUnlessLeft is read that a signal ends: the editor would wait for a key. What it still
// reads is nobody's.
func (r *repl) readUnlessLeft(ctx context.Context, n int) (string, error) {
	type cell struct {
		code string
		err  error
	}
	read := make(chan cell, 1)
	go func() {
		code, err := r.read(ctx, n)
		read <- cell{code, err}
	}()
	select {
	case c := <-read:
		return c.code, c.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// read reads a cell: lines until the kernel says that it is whole. Of what it can't tell
// an empty line is the end.
func (r *repl) read(ctx context.Context, n int) (string, error) {
	r.before = ""
	prompt, indent := fmt.Sprintf("[%d]> ", n), ""
	for {
		line, err := r.lines.PromptWithSuggestion(r.prompt(prompt), indent, -1)
		if err != nil {
			if errors.Is(err, io.EOF) && r.before != "" {
				return r.before, nil
			}
			return "", err
		}
		if r.before == "" && isCommand(line) {
			return line, nil
		}
		r.before += line + "\n"
		if strings.TrimSpace(r.before) == "" {
			return "", nil
		}
		q, cancel := context.WithTimeout(ctx, questionTime)
		whole, err := r.agent.IsComplete(q, r.context, r.before)
		cancel()
		if err != nil {
			whole = client.Completeness{Status: "unknown"}
		}
		if whole.Status != "incomplete" {
			return r.before, nil
		}
		prompt, indent = strings.Repeat(".", len(prompt)-2)+"> ", whole.Indent
		if !r.terminal {
			indent = ""
		}
	}
}

// prompt is empty where nobody reads it.
func (r *repl) prompt(s string) string {
	if !r.terminal {
		return ""
	}
	return s
}

// isCommand tells of a line that is no code of a cell.
func isCommand(line string) bool {
	line = strings.TrimSpace(line)
	if strings.Contains(line, "\n") {
		return false
	}
	return isExit(line) || strings.HasPrefix(line, ":") || strings.HasPrefix(line, "?") || strings.HasSuffix(line, "?") && !strings.ContainsAny(line, " \"'`")
}

// isExit tells what people type to leave, in whatever language; the kernel would go on.
func isExit(line string) bool {
	return slices.Contains([]string{"exit", "quit", "exit()", "quit()", ":quit", ":q", ":exit"}, strings.TrimSpace(line))
}

// command does what is no cell, and returns what the command's exit code would be.
func (r *repl) command(ctx context.Context, line string) int {
	line = strings.TrimSpace(line)
	switch {
	case line == ":help", line == "?":
		fmt.Println(strings.TrimSpace(replHelp))
	case line == ":restart":
		x, err := r.agent.Restart(ctx, r.context)
		if err != nil {
			return fail("repl", err)
		}
		fmt.Printf("a new kernel, generation %d\n", x.Generation)
	case line == ":contexts":
		return listContexts(ctx, r.agent, false)
	case strings.HasPrefix(line, ":"):
		fmt.Fprintf(os.Stderr, "there is no %s; :help tells what there is\n", shown(line))
		return exitUsage
	default:
		return r.inspect(ctx, strings.Trim(line, "? "))
	}
	return exitOK
}

func (r *repl) inspect(ctx context.Context, name string) int {
	q, cancel := context.WithTimeout(ctx, questionTime)
	defer cancel()
	x, err := r.agent.Inspect(q, r.context, api.CompleteRequest{Code: name})
	var text string
	if err != nil {
		return fail("repl", err)
	}
	if !x.Found || json.Unmarshal(x.Data["text/plain"], &text) != nil {
		fmt.Printf("nothing is known of %s\n", name)
	} else {
		fmt.Println(strings.TrimRight(text, "\n"))
	}
	return exitOK
}

// complete asks the kernel how the line could go on; pos counts runes.
func (r *repl) complete(ctx context.Context, line string, pos int) (head string, words []string, tail string) {
	runes := []rune(line)
	if pos > len(runes) {
		pos = len(runes)
	}
	if strings.TrimSpace(string(runes[:pos])) == "" {
		return string(runes[:pos]), []string{"    "}, string(runes[pos:]) // Tab indents
	}
	offset := utf8.RuneCountInString(r.before)
	cursor := offset + pos
	q, cancel := context.WithTimeout(ctx, questionTime)
	defer cancel()
	x, err := r.agent.Complete(q, r.context, api.CompleteRequest{Code: r.before + line, Cursor: &cursor})
	from, to := x.CursorStart-offset, x.CursorEnd-offset
	if err != nil || from < 0 || from > pos || to < pos || to > len(runes) {
		return string(runes[:pos]), nil, string(runes[pos:])
	}
	for _, m := range x.Matches[:min(len(x.Matches), 200)] {
		words = append(words, drawing.Text(m))
	}
	return string(runes[:from]), words, string(runes[to:])
}

// history reads what was typed before, and returns what writes it down again.
func (r *repl) history() (save func()) {
	dir := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(dir) {
		home, err := os.UserHomeDir()
		if err != nil {
			return func() {}
		}
		dir = filepath.Join(home, ".local", "state")
	}
	file := filepath.Join(dir, "cellard", "history-"+cmp.Or(r.req.Language, "python"))
	if !r.terminal {
		return func() {}
	}
	if f, err := os.Open(file); err == nil {
		_, _ = r.lines.ReadHistory(io.LimitReader(f, 4<<20))
		f.Close()
	}
	return func() {
		if os.MkdirAll(filepath.Dir(file), 0o700) != nil {
			return
		}
		f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return
		}
		defer f.Close()
		_, _ = r.lines.WriteHistory(f)
	}
}
