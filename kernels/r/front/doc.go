// Package front makes R's kernel one that any Jupyter client can use. R's own process
// (package r) sends messages alone: what a cell prints, and what its children print, goes
// out by the descriptors 1 and 2, which the agent reads beside them. Kernel is that reader
// for other clients: a kernel.Language that starts R, as the agent does, and is its one
// client.
//
// Begin with Kernel.Execute (kernel.go). R's messages come to take (receive.go), one after
// another; before each, what the pipes have is handed on, so that what was written before
// a message comes before it. For the other half R waits: see cellard_order.R.
//
// # Who owns what
//
// A Kernel owns R's process, its private directory and the pipes (process.go), and Close
// ends all of them, with what cells have started. Where Close isn't reached, R dies by
// Pdeathsig, and the keeper, a process that outlives this one, ends and removes the rest.
package front
