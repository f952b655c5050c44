// Package client is what a host's daemon, or any other program in Go, talks to an
// agent with. It imports the types of protocol/api, vsock, and the standard library.
//
// Begin with New, which takes the agent's address and dials nothing yet:
//
//	c, err := client.New("firecracker:///srv/vm1/v.sock?port=52", client.Options{})
//	if err != nil { … }
//	defer c.Close()
//	if err := c.WaitReady(ctx); err != nil { … }
//	x, err := c.Run(ctx, api.RunRequest{Code: "6 * 7"})
//
// Run waits for a cell's end, Stream gives its events as they come, Attach those of an
// execution that is there already. All else is a method named after the request that it
// makes. What the agent refuses is an *api.Error, with its code, status and hint:
// errors.Is(err, &api.Error{Code: api.CodeBusy}) asks for one. A cell that fails is no
// error, but an Execution with another status than ok.
//
// A request is named by api.WithRequestID, or the agent names it: Stream.RequestID, the
// RequestID of an *api.Error and the texts of errors have the id, which finds the request in
// the agent's log.
//
// # What it trusts
//
// Nothing: the agent's other end is a machine that a stranger's code runs in. An answer
// is bounded before it is read, redirects are not followed, nothing is unpacked, no proxy
// is asked, and the bytes of a ref are checked against its hash. The contents of answers
// are still a stranger's.
//
// # A connection that says nothing
//
// The socket of a guest that was paused, restored from a snapshot or killed may never
// tell that it is gone. So each wait is bounded: for a connection (Options.DialTimeout),
// for an answer (Options.AnswerTimeout), and between two lines of a stream, which the
// agent sends one of every 15 s (Options.Silence). A stream that broke off, or was silent
// for too long, is attached to again by the execution's id, from the event after the last
// that came: that runs nothing and doubles nothing.
//
// A request is sent again if it never reached the agent, if it only asks, or if it is a
// cell with an idempotency key, and only while the agent is still the same instance.
//
// # Who closes what
//
// Client.Close drops the connections that are kept for reuse. A Stream is over when its
// last event was read, its context ended or Close was called; the loop over Events closes
// it. A File is the caller's to close.
package client
