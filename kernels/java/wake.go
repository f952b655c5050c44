package java

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// wakeSignal is what the JDK itself interrupts a system call with (NativeThread.c), by a
// handler that does nothing.
const wakeSignal = 64 - 2

// wake gets a thread out of a system call such as accept, so that it comes to what
// stops it. Where the JDK has no handler for the signal (it installs it with the first
// channel or socket), the thread is in no such call, and the signal would end the machine.
func wake(pid, tid int) {
	if catches(pid, wakeSignal) {
		_ = unix.Tgkill(pid, tid, unix.Signal(wakeSignal))
	}
}

// catches tells whether a process has a handler for a signal.
func catches(pid, signal int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return false
	}
	for line := range bytes.Lines(status) {
		if mask, ok := bytes.CutPrefix(line, []byte("SigCgt:")); ok {
			caught, err := strconv.ParseUint(string(bytes.TrimSpace(mask)), 16, 64)
			return err == nil && caught>>(signal-1)&1 == 1
		}
	}
	return false
}
