package bash

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cellard/cellard/kernels/output"
)

// maxFrame bounds what a shell tells at once: its traps, which are a user's text.
const maxFrame = 1 << 20

// shell is the shell that runs the cells: the process that it is now, its copy, and the
// pipes to both.
type shell struct {
	reaper *output.Reaper
	paths  paths
	files  []*os.File // all that close closes

	command, copyIn *os.File // the writing ends
	commandR        *os.File // the reading end, of the shells
	setup, code     *os.File // in memory
	status          *os.File // the reading end
	requests        *os.File // the same, of display
	answers, stale  *os.File // the writing end, and the reading one
	inodes          map[uint64]bool
	commandInode    uint64
	statusConn      syscall.RawConn
	reading         sync.WaitGroup
	watching        sync.WaitGroup

	changed chan struct{} // of one element: something below changed

	mu      sync.Mutex // guards what follows, and the reading of status
	buf     []byte
	frame   []byte // of E or X, its traps so far; nil: outside of one
	head    string
	main    int          // the shell that runs cells
	copy    int          // its copy; 0: there is none
	copying bool         // one was asked for, and has not told of itself
	handing int          // a shell that has ended, or is about to, with a copy to come
	dying   map[int]bool // shells that have handed over and are not gone yet
	dead    map[int]unix.WaitStatus
	watched map[int]bool // all shells that are not dead
	took    int          // how many have taken over so far
	fresh   bool         // the last that has, has not told of a cell yet
	before  int          // the shell that was main before
	level   int          // of nesting, as markers of set -x
	end     ended
	closed  bool
}

// ended is what a shell told at the end of a cell.
type ended struct {
	cell   int
	status int
	flags  string
	traps  []trap
	bad    string // what could not be set up for the cell
	pid    int    // who told it; 0: nobody has
	moved  bool   // by the shell that has taken over in that cell
}

// startShell starts bash. Nothing of it is there when it fails.
func startShell(path string, env []string, reaper *output.Reaper, stdout, stderr *os.File) (_ *shell, err error) {
	s := &shell{reaper: reaper, changed: make(chan struct{}, 1), dying: map[int]bool{}, dead: map[int]unix.WaitStatus{}, watched: map[int]bool{}, inodes: map[uint64]bool{}}
	defer func() {
		if err != nil {
			s.closeFiles()
		}
	}()
	pipe := func(name *string, readerIsShell bool) (r, w *os.File) {
		if err != nil {
			return nil, nil
		}
		if r, w, err = os.Pipe(); err == nil {
			s.files = append(s.files, r, w)
			theirs := w
			if readerIsShell {
				theirs = r
			}
			*name = procPath(theirs)
			s.inodes[inodeOf(theirs)] = true
		}
		return r, w
	}
	memory := func(name string, path *string) (f *os.File) {
		if err != nil {
			return nil
		}
		var fd int
		if fd, err = unix.MemfdCreate(name, unix.MFD_CLOEXEC); err == nil {
			f = os.NewFile(uintptr(fd), name)
			s.files = append(s.files, f)
			*path = procPath(f)
		}
		return f
	}
	s.commandR, s.command = pipe(&s.paths.command, true)
	_, s.copyIn = pipe(&s.paths.copy, true)
	s.status, _ = pipe(&s.paths.status, false)
	s.requests, _ = pipe(&s.paths.requests, false)
	s.stale, s.answers = pipe(&s.paths.answers, true)
	s.setup, s.code = memory("setup", &s.paths.setup), memory("code", &s.paths.code)
	if err != nil {
		return nil, err
	}
	s.commandInode = inodeOf(s.commandR)
	if s.statusConn, err = s.status.SyscallConn(); err != nil {
		return nil, err
	}
	keepDescriptors()
	if err = write(s.code, s.paths.script()); err != nil {
		return nil, err
	}
	cmd := exec.Command(path, "--norc", "--noprofile", "-c", `\builtin source `+s.paths.code, "bash")
	cmd.Args[0] = "bash"
	cmd.Env = env
	cmd.Stdout, cmd.Stderr = stdout, stderr
	// A session of its own, without a terminal: what asks on one fails at once.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err = reaper.Start(cmd); err != nil {
		return nil, err
	}
	s.main = cmd.Process.Pid
	s.watch(s.main)
	_ = cmd.Process.Release()
	s.reading.Add(1)
	go s.read()
	return s, nil
}

// keepDescriptors has no child inherit what this process has inherited itself: a shell
// would seem to hold it.
func keepDescriptors() {
	d, err := os.Open("/proc/self/fd")
	if err != nil {
		return
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	for _, name := range names {
		if fd, err := strconv.Atoi(name); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
}

// procPath is how another process opens a file of this one.
func procPath(f *os.File) string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), f.Fd()) }

func inodeOf(f *os.File) uint64 {
	var st unix.Stat_t
	_ = unix.Fstat(int(f.Fd()), &st)
	return st.Ino
}

// notify says that something changed. The caller need not hold mu.
func (s *shell) notify() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// read reads what the shells tell.
func (s *shell) read() {
	defer s.reading.Done()
	for {
		err := s.statusConn.Read(func(fd uintptr) bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.take(int(fd)) || s.closed
		})
		if err != nil || s.isClosed() {
			return
		}
		s.notify()
	}
}

func (s *shell) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// takeNow reads what has been told so far.
func (s *shell) takeNow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		_ = s.statusConn.Control(func(fd uintptr) {
			for s.take(int(fd)) {
			}
		})
	}
}

// take reads once; the caller holds mu. It is false where there is nothing.
func (s *shell) take(fd int) bool {
	var b [4096]byte
	n, err := unix.Read(fd, b[:])
	if err == unix.EINTR {
		return true
	}
	if err != nil || n <= 0 {
		return false
	}
	s.buf = append(s.buf, b[:n]...)
	for {
		i := bytes.IndexByte(s.buf, '\n')
		if i < 0 {
			break
		}
		s.line(string(s.buf[:i]))
		s.buf = s.buf[i+1:]
	}
	if len(s.buf) > maxFrame {
		s.buf = nil // a stranger's
	}
	return true
}

// line takes a line of the status pipe. What isn't ours is passed over: it may be the
// output of a trap, or a stranger's.
func (s *shell) line(line string) {
	kind, rest, _ := strings.Cut(line, " ")
	pid, err := strconv.Atoi(rest)
	switch {
	// A copy tells of itself whenever it is there, also between another's lines.
	case kind == "\x01K":
		if err == nil && s.ours(pid) {
			s.copy, s.copying = pid, false
		}
	case kind == "\x01T":
		if err == nil && s.ours(pid) {
			s.takeOver(pid)
		}
	case s.frame != nil && line == "\x01.":
		s.told(s.head, parseTraps(string(s.frame)))
		s.frame = nil
	case s.frame != nil:
		if len(s.frame) < maxFrame {
			s.frame = append(append(s.frame, line...), '\n')
		}
	case kind == "\x01X":
		s.frame, s.head = []byte{}, line
		if err == nil && pid == s.main { // before its traps: the copy is about to come
			s.handing = pid
		}
	case kind == "\x01E":
		s.frame, s.head = []byte{}, line
	case strings.HasPrefix(line, string(rune(marker))):
		s.level = len(line) - len(strings.TrimLeft(line, string(rune(marker)))) + 2 // in the loop, and there in the cell's code
	}
}

// ours tells whether a process may be a shell of this kernel: a cell could name any.
func (s *shell) ours(pid int) bool {
	return pid > 1 && pid != os.Getpid() && (pid == s.main || descends(pid))
}

// takeOver makes a process the one that runs cells.
func (s *shell) takeOver(pid int) {
	if pid == s.main {
		return // the first one says so too
	}
	if s.handing == 0 && pid != s.copy {
		// Not expected: its shell was killed while it forked, and the copy from before the
		// cell has been asked. There can be but one.
		_ = unix.Kill(pid, unix.SIGKILL)
		return
	}
	if _, gone := s.dead[s.main]; !gone {
		s.dying[s.main] = true
	}
	if pid == s.copy {
		s.copy = 0
	}
	s.before, s.main, s.handing = s.main, pid, 0
	s.took++
	s.fresh = true
	s.watch(pid)
}

// told takes the frame that a cell, or a shell, has ended with.
func (s *shell) told(head string, traps []trap) {
	f := strings.Split(head, " ")
	if f[0] == "\x01X" {
		s.end.traps, s.end.moved, s.end.pid = traps, true, 0
		return
	}
	if len(f) < 6 {
		return
	}
	cell, err1 := strconv.Atoi(f[1])
	status, err2 := strconv.Atoi(f[2])
	pid, err3 := strconv.Atoi(f[3])
	if errors.Join(err1, err2, err3) != nil || pid != s.main {
		return
	}
	moved := s.end.moved && s.end.pid == 0
	if s.fresh { // a subshell's traps are not what it was given: those told before count
		traps, s.fresh = s.end.traps, false
	}
	s.end = ended{cell: cell, status: status & 0xff, pid: pid, flags: f[4], bad: f[5], traps: traps, moved: moved}
}

// result is the status that a cell ended with. Of a shell that has ended under it the
// system knows better than $? in a trap: a signal's is none.
func (s *shell) result() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if was, ok := s.dead[s.before]; ok && s.end.moved {
		if was.Signaled() {
			return 128 + int(was.Signal())
		}
		return was.ExitStatus()
	}
	return s.end.status
}

// forget begins a cell: nothing has been told of it.
func (s *shell) forget() {
	s.mu.Lock()
	s.end.pid, s.end.moved = 0, false
	s.mu.Unlock()
}

// watch has dead know of a process's end; the caller holds mu, or is alone yet. The first shell is waited for by its own
// goroutine, others as orphans that came to us.
func (s *shell) watch(pid int) {
	s.reaper.Own(pid)
	s.watched[pid] = true
	s.watching.Add(1)
	go func() {
		defer s.watching.Done()
		status := s.reaper.WaitFor(pid)
		s.mu.Lock()
		s.dead[pid] = status
		delete(s.dying, pid)
		delete(s.watched, pid)
		if pid == s.copy {
			s.copy = 0
		}
		s.mu.Unlock()
		s.notify()
	}()
}

// takeBack takes the commands back that no shell has read. Bytes are told.
func (s *shell) takeBack() string {
	conn, err := s.commandR.SyscallConn()
	if err != nil {
		return ""
	}
	var b [256]byte
	n := 0
	_ = conn.Control(func(fd uintptr) {
		if left, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ); err == nil && left > 0 {
			n, _ = unix.Read(int(fd), b[:min(left, len(b))])
		}
	})
	return string(b[:max(0, n)])
}

// write replaces the content of a file in memory.
func write(f *os.File, text string) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(text), 0)
	return err
}

func (s *shell) closeFiles() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	for _, f := range s.files {
		f.Close()
	}
}
