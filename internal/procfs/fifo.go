package procfs

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ReleaseFIFO lets the main thread of a process go where it waits for the other end of a
// FIFO, as one may whose cell was stopped: an interpreter that repeats a call which a
// signal has cut short can't be stopped there. The FIFO is opened for a moment: what waits
// for the other end goes on, and what then reads comes to the end. Where the thread waits
// for room, since nobody reads what it writes, that is read in their place.
func ReleaseFIFO(pid int) {
	path, writes := waitsForFIFO(pid)
	if path == "" {
		return
	}
	// What the path names may be another's by now, and there are devices that act as they are
	// opened. This opens nothing yet.
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFIFO {
		return
	}
	// This never waits.
	end, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		return
	}
	defer unix.Close(end)
	buf := make([]byte, 64<<10)
	for until, left := time.Now().Add(readFor), 0; writes && left < readTries && time.Now().Before(until); {
		if now, still := waitsForFIFO(pid); still && now == path {
			_, _ = unix.Read(end, buf)
			left = 0
			continue
		}
		left++ // or it is just writing more
		time.Sleep(100 * time.Microsecond)
	}
}

// How long ReleaseFIFO reads, and how often it looks again whether the writer is gone.
const (
	readFor   = 100 * time.Millisecond
	readTries = 20
)

// waitsForFIFO is the path of the FIFO that a process's main thread waits for, or "".
// writes: for room in it; it has a name then, and is no pipe of the kernel's own.
func waitsForFIFO(pid int) (path string, writes bool) {
	b, ok := readFile(fmt.Sprintf("/proc/%d/syscall", pid), 256)
	if !ok {
		return "", false
	}
	f := strings.Fields(string(b)) // "running", or a number and arguments
	if len(f) < 3 {
		return "", false
	}
	number, _ := strconv.ParseInt(f[0], 10, 64)
	first, _ := strconv.ParseUint(f[1], 0, 64)
	second, _ := strconv.ParseUint(f[2], 0, 64)
	switch number {
	case unix.SYS_OPENAT: // libuv's are all from the current directory
		if path = textAt(pid, second); path == "" {
			return "", false
		}
		if !filepath.IsAbs(path) {
			path = fmt.Sprintf("/proc/%d/cwd/%s", pid, path)
		}
	case unix.SYS_READ, unix.SYS_READV, unix.SYS_WRITE, unix.SYS_WRITEV:
		path = fmt.Sprintf("/proc/%d/fd/%d", pid, first)
		if number == unix.SYS_WRITE || number == unix.SYS_WRITEV {
			name, _ := os.Readlink(path)
			writes = filepath.IsAbs(name)
		}
	default:
		return "", false
	}
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFIFO {
		return "", false
	}
	return path, writes
}

// textAt reads a path from a process's memory, a page at a time: the next may not be there.
func textAt(pid int, at uint64) string {
	page := uint64(os.Getpagesize())
	var text []byte
	for len(text) <= unix.PathMax {
		b := make([]byte, page-at%page)
		n, err := unix.ProcessVMReadv(pid, []unix.Iovec{{Base: &b[0], Len: page - at%page}}, []unix.RemoteIovec{{Base: uintptr(at), Len: len(b)}}, 0)
		if err != nil || n <= 0 {
			return ""
		}
		if end := bytes.IndexByte(b[:n], 0); end >= 0 {
			return string(append(text, b[:end]...))
		}
		text = append(text, b[:n]...)
		at += uint64(n)
	}
	return ""
}
