package api

import (
	"encoding/json"
	"time"
)

// Status is how an execution ended.
type Status string

// The statuses. A timeout never comes with lost state: then it is lost.
const (
	StatusRunning     Status = "running"     // not over; never in a final Execution
	StatusOK          Status = "ok"          // the cell ran to its end
	StatusError       Status = "error"       // the code raised
	StatusInterrupted Status = "interrupted" // somebody asked for it
	StatusTimeout     Status = "timeout"     // the deadline passed
	StatusLost        Status = "lost"        // the session's variables are gone
)

// State is what became of the session's variables.
type State string

// The states.
const (
	StateKept     State = "kept"
	StateRestored State = "restored" // a new kernel that holds what was before this cell
	StateLost     State = "lost"
)

// Execution is what came of one cell, or is so far.
type Execution struct {
	ID             string     `json:"id"`
	ContextID      string     `json:"contextId"`
	Language       string     `json:"language"`
	ExecutionCount int        `json:"executionCount"`
	Status         Status     `json:"status"`
	Stdout         string     `json:"stdout"`
	Stderr         string     `json:"stderr"`
	Results        []Result   `json:"results"`
	Error          *CellError `json:"error"`
	Overflow       []Overflow `json:"overflow"`
	// DurationMs is the time from the kernel's busy to the end.
	DurationMs int64 `json:"durationMs"`
	// ContextStarted tells that this cell's kernel was started for it.
	ContextStarted bool `json:"contextStarted"`
	// LostBytes counts what the agent knows it could not take or keep: what neither this nor
	// a file of it has.
	LostBytes int64 `json:"lostBytes"`
	// Incomplete marks an execution of which outputs may be missing: the kernel sent
	// its reply but never its idle, or the other way round.
	Incomplete bool  `json:"incomplete,omitempty"`
	State      State `json:"state"`
	// Generation counts the kernels that the context has had, from 1.
	Generation int `json:"generation"`
	// QueuedMs is the time from the request to the send to the kernel, its start
	// included.
	QueuedMs int64  `json:"queuedMs"`
	Lost     *Lost  `json:"lost"`
	Usage    *Usage `json:"usage"`
	// Timing is nil for a cell that never ran.
	Timing *Timing `json:"timing"`
}

// Timing is when the kernel said what of the cell, by the dates of its messages: that it is
// busy, what it runs (execute_input), what came of it (execute_reply), that it is idle
// again. What it never said is nil.
type Timing struct {
	Busy  *time.Time `json:"busy"`
	Input *time.Time `json:"input"`
	Reply *time.Time `json:"reply"`
	Idle  *time.Time `json:"idle"`
}

// CellError is what the code raised.
type CellError struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	// Traceback is lines joined by \n, without ANSI colours.
	Traceback string `json:"traceback"`
}

// Result is one bundle: the last expression's value (Main) or a display.
type Result struct {
	Main bool `json:"main"`
	// Data holds values by MIME type: base64 strings for binary types, JSON values
	// for JSON types, else strings.
	Data map[string]json.RawMessage `json:"data"`
	// Refs holds, by MIME type, the values too large for Data.
	Refs map[string]Ref `json:"refs"`
	// Metadata is what the kernel says of the values, by MIME type or for all of them.
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"`
}

// Ref is a value spilled to a read-only file of the guest.
type Ref struct {
	Path   string `json:"path"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Overflow is a stream that outgrew the inline limit.
type Overflow struct {
	Stream string `json:"stream"`
	Path   string `json:"path"`
	// Bytes is how many bytes the stream had in all.
	Bytes int64 `json:"bytes"`
	// Dropped is how many of them are not in the file.
	Dropped int64 `json:"dropped"`
}

// LostReason is why a kernel went away.
type LostReason string

// The reasons.
const (
	LostOOM          LostReason = "oom"
	LostSignal       LostReason = "signal"
	LostExit         LostReason = "exit"
	LostUnresponsive LostReason = "unresponsive"
	LostRestart      LostReason = "restart"
	LostDeleted      LostReason = "deleted"
	LostShutdown     LostReason = "shutdown"
)

// Lost tells how the kernel went away under a cell, or before it.
type Lost struct {
	Reason   LostReason `json:"reason"`
	Signal   *string    `json:"signal"`
	ExitCode *int       `json:"exitCode"`
	Message  string     `json:"message"`
}

// Usage is what the guest's accounting tells of a cell: CPU time of the kernel
// and its children, and their peak memory. A figure that it can't tell is null.
type Usage struct {
	CPUMs        *int64 `json:"cpuMs"`
	PeakRSSBytes *int64 `json:"peakRssBytes"`
}
