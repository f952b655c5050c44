// Package kernel is the kernel's side of the Jupyter messaging protocol, for kernels
// of our own: they bring a Language, and Serve does all that is the same for each of
// them.
//
// Begin with Language and Cell (kernel.go), then Serve (serve.go). A kernel under test
// without sockets is given its cells by NewCell.
//
// # The way of a cell
//
// A goroutine of package zmtp reads each connection and puts its requests into one
// queue, which is bounded: a client that sends more than fits waits (queue.go). One
// goroutine takes the requests of shell in their order (requests.go) and is in
// Language.Execute while a cell runs (execute.go). Control is answered at once, in the
// goroutine of its connection (control.go), and so are kernel_info_request and
// interrupt_request while a cell runs.
//
// What a cell puts out goes to a zmtp.Publisher, which drops nothing: the Cell's
// methods wait for the slowest subscriber. What control says of itself (busy, idle)
// doesn't wait for one. A subscriber that takes nothing at all is given up when a cell
// that was interrupted waits for it, or the kernel's end does.
//
// # Who owns what
//
// Serve owns the sockets and all goroutines, and calls Language.Close when no cell runs
// any more. A cell that doesn't end when the kernel is to end is left behind with
// its goroutine: Serve then says so, and the process is to end.
package kernel
