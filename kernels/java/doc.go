// Package java is the kernel for Java: JShell's API in one virtual machine, which keeps
// the state, and this process, which speaks Jupyter's protocol for it.
//
// # The two sides
//
// The Java side (src, compiled into kernel.jar, which is embedded) splits cells, has
// JShell compile them, puts checks into the bytecode so that any loop can be stopped
// (Instrument), runs them on one thread, and makes results of values. This side starts
// the virtual machine, hands on what comes from it (which is a stranger's, and is
// checked), and does what Java can't do to itself: it stops a thread that is deep in a
// library through the debugger's protocol (jdwp.go), ends the processes that a cell
// has started, and changes the process's directory for a cell (directory.go).
//
// What a cell prints and shows comes as frames; what children and native code write to
// the descriptors 1 and 2 comes through kernels/output. Before a frame is handed on,
// those pipes are emptied (read), and before a cell starts a process Java waits until its
// frames were handed on (Calls.settle, Guard.starts): so both keep their order.
//
// # Who owns what
//
// New starts nothing. Info starts the virtual machine, and Close ends it and waits for
// all that came with it. kernel.jar is made by `go run build.go`, with a JDK 17.
//
// Begin with Language.Execute on this side, and Session.execute on the other; wire.go
// has what they say to each other.
package java

// Implementation is the kernel's name for itself, Version its version.
const (
	Implementation = "cellard-java"
	Version        = "1"
)
