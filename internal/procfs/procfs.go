// Package procfs reads of processes what /proc tells: who came from whom, what was born
// since, what it cost. Nothing but a Meter holds files open.
package procfs

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"

	"golang.org/x/sys/unix"
)

// Stat is what /proc/PID/stat tells of a process (proc(5)).
type Stat struct {
	PID, Parent, Group, Session int
	State                       byte
	Start                       uint64 // clock ticks since boot
	childTicks                  int64  // CPU time of the children that it waited for
}

// Tick is the unit of /proc's times: USER_HZ is 100 on every architecture that Go runs on.
const Tick = 10 * time.Millisecond

// Read reads the stat of a process; false where there is none.
func Read(pid int) (Stat, bool) {
	b, ok := readFile("/proc/"+strconv.Itoa(pid)+"/stat", 1024)
	if !ok {
		return Stat{}, false
	}
	return parseStat(pid, b)
}

// parseStat reads the fields after the command's name, which may hold anything.
func parseStat(pid int, b []byte) (Stat, bool) {
	i := bytes.LastIndexByte(b, ')')
	if i < 0 {
		return Stat{}, false
	}
	f := strings.Fields(string(b[i+1:]))
	if len(f) < 20 || len(f[0]) != 1 || f[0][0] > unicode.MaxASCII {
		return Stat{}, false
	}
	num := func(i int) int64 { n, _ := strconv.ParseInt(f[i], 10, 64); return n }
	return Stat{PID: pid, State: f[0][0], Parent: int(num(1)), Group: int(num(2)), Session: int(num(3)),
		childTicks: num(13) + num(14), Start: uint64(num(19))}, true
}

// All scans /proc.
func All() []Stat {
	d, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	var all []Stat
	for _, n := range names {
		if pid, err := strconv.Atoi(n); err == nil {
			if s, ok := Read(pid); ok {
				all = append(all, s)
			}
		}
	}
	return all
}

// Children are the processes whose parent is pid, zombies too. /proc/PID/task/TID/children
// is quicker than a scan, where the kernel has it (CONFIG_PROC_CHILDREN).
func Children(pid int) []Stat {
	var found []Stat
	pids, ok := childrenOf(pid)
	if !ok {
		for _, s := range All() {
			if s.Parent == pid {
				found = append(found, s)
			}
		}
		return found
	}
	for _, pid := range pids {
		if s, ok := Read(pid); ok {
			found = append(found, s)
		}
	}
	return found
}

// childrenOf lists the children of all threads of a process; false where no list can be
// read. It is done for each cell: a pattern of path/filepath would read the directory of
// each thread as well, which takes several times as long.
func childrenOf(pid int) (pids []int, ok bool) {
	dir := "/proc/" + strconv.Itoa(pid) + "/task/"
	for _, thread := range threads(dir) {
		b, had := readFile(dir+thread+"/children", 256)
		ok = ok || had
		if len(b) == 256 { // more than most have
			b, _ = os.ReadFile(dir + thread + "/children")
		}
		pids = appendPIDs(pids, b)
	}
	return pids, ok
}

func appendPIDs(pids []int, list []byte) []int {
	for word := range bytes.FieldsSeq(list) {
		if n, err := strconv.Atoi(string(word)); err == nil {
			pids = append(pids, n)
		}
	}
	return pids
}

// threads are the entries of a process's directory of threads.
func threads(dir string) (names []string) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	return entries(fd, make([]byte, 4096))
}

// entries are the names in an open directory.
func entries(fd int, buf []byte) (names []string) {
	for {
		n, err := unix.ReadDirent(fd, buf)
		if err != nil || n <= 0 {
			return names
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
}

// Family is all that came from a kernel and lives: its descendants, the members of its
// session, and the processes whose environment still has the kernel's mark (orphans
// that made a session of their own). The kernel itself is not among them.
func Family(pid int, mark string) []Stat {
	all := All()
	in := map[int]bool{pid: true}
	for grown := true; grown; {
		grown = false
		for _, s := range all {
			if !in[s.PID] && in[s.Parent] {
				in[s.PID], grown = true, true
			}
		}
	}
	self := os.Getpid()
	var found []Stat
	for _, s := range all {
		if s.PID == pid || s.PID == self || s.State == 'Z' || s.State == 'X' {
			continue
		}
		if in[s.PID] || s.Session == pid || HasMark(s.PID, mark) {
			found = append(found, s)
		}
	}
	return found
}

// Descendants are those of a kernel's processes that its parenthood tells: of one that is
// a subreaper, all. They are looked up from the top, which takes as long as there are of
// them, where Family reads every process of the machine.
func Descendants(pid int) []Stat {
	pids, ok := childrenOf(pid)
	if !ok {
		return Family(pid, "")
	}
	var found []Stat
	seen := map[int]bool{pid: true} // a number may be given out again meanwhile
	for len(pids) > 0 {
		next := pids[len(pids)-1]
		pids = pids[:len(pids)-1]
		if seen[next] {
			continue
		}
		seen[next] = true
		s, ok := Read(next)
		if !ok || s.State == 'Z' || s.State == 'X' {
			continue
		}
		found = append(found, s)
		more, _ := childrenOf(next)
		pids = append(pids, more...)
	}
	return found
}

// HasMark reports whether the process was started with mark (NAME=VALUE) in its environment.
func HasMark(pid int, mark string) bool {
	return mark != "" && environHas(pid, func(v []byte) bool { return string(v) == mark })
}

// HasMarkPrefix reports whether a variable of its environment begins with mark.
func HasMarkPrefix(pid int, mark string) bool {
	return mark != "" && environHas(pid, func(v []byte) bool { return bytes.HasPrefix(v, []byte(mark)) })
}

// Runs reports whether the command line of a process holds text.
func Runs(pid int, text string) bool {
	b, _ := readFile("/proc/"+strconv.Itoa(pid)+"/cmdline", 4096)
	return bytes.Contains(b, []byte(text))
}

func environHas(pid int, is func([]byte) bool) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	for len(b) > 0 {
		var v []byte
		v, b, _ = bytes.Cut(b, []byte{0})
		if is(v) {
			return true
		}
	}
	return false
}

// Moment tells the processes born after it from those before: by the start time, and
// within the same tick by the process id, since ids are given out in order.
type Moment struct {
	ticks   uint64
	lastPid int
}

// Now is this moment.
func Now() Moment {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts)
	m := Moment{ticks: uint64(time.Duration(ts.Nano()) / Tick)}
	// The last field of /proc/loadavg is the newest process id.
	if b, ok := readFile("/proc/loadavg", 128); ok {
		if i := bytes.LastIndexByte(b, ' '); i >= 0 {
			m.lastPid, _ = strconv.Atoi(strings.TrimSpace(string(b[i+1:])))
		}
	}
	return m
}

// Before tells whether a process was born after the moment.
func (m Moment) Before(s Stat) bool {
	if s.Start != m.ticks {
		return s.Start > m.ticks
	}
	return s.PID > m.lastPid
}

// readFile reads the first bytes of a small file of /proc, in half the time that
// os.ReadFile takes, which asks the poller first: it is done for each cell.
func readFile(path string, most int) ([]byte, bool) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, false
	}
	defer unix.Close(fd)
	b := make([]byte, most)
	n, err := unix.Read(fd, b)
	if err != nil {
		return nil, false
	}
	return b[:n], true
}

// OOMKills is how many processes the system's OOM killer has ended so far; -1
// where it can't be told.
func OOMKills() int64 {
	b, ok := readFile("/proc/vmstat", 32<<10)
	if !ok {
		return -1
	}
	_, rest, ok := bytes.Cut(b, []byte("\noom_kill "))
	if !ok {
		return -1
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	n, err := strconv.ParseInt(string(line), 10, 64)
	if err != nil {
		return -1
	}
	return n
}
