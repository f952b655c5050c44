// Package zmtp is the little of ZeroMQ that Jupyter kernels and their clients need:
// DEALER, SUB and REQ sockets that connect to one peer over a Unix or a TCP
// socket, with ZMTP 3.1 (https://rfc.zeromq.org/spec/37/; a peer that speaks
// 3.0, https://rfc.zeromq.org/spec/23/, is fine) and the NULL mechanism.
//
// Begin with Dial. It connects and shakes hands; a Conn then sends and receives
// whole messages, which are lists of frames.
//
// For kernels of our own Bind makes the other side, ROUTER and REP, and BindPublisher a
// PUB that drops nothing.
//
// A Conn is one connection, not a socket in ZeroMQ's sense: there is no
// reconnecting, no queue and no high-water mark. When the peer has gone Recv
// says so and Send soon fails, and what is left to do is Close. A message that
// Send gave an error for may have been sent in part; no one sends it again.
//
// The peer may run a stranger's code, so nothing that it claims is believed
// before it was checked: every length has a limit that holds before anything is
// allocated, the handshake has a deadline, and at most Options.Inline bytes of a
// message are held in memory. What is larger goes to a file, piece by piece,
// while it is received.
//
// # Who owns what
//
// A Conn has no goroutine of its own. The caller of Dial closes the Conn, which
// unblocks Recv and Send. The caller of Recv owns the frames, and closes each:
// frames that were spilled share one open file a message, which goes with the
// last of them. A Socket and a Publisher have a goroutine for the listener and one or
// two for each connection; who made them closes them, which waits for all of these.
//
// # Where to look
//
// greeting.go, command.go and frame.go are the codec: pure functions of bytes.
// decoder.go takes the stream apart under the limits, conn.go and handshake.go
// put it on a socket. bind.go and publish.go are the sockets that bind.
package zmtp
