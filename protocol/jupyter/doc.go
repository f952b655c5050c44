// Package jupyter is the Jupyter wire: messages and their signatures, connection
// files, and the client's side of a kernel's five channels, as in
// https://jupyter-client.readthedocs.io/en/stable/messaging.html (5.5).
//
// Begin with NewIPC, whose WriteFile writes the connection file that a kernel is
// started with; Dial connects to it and Ready waits for it. Then Send requests,
// and receive everything from Messages.
//
// The kernel is taken for a stranger. A message is checked before its JSON is
// read; one that doesn't hold is counted in Stats and dropped. Nothing that is
// large is decoded into memory unasked: a message's content is a Value, its JSON
// text in memory or in the file it was spilled to, and Members, Text and Reader go over it
// in one pass with a small buffer. All of it has limits: of depth, of members, of
// the bytes that are queued.
//
// # Who owns what
//
// Who calls Dial closes the Client, which waits for its goroutines: one reader a
// channel, and one that ends them all when one has ended. Who receives a Message
// closes it, and with that its file and its room in the queue. A Client is for one
// kernel process and never reconnects.
//
// # Where to look
//
// message.go and sign.go are the format, outgoing.go its other direction, and
// content.go what is in it. scan.go is the JSON scanner, and value.go, text.go and
// finite.go what reads through it. client.go, receive.go and ready.go are the
// client.
package jupyter
