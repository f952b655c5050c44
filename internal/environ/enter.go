package environ

import (
	"errors"
	"fmt"
	"syscall"
)

// Enter tells whether whom c stands for can have dir, which is there, as its working
// directory; nil stands for this process's own user. A child says it, at the step where a
// program's would: for another user's groups and an ACL nothing else has the answer. The
// error is for the user.
func Enter(dir string, c *syscall.Credential) error {
	// A program without a name is never found, so nothing is run.
	_, err := syscall.ForkExec("", nil, &syscall.ProcAttr{Dir: dir, Sys: &syscall.SysProcAttr{Credential: c}})
	switch {
	case errors.Is(err, syscall.EACCES) && c != nil:
		return fmt.Errorf("uid %d, whom cells run as, can't enter %s", c.Uid, dir)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%s can't be entered", dir)
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%s is no directory", dir)
	}
	return nil
}
