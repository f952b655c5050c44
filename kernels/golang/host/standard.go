package host

import (
	"errors"
	"os"
	"sync/atomic"
	"syscall"
)

// standard is the process's stdout or stderr. A cell may close it: the next one has it
// again, by another descriptor of the same pipe.
type standard struct {
	fd    int
	spare int       // the other descriptor, -1 for none
	name  **os.File // os.Stdout
	file  atomic.Pointer[os.File]
}

var standards = [2]standard{{fd: 1, spare: -1, name: &os.Stdout}, {fd: 2, spare: -1, name: &os.Stderr}}

// keepStandard is called once, before there is a cell.
func keepStandard() {
	for i := range standards {
		s := &standards[i]
		s.file.Store(*s.name)
		s.spare = duplicate(s.fd, 64) // not a number that a cell's own files would get
	}
}

// duplicate gives another descriptor of a file, from a number on; -1 for none.
func duplicate(fd, from int) int {
	n, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_DUPFD_CLOEXEC, uintptr(from))
	if errno != 0 {
		return -1
	}
	return int(n)
}

// reopenStandard opens what earlier cells have closed. A number that has come to mean
// another file is left to that.
func reopenStandard() {
	for i := range standards {
		s := &standards[i]
		var st syscall.Stat_t
		free := errors.Is(syscall.Fstat(s.fd, &st), syscall.EBADF)
		was := s.file.Load()
		closed := isClosed(was)
		if s.spare < 0 || !free && !closed {
			continue
		}
		fd := s.fd
		if !free {
			fd = duplicate(s.spare, 3)
		} else if syscall.Dup3(s.spare, fd, 0) != nil {
			fd = -1
		}
		if !closed || fd < 0 {
			continue
		}
		now := os.NewFile(uintptr(fd), was.Name())
		s.file.Store(now)
		if *s.name == was {
			*s.name = now
		}
	}
}

// isClosed tells a file that Close was called of. What Stat says of one differs between
// versions of Go.
func isClosed(f *os.File) bool {
	conn, err := f.SyscallConn()
	return err != nil || conn.Control(func(uintptr) {}) != nil
}

// logged is where the standard logger writes: to stderr.
type logged struct{ h cellHost }

func (l logged) Write(b []byte) (int, error) {
	return stream{2, standards[1].file.Load(), l.h}.Write(b)
}
