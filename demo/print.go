package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/cellard/cellard/internal/drawing"
	"github.com/cellard/cellard/mime"
	"github.com/cellard/cellard/protocol/api"
)

const width = 78

// printer shows the conversation: in colours on a terminal, else as plain text.
type printer struct {
	w      io.Writer
	colour bool
}

func newPrinter(f *os.File) *printer {
	fi, err := f.Stat()
	return &printer{w: f, colour: err == nil && fi.Mode()&os.ModeCharDevice != 0 && os.Getenv("NO_COLOR") == ""}
}

func (p *printer) paint(code, s string) string {
	if !p.colour || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p *printer) bold(format string, args ...any) {
	fmt.Fprintln(p.w, p.paint("1", fmt.Sprintf(format, args...)))
}

func (p *printer) dim(format string, args ...any) {
	fmt.Fprintln(p.w, p.paint("2", fmt.Sprintf(format, args...)))
}

func (p *printer) note(format string, args ...any) {
	fmt.Fprintln(p.w, p.paint("36", fmt.Sprintf(format, args...)))
}

// rule begins a turn.
func (p *printer) rule(title string) {
	line := strings.Repeat("─", max(2, width-4-utf8.RuneCountInString(title)))
	fmt.Fprintf(p.w, "\n%s\n", p.paint("1", "── "+title+" "+line))
}

func (p *printer) code(code string) {
	for line := range strings.Lines(code) {
		fmt.Fprintf(p.w, "%s %s\n", p.paint("34", "│"), strings.TrimSuffix(line, "\n"))
	}
	fmt.Fprintln(p.w)
}

func (p *printer) text(s string) { fmt.Fprintln(p.w, s) }

func (p *printer) streams(x *api.Execution) {
	fmt.Fprint(p.w, endLine(x.Stdout), p.paint("31", endLine(x.Stderr)))
}

// ending says how the cell ended; of an error where in the cell, and what.
func (p *printer) ending(x *api.Execution) {
	if e := x.Error; e != nil {
		for _, part := range strings.Split(e.Traceback, "\n\n") {
			if i := strings.Index(part, "Cell In"); i >= 0 {
				fmt.Fprintln(p.w, p.paint("31", part[i:]))
				break
			}
		}
		fmt.Fprintln(p.w, p.paint("31", strings.TrimSuffix(e.Name+": "+e.Value, ": ")))
	}
	usage := ""
	if x.Usage != nil && x.Usage.CPUMs != nil {
		usage = fmt.Sprintf(", %d ms of CPU", *x.Usage.CPUMs)
	}
	state := ""
	if x.Status != api.StatusOK {
		state = ", state " + string(x.State)
	}
	p.dim("%s%s in %d ms%s", x.Status, state, x.DurationMs, usage)
}

func endLine(s string) string {
	if s != "" && !strings.HasSuffix(s, "\n") {
		s += "\n"
	}
	return s
}

func (p *printer) table(t mime.Table) { fmt.Fprint(p.w, drawing.Table(t, 100)) }
