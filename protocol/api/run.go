package api

import (
	"encoding/json"
	"fmt"
	"slices"
)

// DefaultTimeoutMs is the deadline of a cell that names none.
const DefaultTimeoutMs = 60_000

// RunRequest is the body of POST /v1/interpreter:run: one cell.
type RunRequest struct {
	// Code is the cell's source, as the user wrote it.
	Code string `json:"code"`
	// Language is a language's name or an installed kernelspec's; empty means the
	// context's, or python.
	Language string `json:"language,omitempty"`
	// Context is a context's id; empty means the language's own name.
	Context string `json:"context,omitempty"`
	// TimeoutMs is the deadline in milliseconds, counted from the kernel's busy;
	// nil is DefaultTimeoutMs, 0 none.
	TimeoutMs *int64 `json:"timeoutMs,omitempty"`
	// Stream asks for NDJSON events in place of one Execution.
	Stream bool `json:"stream,omitempty"`
	// InterruptOnDisconnect interrupts the cell when no reader has been there for
	// a while; nil is true, or false with an idempotency key.
	InterruptOnDisconnect *bool `json:"interruptOnDisconnect,omitempty"`
	// IdempotencyKey makes a second request with the same key attach to the first
	// one's execution.
	IdempotencyKey string `json:"idempotencyKey,omitempty"`
	// WaitMs bounds the wait for the answer in milliseconds; the cell goes on.
	WaitMs *int64 `json:"waitMs,omitempty"`
	// IfGeneration refuses the run unless the context's generation is this one.
	IfGeneration *int `json:"ifGeneration,omitempty"`
	// Env and Cwd hold for this cell alone.
	Env map[string]string `json:"env,omitempty"`
	Cwd string            `json:"cwd,omitempty"`
	// Stdin holds the answers for a cell that asks for input.
	Stdin *Stdin `json:"stdin,omitempty"`

	// RequestID names the request; it travels as the header X-Request-Id.
	RequestID string `json:"-"`
}

// Stdin is a list of answers, or "live": an input event is then answered by
// POST /v1/executions/{id}:input.
type Stdin struct {
	Live    bool
	Answers []string
}

// MarshalJSON writes "live" or the list.
func (s Stdin) MarshalJSON() ([]byte, error) {
	if s.Live {
		return []byte(`"live"`), nil
	}
	if s.Answers == nil {
		return []byte(`[]`), nil
	}
	return json.Marshal(s.Answers)
}

// UnmarshalJSON takes "live" or a list of strings, and refuses all else.
func (s *Stdin) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	var word string
	if json.Unmarshal(b, &word) == nil {
		if word != "live" {
			return fmt.Errorf(`stdin: %q is neither "live" nor a list of strings`, word)
		}
		*s = Stdin{Live: true}
		return nil
	}
	var answers []*string
	if err := json.Unmarshal(b, &answers); err != nil || slices.Contains(answers, nil) {
		return fmt.Errorf(`stdin: want "live" or a list of strings`)
	}
	*s = Stdin{}
	for _, a := range answers {
		s.Answers = append(s.Answers, *a)
	}
	return nil
}
