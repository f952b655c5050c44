// Package node is the kernel of JavaScript and of TypeScript, on Node.js: a Language
// for package protocol/jupyter/kernel.
//
// Begin with New and Kernel.Execute (kernel.go). The other half is JavaScript, in js/,
// embedded in the binary (embed.go): begin there with main.js and cells.js.
//
// # The way of a cell
//
// One Node process runs all cells. Execute sends it the code; rewrite.js makes of that
// what the V8 inspector's Runtime.evaluate takes in its REPL mode, in which names can be
// declared again and await stands alone; cells.js runs it in an inspector session of
// the same process. TypeScript becomes JavaScript here, before (typescript.go), with a
// source map by which positions.js tells the user's own lines.
//
// What the cell prints and shows comes as frames over a pipe (frames.go), each with its
// cell's id; what children and native code write to the descriptors 1 and 2 comes
// through kernels/output. Before a frame is handed on, those pipes are emptied, and
// before a child is started Node waits until its frames were taken: so both keep their
// order.
//
// # Stopping
//
// When a cell's context ends, what the main thread computes is terminated from here over
// Node's debugging interface (watch.go, inspector.go), the main thread ends a cell that
// only waits, and the processes that the cell started are ended. What would run later remembers its cell (async.js,
// callbacks.js, and the gate around each await): of a stopped cell nothing runs any
// more.
//
// # A stranger's code
//
// The kernel's JavaScript has a realm of its own, so what a cell does to prototypes and
// globals isn't done to it. What comes over the pipe is not believed: frames are
// bounded and checked, and a bad one ends the kernel. If Node dies, Execute returns a
// *kernel.DiedError.
//
// # Who owns what
//
// A Kernel owns the Node process, its pipes and its goroutines; Close ends them all and
// waits for them. It makes the process a subreaper (see kernels/output), so there is
// one Kernel in a process.
package node
