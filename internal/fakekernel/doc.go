// Package fakekernel is a Jupyter kernel that misbehaves on demand, for tests. It
// runs no language: a cell is lines of commands (see the table in cell.go), and
// among them are those that break the protocol, such as
//
//	print hello
//	!no-idle
//
// A test runs its own binary as the kernel:
//
//	func TestMain(m *testing.M) {
//		if fakekernel.Wanted() {
//			fakekernel.Main()
//		}
//		os.Exit(m.Run())
//	}
//
// and starts os.Args[0] with the arguments -f and a connection file, and with
// Env set to how the kernel is to start: one of the Start values, or "" for a
// kernel that starts well.
//
// The kernel is an ordinary process and so can die like one. It ends by itself
// when its parent has gone.
//
// It speaks ZMTP, the framing and the signatures with code of its own, byte by
// byte: in order to get them wrong, and so that a mistake in protocol/zmtp or
// protocol/jupyter isn't made twice and missed. Its test lets jupyter_client, a
// stranger to both, judge how it behaves when nothing is asked of it.
//
// socket.go is ZMTP's side that binds, message.go the Jupyter message, kernel.go
// what a kernel does with a request and cell.go the commands.
package fakekernel
