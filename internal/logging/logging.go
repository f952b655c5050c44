// Package logging is what the agent logs with, and what it may log: what happened to
// what, for how long, and never what cells, hosts and kernels wrote.
//
// Cells and what they put out, the answers they are given, the values of variables, the
// names of files and tokens are a user's own, and logs go far. So:
//
//   - ids, names from fixed sets, numbers and durations are logged as they are;
//   - a text that somebody else wrote is a Content, of which the log has the length;
//   - an error is logged by Describe, that is by its kind: its text may hold any of that.
//     What the operator gave, as flags at the start, is logged as text.
//
// Options.Content turns that off, for an operator who looks for a fault.
package logging

import (
	"fmt"
	"io"
	"log/slog"
)

// Options are a log's settings.
type Options struct {
	Level slog.Leveler // nil: Info
	// JSON writes a JSON object a line, in place of key=value.
	JSON bool
	// Content logs Contents and errors as they are.
	Content bool
}

// New makes a logger that writes lines to w.
func New(w io.Writer, o Options) *slog.Logger {
	h := &slog.HandlerOptions{Level: o.Level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch v := a.Value.Any().(type) {
		case Content:
			if o.Content {
				a.Value = slog.StringValue(string(v))
			}
		case error:
			if o.Content {
				a.Value = slog.StringValue(v.Error())
			} else {
				a.Value = slog.StringValue(Describe(v))
			}
		}
		return a
	}}
	if o.JSON {
		return slog.New(slog.NewJSONHandler(w, h))
	}
	return slog.New(slog.NewTextHandler(w, h))
}

// Content is a text that somebody else than the agent and its operator wrote. A logger
// that is not one of New's shows its length too.
type Content string

// String is the length, in words.
func (c Content) String() string { return fmt.Sprintf("[%d bytes]", len(c)) }

// MarshalText is String.
func (c Content) MarshalText() ([]byte, error) { return []byte(c.String()), nil }
