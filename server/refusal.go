package server

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"

	"github.com/cellard/cellard/protocol/api"
)

// refusal is an answer that is written to a connection past net/http, and its last.
func refusal(e *api.Error) []byte {
	body, _ := api.Marshal(api.ErrorBody{Error: e})
	status := e.HTTPStatus()
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nCache-Control: no-store\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		status, http.StatusText(status), len(body), body)
}

// ownRefusal is what net/http itself answers to a request that it could not read (malformed,
// its headers too large), as an answer of the API's: net/http's is plain text, is
// written at once, and ends the connection. It is nil for anything else.
func ownRefusal(b []byte) []byte {
	line, rest, _ := bytes.Cut(b, []byte("\r\n"))
	proto, text, _ := bytes.Cut(line, []byte(" "))
	code, _, _ := bytes.Cut(text, []byte(" "))
	status, err := strconv.Atoi(string(bytes.TrimSuffix(code, []byte(":"))))
	if !bytes.HasPrefix(proto, []byte("HTTP/1.")) || err != nil || status < 400 {
		return nil
	}
	// The body repeats the status, and may tell more than the first line.
	if _, body, ok := bytes.Cut(rest, []byte("\r\n\r\n")); ok && len(body) > 0 {
		text = body
	}
	e := api.Errorf(api.CodeInvalidRequest, "the request could not be read: %s", quote(string(text))).WithHint("send HTTP/1.1 as its standard has it")
	switch status {
	case http.StatusRequestHeaderFieldsTooLarge:
		e = api.Errorf(api.CodeTooLarge, "the request's headers are over %d bytes", maxHeader).
			WithHint("send fewer; what is large goes into the body")
	case http.StatusExpectationFailed:
		e = e.WithHint("of Expect nothing but 100-continue is known; leave it out")
	}
	e.Status = status
	return refusal(e)
}

// errorless holds back an error that http.ServeContent would answer as plain text.
type errorless struct {
	http.ResponseWriter
	status int // of the error; 0: none
}

func (w *errorless) WriteHeader(status int) {
	if status >= 400 {
		w.status = status
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *errorless) Write(b []byte) (int, error) {
	if w.status != 0 {
		return len(b), nil
	}
	return w.ResponseWriter.Write(b)
}

// serveError is the error that was held back, for a file of size bytes; nil if there
// was none.
func (w *errorless) serveError(size int64) error {
	if w.status == 0 {
		return nil
	}
	h := w.Header()
	for _, name := range []string{"Content-Security-Policy", "Cross-Origin-Resource-Policy", "ETag", "Last-Modified", "Accept-Ranges"} {
		h.Del(name)
	}
	h.Set("Cache-Control", "no-store")
	var e *api.Error
	switch w.status {
	case http.StatusRequestedRangeNotSatisfiable:
		e = api.Errorf(api.CodeInvalidRequest, "the Range is not within the file, which has %d bytes", size).
			WithHint("ask for a range of it, or leave Range out for the whole")
	case http.StatusPreconditionFailed:
		e = api.Errorf(api.CodeInvalidRequest, "the file is not what If-Match or If-Unmodified-Since asks for").
			WithHint("leave them out, or send the ETag that the file has: its sha256")
	default:
		return api.Errorf(api.CodeInternal, "the file could not be sent: HTTP %d", w.status).WithHint("ask again; the agent's log may tell more")
	}
	e.Status = w.status
	return e
}
