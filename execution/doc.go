// Package execution is one cell's life: what it put out, folded into an
// api.Execution, and the log of events that readers follow.
//
// New makes an Execution; the supervisor's goroutine for the context is the one
// writer (Begin, Stream, Display, …, and exactly one of End and Fail). Any
// number of readers follow it through Reader, Snapshot and Done; none of them can
// slow the writer, and none costs memory: the log is bounded (log.go), and a
// reader that falls behind its bound gets a gap event that says how much is
// missing. Attach counts who is there, for interruptOnDisconnect.
//
// Streams are folded as they come (output.go): progress bars to their last
// state, text past the inline limit to an overflow file. Values over the limits go to
// the store as refs (bundle.go), straight from the message. A DisplayMap holds which
// results a display id names, across the cells of one kernel.
//
// After its end an Execution still takes late output and updates of its
// displays; Snapshot shows them, the log does not. Close frees what it holds on disk.
package execution
