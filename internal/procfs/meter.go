package procfs

import (
	"bytes"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Meter tells what a process spends between two moments. It is not safe for concurrent
// use. With Children, what the process's own children spend counts too, also of those
// that live: for a kernel whose interpreter is a process of its own. (Of children that
// were waited for the CPU time always counts, as their parent's.)
type Meter struct {
	Children bool
	// CPU, if it isn't nil, tells what the process and all that came from it have spent, in
	// place of what /proc tells of them; false where it can't.
	CPU func() (time.Duration, bool)

	pid   int
	self  *process
	kids  map[int]*process
	lists lists
	cpu   time.Duration // at Begin
	cpus  bool          // it could be told
	peak  bool          // the peaks count from Begin
	buf   []byte
}

// process is one process's files in /proc, held open: that is a fifth of the time that
// opening them takes, and after the process's end they tell of no other one.
type process struct {
	pid                int
	stat, status, refs int
}

// maxChildren is how many children are counted at most: each takes three open files.
const maxChildren = 32

// NewMeter returns the Meter of a process. Who calls it closes it.
func NewMeter(pid int) *Meter {
	return &Meter{pid: pid, self: openProcess(pid), kids: map[int]*process{}, buf: make([]byte, 4096)}
}

func openProcess(pid int) *process {
	dir := "/proc/" + strconv.Itoa(pid) + "/"
	open := func(name string, flags int) int {
		fd, err := unix.Open(dir+name, flags|unix.O_CLOEXEC, 0)
		if err != nil {
			return -1
		}
		return fd
	}
	return &process{pid, open("stat", unix.O_RDONLY), open("status", unix.O_RDONLY), open("clear_refs", unix.O_WRONLY)}
}

func (p *process) close() {
	for _, fd := range []int{p.stat, p.status, p.refs} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// Close closes the files.
func (m *Meter) Close() {
	m.self.close()
	for _, p := range m.kids {
		p.close()
	}
	m.kids = map[int]*process{}
	m.lists.close()
}

// Begin begins to count.
func (m *Meter) Begin() {
	m.follow()
	m.cpu, m.cpus = m.spent()
	m.peak = true
	for p := range m.each {
		m.peak = m.reset(p) && m.peak
	}
}

// Spent is the CPU time since Begin; false where it can't be told.
func (m *Meter) Spent() (time.Duration, bool) {
	m.follow()
	t, ok := m.spent()
	return max(0, t-m.cpu), ok && m.cpus
}

// Peak is the peak resident size since Begin in bytes, summed over the processes; 0
// where it can't be told.
func (m *Meter) Peak() int64 {
	if !m.peak {
		return 0
	}
	var sum int64
	for p := range m.each {
		sum += m.high(p)
	}
	return sum
}

// each goes over the processes.
func (m *Meter) each(yield func(*process) bool) {
	if !yield(m.self) {
		return
	}
	for _, p := range m.kids {
		if !yield(p) {
			return
		}
	}
}

// follow brings the children up to date.
func (m *Meter) follow() {
	if !m.Children {
		return
	}
	alive := map[int]bool{}
	for _, pid := range m.lists.children(m.pid, m.buf) {
		p := m.kids[pid]
		if p == nil && len(m.kids) < maxChildren {
			p = openProcess(pid)
			m.kids[pid] = p
		}
		// Of one that ended, the id may be another's by now.
		alive[pid] = p != nil && m.parent(p) == m.pid
	}
	for pid, p := range m.kids {
		if !alive[pid] {
			p.close()
			delete(m.kids, pid)
		}
	}
}

func (m *Meter) parent(p *process) int {
	s, ok := parseStat(p.pid, m.pread(p.stat))
	if !ok {
		return -1
	}
	return s.Parent
}

// spent is the CPU time of the processes, and of what they waited for, up to now.
func (m *Meter) spent() (sum time.Duration, ok bool) {
	if m.CPU != nil {
		return m.CPU()
	}
	for p := range m.each {
		var ts unix.Timespec
		// The CPU-time clock of a process: clock_getcpuclockid(3).
		err := unix.ClockGettime(int32(^p.pid<<3|2), &ts)
		s, there := parseStat(p.pid, m.pread(p.stat))
		if err != nil || !there {
			if p == m.self {
				return 0, false
			}
			continue // it ended just now: what it spent is its parent's once it is waited for
		}
		sum += time.Duration(ts.Nano()) + time.Duration(s.childTicks)*Tick
	}
	return sum, true
}

// reset makes a process's peak memory count from now (proc(5), clear_refs).
func (m *Meter) reset(p *process) bool {
	n, err := unix.Pwrite(p.refs, []byte("5"), 0)
	return err == nil && n == 1
}

// high is the peak resident size of a process.
func (m *Meter) high(p *process) int64 { return peakOf(m.pread(p.status)) }

// peakOf finds VmHWM in what /proc/PID/status tells.
func peakOf(b []byte) int64 {
	_, rest, ok := bytes.Cut(b, []byte("VmHWM:"))
	if !ok {
		return 0
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	n, _, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
	kb, _ := strconv.ParseInt(string(n), 10, 64)
	return kb << 10
}

// pread reads a file of /proc from its start; it is valid until the next read.
func (m *Meter) pread(fd int) []byte {
	n, err := unix.Pread(fd, m.buf, 0)
	if err != nil || n < 0 {
		return nil
	}
	return m.buf[:n]
}

// lists are the lists of the children of each thread of a process, held open: opening
// them for each cell would take most of the time that a Meter does.
type lists struct {
	dir     int // the directory of the threads; 0 before the first use
	threads []string
	fds     []int
}

// maxLists is how many are held open. Of a process with more threads each is opened anew.
const maxLists = 32

// children are the children of a process, as far as each list goes into buf.
func (l *lists) children(pid int, buf []byte) (pids []int) {
	if !l.current(pid, buf) {
		pids, _ = childrenOf(pid)
		return pids
	}
	for _, fd := range l.fds {
		if n, err := unix.Pread(fd, buf, 0); err == nil { // none: the thread ends just now
			pids = appendPIDs(pids, buf[:n])
		}
	}
	return pids
}

// current opens the lists anew where threads have come or gone; false where they can't be
// held.
func (l *lists) current(pid int, buf []byte) bool {
	dir := "/proc/" + strconv.Itoa(pid) + "/task"
	if l.dir == 0 {
		fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return false
		}
		l.dir = fd
	}
	if _, err := unix.Seek(l.dir, 0, unix.SEEK_SET); err != nil {
		return false
	}
	names := entries(l.dir, buf)
	if slices.Equal(names, l.threads) {
		return len(l.fds) > 0
	}
	l.closeLists()
	l.threads = names
	if len(names) > maxLists {
		return false
	}
	for _, name := range names {
		if fd, err := unix.Open(dir+"/"+name+"/children", unix.O_RDONLY|unix.O_CLOEXEC, 0); err == nil {
			l.fds = append(l.fds, fd)
		}
	}
	return len(l.fds) > 0
}

func (l *lists) closeLists() {
	for _, fd := range l.fds {
		unix.Close(fd)
	}
	l.fds, l.threads = nil, nil
}

func (l *lists) close() {
	l.closeLists()
	if l.dir != 0 {
		unix.Close(l.dir)
		l.dir = 0
	}
}
