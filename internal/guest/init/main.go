// Command init is PID 1 of the test's guest, and a child of it that does what the test
// asks. PID 1 makes the machine usable, waits for whatever becomes its child, and
// powers off when the other has ended.
package main

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

func main() {
	if os.Getpid() != 1 {
		fmt.Println("init: control ended:", control())
		return
	}
	err := setUp()
	if err == nil {
		err = keep()
	}
	fmt.Println("init:", err)
	unix.Sync()
	fmt.Println("init: power off:", unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF))
	select {} // PID 1 must not end
}

// keep starts the child and reaps until it has ended. All waiting of PID 1 is here: one
// for any child would take the end of those that something else waits for.
func keep() error {
	child, err := os.StartProcess("/proc/self/exe", []string{"control"}, &os.ProcAttr{
		Dir:   "/",
		Env:   []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"},
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
	})
	if err != nil {
		return err
	}
	for {
		var status unix.WaitStatus
		switch pid, err := unix.Wait4(-1, &status, 0, nil); {
		case err == unix.EINTR:
		case err != nil:
			return fmt.Errorf("wait4: %w", err)
		case pid == child.Pid:
			return fmt.Errorf("control ended with %d", status.ExitStatus())
		}
	}
}
