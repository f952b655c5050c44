// Package bash is the Bash kernel: one long-lived shell that runs the cells, and a copy
// of it, forked before each, that takes over where the shell is killed.
//
// Begin with New, whose Kernel is a kernel.Language. script.go is the shell's side.
//
// # The way of a cell
//
// The shell runs a loop that waits for a byte on a pipe. The kernel writes two texts into
// files in memory (memfd): what has to be set up, and the cell's code. The shell
// sources the first, then the second, then tells its status, its flags and its traps on
// another pipe. It opens all of these by their names under /proc each time, so that
// neither a cell nor its children hold or inherit any of them, and no file is made.
//
// Each cell has pipes of its own as its stdout and stderr. A process that outlives its
// cell still writes into that one's: what is late is never taken for a later cell's.
//
// # When the shell ends
//
// exit, set -e, set -u and a signal that ends the shell run its EXIT trap, which forks:
// the copy, with all variables, goes on as the shell. So is a cell interrupted: by a
// signal whose trap exits, while the cell's children are ended by signals. Where no
// trap is run (SIGKILL, exec) the copy from before the cell takes over, and the cell
// ends with an error KernelDied. It costs two forks, which are done while the shell
// is idle; a shell that holds pipes or sockets open has no copy, because that one would
// hold them open too.
//
// # Who owns what
//
// A Kernel owns the shell, its copy and all that they have started: Close ends them.
// Its goroutines are one for the status pipe, one for display, one for each shell that
// is watched, and for each cell whose output isn't closed yet that of its Streams.
package bash
