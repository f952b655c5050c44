package kernel

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/cellard/cellard/protocol/api"
	"github.com/cellard/cellard/protocol/jupyter"
)

// ErrInterrupted is the cause of the end of an Execute's context when somebody
// asked to interrupt the cell, by interrupt_request or by SIGINT. ErrShutdown is
// its cause when the kernel is asked to end.
var (
	ErrInterrupted = errors.New("kernel: interrupted")
	ErrShutdown    = errors.New("kernel: shutting down")
)

// ErrStdinNotAllowed is Input's answer to a cell whose front end can't be asked.
// Its text is for the user.
var ErrStdinNotAllowed = errors.New("this cell was run without answers for input: it can't ask")

// A Language is what a kernel of our own brings; Serve does the rest. Execute,
// Complete, Inspect and IsComplete are called one at a time, as the requests on
// shell come.
type Language interface {
	// Info is the reply to kernel_info_request; its Status and ProtocolVersion are
	// filled in. It is called before the first cell, and may start what runs cells:
	// an error of it ends Serve.
	Info() (jupyter.KernelInfo, error)

	// Execute runs a cell and returns when it is over and all that it put out has
	// been given to the Cell. The error is nil, an *Error that the cell ended with, or
	// another that tells why the language can't go on, which ends Serve: the cell is then
	// not answered, as a reply would tell the front end that the state is still there.
	// When ctx ends the cell is to be stopped with the state kept; context.Cause tells
	// why, and may be returned for an *Error that says just that.
	Execute(ctx context.Context, c *Cell) error

	// Complete and Inspect answer for a position in code, in code points. They end
	// soon after ctx. A Language without one returns the zero value and nil.
	Complete(ctx context.Context, code string, cursor int) (Completion, error)
	Inspect(ctx context.Context, code string, cursor, detail int) (Inspection, error)
	// IsComplete tells whether code can be run as it is.
	IsComplete(ctx context.Context, code string) (Completeness, error)

	// Close ends what runs the cells, waits for it and leaves nothing behind. Execute
	// is not running then.
	Close() error
}

// A Lister is a Language that can tell the session's variables. Variables is called
// between cells, and ends soon after ctx; it runs no code of the cells' but what
// docs/api.md admits. Of more than api.MaxVariables the first by name are enough, with
// the number of all. Serve tells front ends by jupyter.FeatureVariables.
type Lister interface {
	Language
	Variables(ctx context.Context) (variables []api.Variable, total int, err error)
}

// A Mortal is a Language whose interpreter may end between cells, too: a front end is to learn
// that before its next cell has no answer. Ended waits for it and returns the reason, as
// Execute does; at ctx's end it returns nil. It is called after Info, and over before Close.
type Mortal interface {
	Language
	Ended(ctx context.Context) error
}

// Error is an error of a user's code, as a cell ends with it. The traceback's lines
// are without colours and begin at the user's own frames.
type Error struct {
	Name      string
	Value     string
	Traceback []string
	// Restored is set where the interpreter's process ended under the cell, which it tells
	// the reason of, and another goes on with the state from before the cell. The agent
	// learns it from the metadata of the reply: {"cellard":{"restored":{…}}}.
	Restored *api.Lost
}

func (e *Error) Error() string { return e.Name + ": " + e.Value }

// Bundle is data to show, by MIME type: a string (base64 for a binary type), or what
// json.Marshal makes a JSON value of.
type Bundle map[string]any

// Completion is an answer of Complete: what can stand between Start and End, code
// points of the code that was asked about.
type Completion struct {
	Matches    []string
	Start, End int
	// Types, if any, has what each match is ("function", "instance", …), for the
	// fronts that show it.
	Types []string
}

// Inspection is an answer of Inspect.
type Inspection struct {
	Found bool
	Data  Bundle
}

// Completeness is an answer of IsComplete.
type Completeness struct {
	Status string // complete, incomplete, invalid or unknown
	Indent string // with incomplete: what the next line begins with
}

// Cell is one execute_request: what to run, and where its output goes. Its methods
// are safe for concurrent use and may be called after Execute has returned: what is
// late still names its own cell. Nothing is dropped: they wait for the front end to
// take what was sent, and return at once after the kernel was closed.
type Cell struct {
	Code string
	// Silent asks for no result and no count; the output comes all the same.
	Silent bool
	// StoreHistory is false for a cell that doesn't count.
	StoreHistory bool
	// Count is the number of this cell, from 1.
	Count int
	// AllowStdin tells that Input may be called.
	AllowStdin bool
	// Env and Cwd are for this cell alone: what the front end put into the metadata
	// of the request as {"cellard":{"env":{…},"cwd":"…"}}.
	Env map[string]string
	Cwd string

	sink Sink
}

// Sink is where a Cell's output goes and its questions: to the server, or to a test of a
// Language that runs without one. Content is what json.Marshal makes the message's
// content of.
type Sink interface {
	Publish(msgType string, content any)
	Input(ctx context.Context, prompt string, password bool) (string, error)
}

// NewCell makes a cell whose output goes to a Sink; its other fields are the caller's to
// set. Serve makes those that come as requests.
func NewCell(code string, s Sink) *Cell {
	return &Cell{Code: code, StoreHistory: true, Count: 1, sink: s}
}

// Stdout and Stderr send text as it is; "" sends nothing. What is given in one call
// is one message.
func (c *Cell) Stdout(text string) { c.stream("stdout", text) }

// Stderr is Stdout's twin.
func (c *Cell) Stderr(text string) { c.stream("stderr", text) }

func (c *Cell) stream(name, text string) {
	if text != "" {
		c.sink.Publish("stream", jupyter.Stream{Name: name, Text: text})
	}
}

// Result sends the value of the last expression. A silent cell has none.
func (c *Cell) Result(data Bundle, metadata map[string]any) {
	if !c.Silent {
		c.sink.Publish("execute_result", outcome{Data: data, Metadata: metadata, Count: c.Count})
	}
}

// Display sends data to show. With a displayID a later Update can change it.
func (c *Cell) Display(data Bundle, metadata map[string]any, displayID string) {
	c.sink.Publish("display_data", display{Data: data, Metadata: metadata, Transient: jupyter.Transient{DisplayID: displayID}})
}

// Update changes what was displayed with a displayID, by this cell or an earlier one.
func (c *Cell) Update(data Bundle, metadata map[string]any, displayID string) {
	c.sink.Publish("update_display_data", display{Data: data, Metadata: metadata, Transient: jupyter.Transient{DisplayID: displayID}})
}

// Clear takes back the output so far, with wait only when the next comes.
func (c *Cell) Clear(wait bool) {
	c.sink.Publish("clear_output", jupyter.ClearOutput{Wait: wait})
}

// Input asks the front end for a line. It fails with ErrStdinNotAllowed where none
// can be asked, else with ctx's cause.
func (c *Cell) Input(ctx context.Context, prompt string, password bool) (string, error) {
	if !c.AllowStdin {
		return "", ErrStdinNotAllowed
	}
	return c.sink.Input(ctx, prompt, password)
}

type outcome struct {
	Count    int            `json:"execution_count"`
	Data     Bundle         `json:"data"`
	Metadata map[string]any `json:"metadata"`
}

type display struct {
	Data      Bundle            `json:"data"`
	Metadata  map[string]any    `json:"metadata"`
	Transient jupyter.Transient `json:"transient"`
}

// MarshalJSON of both fills in what must not be null.
func (o outcome) MarshalJSON() ([]byte, error) {
	type plain outcome
	if o.Metadata == nil {
		o.Metadata = map[string]any{}
	}
	return json.Marshal(plain(o))
}

// MarshalJSON: as outcome's.
func (d display) MarshalJSON() ([]byte, error) {
	type plain display
	if d.Metadata == nil {
		d.Metadata = map[string]any{}
	}
	return json.Marshal(plain(d))
}
