package jupyter

import "encoding/json"

// The contents of the messages that an agent sends and reads. What is not here is
// read by Value's methods. Field names and meanings are the spec's.

// ExecuteRequest is the content of execute_request. Every field is sent always:
// without silent, ipykernel 6.17 publishes busy and idle but never replies.
type ExecuteRequest struct {
	Code            string            `json:"code"`
	Silent          bool              `json:"silent"`
	StoreHistory    bool              `json:"store_history"`
	UserExpressions map[string]string `json:"user_expressions"` // nil is sent as {}
	AllowStdin      bool              `json:"allow_stdin"`
	StopOnError     bool              `json:"stop_on_error"`
}

// MarshalJSON sends an empty object where there are no user expressions.
func (r ExecuteRequest) MarshalJSON() ([]byte, error) {
	type plain ExecuteRequest
	if r.UserExpressions == nil {
		r.UserExpressions = map[string]string{}
	}
	return json.Marshal(plain(r))
}

// The values of a reply's status.
const (
	StatusOK      = "ok"
	StatusError   = "error"
	StatusAborted = "aborted" // not run, because an earlier one failed
)

// ExecuteReply is the content of execute_reply. An aborted one has no EName. IRkernel
// says "abort" for one that was interrupted.
type ExecuteReply struct {
	Status          string                     `json:"status"`
	ExecutionCount  int                        `json:"execution_count"`
	UserExpressions map[string]json.RawMessage `json:"user_expressions"`
	Payload         []json.RawMessage          `json:"payload"`
	ErrorContent
}

// ErrorContent is the content of error, and part of a reply that failed.
type ErrorContent struct {
	EName     string   `json:"ename"`
	EValue    string   `json:"evalue"`
	Traceback []string `json:"traceback"`
}

// Status is the content of status: busy, idle or starting.
type Status struct {
	ExecutionState string `json:"execution_state"`
}

// The states of a kernel.
const (
	StateBusy     = "busy"
	StateIdle     = "idle"
	StateStarting = "starting"
)

// Stream is the content of stream. Text can be huge: 50 MB came as one message.
type Stream struct {
	Name string `json:"name"` // stdout or stderr
	Text string `json:"text"`
}

// ClearOutput is the content of clear_output. With Wait the output goes only when
// the next comes.
type ClearOutput struct {
	Wait bool `json:"wait"`
}

// Transient is what display_data, update_display_data and execute_result say that
// isn't kept with the result.
type Transient struct {
	DisplayID string `json:"display_id"`
}

// InputRequest is the content of input_request, which comes on stdin.
type InputRequest struct {
	Prompt   string `json:"prompt"`
	Password bool   `json:"password"`
}

// InputReply is the content of input_reply, which goes to stdin.
type InputReply struct {
	Value string `json:"value"`
}

// KernelInfo is the content of kernel_info_reply.
type KernelInfo struct {
	Status                string       `json:"status"`
	ProtocolVersion       string       `json:"protocol_version"`
	Implementation        string       `json:"implementation"`
	ImplementationVersion string       `json:"implementation_version"`
	LanguageInfo          LanguageInfo `json:"language_info"`
	Banner                string       `json:"banner"`
	SupportedFeatures     []string     `json:"supported_features"` // "kernel subshells", "debugger"
	ErrorContent
}

// FeatureVariables, among the supported_features of a kernel_info_reply, says that the
// kernel answers variables_request, which is not in Jupyter's protocol: a message without
// content on shell, whose variables_reply has a status and an api.VariableList's data and
// total. It runs no code that a cell could have written, and counts as no cell.
const FeatureVariables = "cellard variables"

// LanguageInfo says what a kernel runs.
type LanguageInfo struct {
	Name          string `json:"name"`
	Version       string `json:"version"`
	MimeType      string `json:"mimetype"`
	FileExtension string `json:"file_extension"`
	// Raw is all of it as it came, for notebooks, and is what is sent of it again.
	Raw json.RawMessage `json:"-"`
}

// MarshalJSON sends Raw where it is there.
func (l LanguageInfo) MarshalJSON() ([]byte, error) {
	if l.Raw != nil {
		return l.Raw, nil
	}
	type plain LanguageInfo
	return json.Marshal(plain(l))
}

// UnmarshalJSON keeps what is not known here in Raw.
func (l *LanguageInfo) UnmarshalJSON(b []byte) error {
	type plain LanguageInfo
	err := json.Unmarshal(b, (*plain)(l))
	l.Raw = append(json.RawMessage(nil), b...)
	return err
}

// ShutdownRequest is the content of shutdown_request, which goes to control.
type ShutdownRequest struct {
	Restart bool `json:"restart"`
}

// CompleteRequest is the content of complete_request. CursorPos counts Unicode code
// points.
type CompleteRequest struct {
	Code      string `json:"code"`
	CursorPos int    `json:"cursor_pos"`
}

// InspectRequest is the content of inspect_request. CursorPos counts Unicode code
// points.
type InspectRequest struct {
	Code        string `json:"code"`
	CursorPos   int    `json:"cursor_pos"`
	DetailLevel int    `json:"detail_level"`
}

// IsCompleteRequest is the content of is_complete_request.
type IsCompleteRequest struct {
	Code string `json:"code"`
}
