package api

import "context"

// RequestIDHeader names a request: the caller's own id if it is valid, else one that the
// agent makes. It is in the answer, in the agent's log and in refusals.
const RequestIDHeader = "X-Request-Id"

// maxRequestID is the longest a request's id may be, in bytes.
const maxRequestID = 128

// ValidRequestID tells whether id may name a request: 1 to 128 letters, digits and
// -._~:/+=@ of ASCII, so that it can stand in a header and in a log as it is.
func ValidRequestID(id string) bool {
	for _, c := range []byte(id) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '-', c == '.', c == '_', c == '~', c == ':', c == '/', c == '+', c == '=', c == '@':
		default:
			return false
		}
	}
	return 0 < len(id) && len(id) <= maxRequestID
}

type requestIDKey struct{}

// WithRequestID is ctx with the id of the request that it is of. A client sends it; the
// agent logs it.
func WithRequestID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestIDKey{}, id)
}

// RequestID is the id that ctx has; empty for none.
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}
