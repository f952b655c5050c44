package client

import (
	"context"
	"encoding/json"
	"net/url"

	"github.com/cellard/cellard/protocol/api"
)

const contexts = "/v1/interpreter/contexts"

func contextPath(id string) string { return contexts + "/" + url.PathEscape(id) }

// Contexts lists the contexts by id.
func (c *Client) Contexts(ctx context.Context) ([]api.Context, error) {
	var l api.ContextList
	err := c.call(ctx, request{method: "GET", path: contexts}, nil, &l)
	return l.Data, err
}

// Context asks for one context.
func (c *Client) Context(ctx context.Context, id string) (api.Context, error) {
	return c.contextCall(ctx, request{method: "GET", path: contextPath(id)}, nil)
}

// CreateContext makes a context, and returns once its kernel is ready.
func (c *Client) CreateContext(ctx context.Context, req api.ContextRequest) (api.Context, error) {
	return c.contextCall(ctx, request{method: "POST", path: contexts, timeout: c.o.StartTimeout}, req)
}

// DeleteContext ends a context, its kernel and its cells; its refs are gone.
func (c *Client) DeleteContext(ctx context.Context, id string) error {
	var done struct{ Deleted bool }
	return c.call(ctx, request{method: "DELETE", path: contextPath(id), timeout: c.o.StartTimeout}, nil, &done)
}

// Restart gives a context a new kernel, and returns once it is ready.
func (c *Client) Restart(ctx context.Context, id string) (api.Context, error) {
	return c.contextCall(ctx, request{method: "POST", path: contextPath(id) + ":restart", timeout: c.o.StartTimeout}, nil)
}

// Interrupt stops the cell that a context runs. False: it runs none.
func (c *Client) Interrupt(ctx context.Context, id string) (bool, error) {
	var done struct{ Interrupted bool }
	err := c.call(ctx, request{method: "POST", path: contextPath(id) + ":interrupt"}, nil, &done)
	return done.Interrupted, err
}

// Fork makes a second context with the same variables, named newID or by the agent.
// Where the language can't, the error is of code unsupported.
func (c *Client) Fork(ctx context.Context, id, newID string) (api.Context, error) {
	body := struct {
		ID string `json:"id,omitempty"`
	}{newID}
	return c.contextCall(ctx, request{method: "POST", path: contextPath(id) + ":fork", timeout: c.o.StartTimeout}, body)
}

// Rollback gives a context the variables that it had before its last steps cells. Where
// the language can't, the error is of code unsupported.
func (c *Client) Rollback(ctx context.Context, id string, steps int) (api.Context, error) {
	body := struct {
		Steps int `json:"steps"`
	}{steps}
	return c.contextCall(ctx, request{method: "POST", path: contextPath(id) + ":rollback", timeout: c.o.StartTimeout}, body)
}

func (c *Client) contextCall(ctx context.Context, r request, body any) (x api.Context, err error) {
	err = c.call(ctx, r, body, &x)
	return x, err
}

// Variables tells what variables the context holds, without running any code of the cells'.
// While a cell runs the error is of code unavailable; where the language can't, unsupported.
func (c *Client) Variables(ctx context.Context, id string) (list api.VariableList, err error) {
	err = c.call(ctx, request{method: "GET", path: contextPath(id) + "/variables"}, nil, &list)
	return list, err
}

// Notebook is what a context has run so far as a Jupyter notebook (nbformat 4.5): JSON to
// write to a file.
func (c *Client) Notebook(ctx context.Context, id string) (json.RawMessage, error) {
	return c.fetch(ctx, request{method: "GET", path: contextPath(id) + "/notebook", again: true, timeout: c.o.AnswerTimeout})
}

// Completion is a kernel's complete_reply. CursorStart and CursorEnd are the part of the
// code that a match stands in for, in Unicode code points.
type Completion struct {
	Status      string   `json:"status"`
	Matches     []string `json:"matches"`
	CursorStart int      `json:"cursor_start"`
	CursorEnd   int      `json:"cursor_end"`
}

// Inspection is a kernel's inspect_reply: what there is to be said about a name.
type Inspection struct {
	Status string                     `json:"status"`
	Found  bool                       `json:"found"`
	Data   map[string]json.RawMessage `json:"data"`
}

// Completeness is a kernel's is_complete_reply: Status is complete, incomplete, invalid
// or unknown, and Indent what the next line may begin with.
type Completeness struct {
	Status string `json:"status"`
	Indent string `json:"indent"`
}

// Complete asks the kernel how the code could go on at the cursor.
func (c *Client) Complete(ctx context.Context, id string, req api.CompleteRequest) (x Completion, err error) {
	err = c.ask(ctx, id, "complete", req, &x)
	return x, err
}

// Inspect asks the kernel about the name at the cursor.
func (c *Client) Inspect(ctx context.Context, id string, req api.CompleteRequest) (x Inspection, err error) {
	err = c.ask(ctx, id, "inspect", req, &x)
	return x, err
}

// IsComplete asks the kernel whether the code is whole, or more lines are to come.
func (c *Client) IsComplete(ctx context.Context, id, code string) (x Completeness, err error) {
	err = c.ask(ctx, id, "isComplete", api.CompleteRequest{Code: code}, &x)
	return x, err
}

func (c *Client) ask(ctx context.Context, id, what string, req api.CompleteRequest, into any) error {
	return c.call(ctx, request{method: "POST", path: contextPath(id) + ":" + what, again: true}, req, into)
}
