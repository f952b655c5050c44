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
	What string
	// State, or else Status, tells how it ended.
	State  *os.ProcessState
	Status syscall.WaitStatus
}

func (e *DiedError) status() syscall.WaitStatus {
	if e.State != nil {
		if status, ok := e.State.Sys().(syscall.WaitStatus); ok {
			return status
		}
	}
	return e.Status
}

func (e *DiedError) Error() string {
	if sig := e.Signal(); sig != 0 {
		return fmt.Sprintf("%s has ended: %v", e.What, sig)
	}
	return fmt.Sprintf("%s has ended: exit status %d", e.What, e.ExitCode())
}

// Signal is the signal that ended it; 0: none did.
func (e *DiedError) Signal() syscall.Signal {
	if status := e.status(); status.Signaled() {
		return status.Signal()
	}
	return 0
}

// ExitCode is its exit code, where no signal ended it.
func (e *DiedError) ExitCode() int { return e.status().ExitStatus() }
