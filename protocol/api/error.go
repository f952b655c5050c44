package api

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Code names a kind of refusal. A cell that fails is never one of these: it is
// an Execution with a status of its own.
type Code string

// The codes, each with the HTTP status it goes with.
const (
	CodeInvalidRequest Code = "invalid_request" // 400, or 422 for a field of the wrong type
	CodeUnauthorized   Code = "unauthorized"    // 401
	CodeNotFound       Code = "not_found"       // 404
	CodeConflict       Code = "conflict"        // 409
	CodeGeneration     Code = "generation"      // 409: ifGeneration did not hold, no code ran
	CodeUnsupported    Code = "unsupported"     // 409: the kernel or language can't
	CodeGone           Code = "gone"            // 410: a ref that the quota pushed out
	CodeTooLarge       Code = "too_large"       // 413
	CodeBusy           Code = "busy"            // 429
	CodeKernelFailed   Code = "kernel_failed"   // 502, with the kernel's last words
	CodeUnavailable    Code = "unavailable"     // 503
	CodeInternal       Code = "internal"        // 500: a fault of the agent's own
)

var statusOf = map[Code]int{
	CodeInvalidRequest: http.StatusBadRequest,
	CodeUnauthorized:   http.StatusUnauthorized,
	CodeNotFound:       http.StatusNotFound,
	CodeConflict:       http.StatusConflict,
	CodeGeneration:     http.StatusConflict,
	CodeUnsupported:    http.StatusConflict,
	CodeGone:           http.StatusGone,
	CodeTooLarge:       http.StatusRequestEntityTooLarge,
	CodeBusy:           http.StatusTooManyRequests,
	CodeKernelFailed:   http.StatusBadGateway,
	CodeUnavailable:    http.StatusServiceUnavailable,
	CodeInternal:       http.StatusInternalServerError,
}

// Error is a refusal: the body of every answer that is not a success, and the
// failure line of a stream. Message says what is wrong, Hint what to do.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint"`
	// RequestID names the request that was refused, in the agent's log too.
	RequestID string `json:"requestId,omitempty"`

	// Status is the HTTP status; 0 stands for the code's own.
	Status int `json:"-"`
}

// Errorf makes an Error of a code with a formatted message and no hint.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// WithHint returns a copy of e that says what to do.
func (e *Error) WithHint(format string, args ...any) *Error {
	c := *e
	c.Hint = fmt.Sprintf(format, args...)
	return &c
}

// Error makes *Error an error: the message, then the hint. One that holds what a line of a
// log or a terminal should not (control characters, newlines) is quoted, as Go does: an
// agent's words are a stranger's.
func (e *Error) Error() string {
	message := quoted(e.Message)
	if message == "" {
		message = quoted(string(e.Code))
	}
	if e.Hint == "" {
		return message
	}
	return message + " (" + quoted(e.Hint) + ")"
}

func quoted(s string) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return s
	}
	return strconv.Quote(s)
}

// Is reports whether target is an *Error of the same code, so that
// errors.Is(err, &api.Error{Code: api.CodeGone}) asks for a code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && t.Message == ""
}

// HTTPStatus is the HTTP status that e goes out with.
func (e *Error) HTTPStatus() int {
	if e.Status != 0 {
		return e.Status
	}
	if s := statusOf[e.Code]; s != 0 {
		return s
	}
	return http.StatusInternalServerError
}

// ErrorBody is the JSON body of a refusal.
type ErrorBody struct {
	Error *Error `json:"error"`
}
