package kernel

import (
	"fmt"
	"os"
	"syscall"
)

// DiedError is Execute's error for an interpreter whose process has ended under a cell:
// the kernel's process then ends in the same way, so that whoever started it learns the
// reason.
type DiedError struct {
	// What is the process: "bash", "node".
	What  string
	State *os.ProcessState
}

func (e *DiedError) Error() string { return fmt.Sprintf("%s has ended: %v", e.What, e.State) }

// Signal is the signal that ended it; 0: none did.
func (e *DiedError) Signal() syscall.Signal {
	if status, ok := e.State.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return status.Signal()
	}
	return 0
}
