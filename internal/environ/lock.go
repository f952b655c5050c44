package environ

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// LockFile waits until no other process has locked a file, which is made where it isn't
// there, and locks it as long as what it returns stays open. waiting is called once if it
// has to wait. The error is ctx's cause when that ends first.
func LockFile(ctx context.Context, path string, waiting func()) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	for told := false; ; told = true {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			f.Close()
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if !told {
			waiting()
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			f.Close()
			return nil, context.Cause(ctx)
		}
	}
}
