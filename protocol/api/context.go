package api

import (
	"encoding/json"
	"time"
)

// ContextState is what a context's kernel is doing.
type ContextState string

// The states of a context.
const (
	ContextStarting ContextState = "starting"
	ContextIdle     ContextState = "idle"
	ContextBusy     ContextState = "busy"
	ContextDead     ContextState = "dead"
)

// Context is a named session: the kernel behind it now, and how many it has had.
type Context struct {
	ID       string `json:"id"`
	Language string `json:"language"`
	// ProcessID is the kernel's pid in the guest; 0 when there is none.
	ProcessID      int          `json:"processId"`
	Cwd            string       `json:"cwd"`
	State          ContextState `json:"state"`
	StartedAt      time.Time    `json:"startedAt"`
	Kernel         KernelInfo   `json:"kernel"`
	ExecutionCount int          `json:"executionCount"`
	Generation     int          `json:"generation"`
	// LanguageInfo is what the kernel says of its language, as a notebook's metadata has it
	// (language_info of kernel_info_reply); null until one has started.
	LanguageInfo json.RawMessage `json:"languageInfo"`
	// Checkpoint tells whether the state survives a kernel's death: off where the
	// language has no checkpoints.
	Checkpoint string `json:"checkpoint"`
}

// KernelInfo names a kernel as it names itself (kernel_info_reply).
type KernelInfo struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// ContextRequest is the body of POST /v1/interpreter/contexts. An empty ID is
// filled by the agent.
type ContextRequest struct {
	ID       string            `json:"id,omitempty"`
	Language string            `json:"language,omitempty"`
	Cwd      string            `json:"cwd,omitempty"`
	Env      map[string]string `json:"env,omitempty"`
}

// ContextList is the answer to GET /v1/interpreter/contexts.
type ContextList struct {
	Data []Context `json:"data"`
}

// Variable is one of a session's own: the name, and what can be said of the value
// without running any code of the cells'.
type Variable struct {
	Name string `json:"name"`
	Type string `json:"type"`
	// Size is how many elements, characters or bytes the value has; nil where it has none,
	// or telling would take the value's own code.
	Size *int64 `json:"size"`
	// Shape is the extent of an array in each dimension, or rows and columns of a table;
	// nil for all else.
	Shape []int64 `json:"shape"`
	// Preview is a short text of the value, or of its beginning; "" where there is none.
	Preview string `json:"preview"`
}

// VariableList is the answer to GET …/{id}/variables, by name. Total counts those past the
// bound, too, which are not in Data.
type VariableList struct {
	Data       []Variable `json:"data"`
	Total      int        `json:"total"`
	Generation int        `json:"generation"`
}

// The bounds of a VariableList: variables, and bytes of each text.
const (
	MaxVariables    = 1000
	MaxVariableName = 256
	MaxPreview      = 512
)

// CompleteRequest is the body of :complete, :inspect and :isComplete. Cursor
// counts Unicode code points, as Jupyter does; nil is the end of the code.
type CompleteRequest struct {
	Code   string `json:"code"`
	Cursor *int   `json:"cursor,omitempty"`
	Detail int    `json:"detail,omitempty"`
}

// KernelReply is a kernel's own answer, passed on as it came.
type KernelReply = json.RawMessage

// InputRequest is the body of POST /v1/executions/{id}:input.
type InputRequest struct {
	Value string `json:"value"`
}

// LanguageState tells whether a language can be used.
type LanguageState string

// The states of a language.
const (
	LanguageReady       LanguageState = "ready"
	LanguageInstallable LanguageState = "installable"
	LanguageMissing     LanguageState = "missing"
)

// Language is one line of GET /v1/languages.
type Language struct {
	Name   string        `json:"name"`
	State  LanguageState `json:"state"`
	Kernel KernelInfo    `json:"kernel"`
	// Path is what runs it: an interpreter, or a kernelspec's directory.
	Path string `json:"path,omitempty"`
	// Message says what is missing, and Hint what to do; of a language that is ready, what
	// its first start has to do, and how that is done beforehand.
	Message string `json:"message,omitempty"`
	Hint    string `json:"hint,omitempty"`
}

// LanguageList is the answer to GET /v1/languages.
type LanguageList struct {
	Data []Language `json:"data"`
}

// Health is the answer to GET /v1/health.
type Health struct {
	Status     string   `json:"status"`
	Version    string   `json:"version"`
	API        int      `json:"api"`
	InstanceID string   `json:"instanceId"`
	Features   []string `json:"features"`
	// Running counts cells that run or wait; IdleMs is the time since the last one
	// ended, 0 while any runs.
	Running int   `json:"running"`
	IdleMs  int64 `json:"idleMs"`
}
