package logging

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"syscall"

	"github.com/cellard/cellard/protocol/api"
)

// Describer is an error that knows how to be logged: LogText holds nothing that cells,
// hosts or kernels wrote.
type Describer interface{ LogText() string }

// Describe tells an error by its kind: the first in its chain that is known. Its text,
// which may quote what somebody wrote or name files, is left out; of an error of a kind
// that is not known the type is told.
func Describe(err error) string {
	var (
		describer Describer
		refusal   *api.Error
		path      *fs.PathError
		link      *os.LinkError
		call      *os.SyscallError
		network   *net.OpError
		number    syscall.Errno
	)
	switch {
	case err == nil:
		return "none"
	case errors.As(err, &describer):
		return describer.LogText()
	case errors.As(err, &refusal):
		return string(refusal.Code)
	case errors.As(err, &network):
		return network.Op + " " + network.Net + ": " + Describe(network.Err)
	case errors.As(err, &path):
		return path.Op + ": " + Describe(path.Err)
	case errors.As(err, &link):
		return link.Op + ": " + Describe(link.Err)
	case errors.As(err, &call):
		return call.Syscall + ": " + Describe(call.Err)
	case errors.As(err, &number):
		return number.Error()
	}
	for _, known := range known() {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	for { // what is wrapped tells more than what wraps it
		inner := errors.Unwrap(err)
		if inner == nil {
			return fmt.Sprintf("%T", err)
		}
		err = inner
	}
}

// known are errors whose texts are the standard library's own and fixed.
func known() []error {
	return []error{context.Canceled, context.DeadlineExceeded, io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe,
		net.ErrClosed, os.ErrDeadlineExceeded, fs.ErrClosed, fs.ErrNotExist, fs.ErrExist, fs.ErrPermission}
}
