// Package server serves the host API (protocol/api, docs/api.md) over vsock, Unix
// sockets and TCP: HTTP/1.1 with JSON bodies, and NDJSON streams.
//
// New makes a Server around a Manager; Listen opens a listener and says who may
// call on it; Serve serves one, and may be called for several. Shutdown drains, Close
// cuts; both return when no goroutine of the server is left. The Manager is the
// caller's: end its cells before Shutdown, so that streams end with their last line.
//
// Begin with routes (router.go), the list of all that is served. Each resource is a
// file: run.go, executions.go, contexts.go, results.go, languages.go, health.go,
// metrics.go. stream.go is what they share for NDJSON, call.go for one request and
// its answer, decode.go for bodies.
//
// Who may call is decided where a connection is accepted (gate.go): a peer's uid or CID
// is checked before a byte is read, TCP has its bearer token checked before
// anything else of a request. A gate also bounds how many connections a listener has:
// at the bound it closes those that proved nothing yet or do nothing, and what comes
// past it can still ask for the agent's health. A write to a socket whose peer takes
// nothing for Options.Stall ends the connection, so no reader holds anything for ever.
package server
