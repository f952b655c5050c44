// Package api holds the types of the host API: what a host daemon sends to the
// agent and what it gets back, as JSON. It does no I/O and imports nothing of
// the project, so that a client can use it alone.
//
// Begin with RunRequest (a cell) and Execution (what came of it). Event is one
// line of a stream or of an attach. Error is every refusal. The contract they
// follow is told in docs/api.md.
//
// Fields are only ever added; a client ignores fields, events and values that
// it does not know.
package api
