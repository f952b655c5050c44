// Package output is what kernels of our own need for what their interpreter puts out
// past any protocol: Streams hands on the text of the descriptors 1 and 2 to the cell
// that it belongs to, File makes a result of a file, and Reaper ends the processes
// that a cell has started.
//
// # Who owns what
//
// Whoever makes Streams or a Reaper closes it, which waits for its goroutine. A Reaper
// is one a process: it waits for all children that were not started by it.
package output
