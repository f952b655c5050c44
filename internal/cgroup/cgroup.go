// Package cgroup keeps what one kernel starts together, by control groups of version 2
// (cgroups(7)): a process can leave its session, its parents and its environment behind,
// but not its group, unless it is root. It needs no controller, only a group of the
// caller's own that can be written to.
package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cellard/cellard/internal/environ"
)

// prefix begins the name of each Tree's directory.
const prefix = "cellard-"

// Tree is a group that has only groups in it, beside the process that made it. A lock on
// its directory tells others that this process lives. A nil one is none, and has none.
type Tree struct {
	dir  string
	lock *os.File
}

// New makes a Tree in the group of this process, under a name that no other one has. It
// removes those that processes which are gone have left there, and what runs in them. The
// error says why groups can't be had: no version 2, a file system that is read-only, no
// right. The caller closes it.
func New(name string) (*Tree, error) {
	own, err := ownGroup()
	if err != nil {
		return nil, err
	}
	left, _ := filepath.Glob(filepath.Join(own, prefix+"*"))
	for _, dir := range left {
		if f := environ.LockDir(dir); f != nil { // else its process lives
			Remove(dir)
			f.Close()
		}
	}
	t := &Tree{dir: filepath.Join(own, prefix+name)}
	for range 100 { // another New may take it for a dead one's before it is locked
		if err = os.Mkdir(t.dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, err
		}
		if t.lock = environ.LockDir(t.dir); t.lock != nil {
			if t.there() {
				return t, nil
			}
			t.lock.Close()
		}
		time.Sleep(time.Millisecond)
	}
	return nil, fmt.Errorf("%s can't be locked", t.dir)
}

// there reports whether the directory is still the one that is locked.
func (t *Tree) there() bool {
	a, err := t.lock.Stat()
	if err != nil {
		return false
	}
	b, err := os.Stat(t.dir)
	return err == nil && os.SameFile(a, b)
}

// Dir is the Tree's directory, for Remove by another process; "" for none.
func (t *Tree) Dir() string {
	if t == nil {
		return ""
	}
	return t.dir
}

// Close ends what runs in the Tree's groups and removes them.
func (t *Tree) Close() {
	if t != nil {
		Remove(t.dir)
		t.lock.Close()
	}
}

// Group is one group. A nil one is none: it has no processes.
type Group struct {
	dir string
	fd  *os.File
	cpu int // cpu.stat, held open: -1 for none
}

// Group makes a group in the Tree. The caller closes it.
func (t *Tree) Group(name string) (*Group, error) {
	if t == nil {
		return nil, nil
	}
	dir := filepath.Join(t.dir, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.Open(dir)
	if err != nil {
		_ = os.Remove(dir)
		return nil, err
	}
	cpu, err := unix.Open(filepath.Join(dir, "cpu.stat"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		cpu = -1
	}
	return &Group{dir, f, cpu}, nil
}

// FD is what syscall.SysProcAttr's CgroupFD takes, until Close.
func (g *Group) FD() int { return int(g.fd.Fd()) }

// Processes are the ids of the group's processes, those of groups inside it too.
func (g *Group) Processes() []int {
	if g == nil {
		return nil
	}
	return processes(g.dir)
}

func processes(dir string) (pids []int) {
	b, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	for line := range strings.Lines(string(b)) {
		// 0 is a process of another pid namespace, above this one's.
		if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	for _, sub := range groupsIn(dir) {
		pids = append(pids, processes(sub)...)
	}
	return pids
}

// groupsIn are the groups in a group. A root process of a cell may have made some.
func groupsIn(dir string) (subs []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() {
			subs = append(subs, filepath.Join(dir, e.Name()))
		}
	}
	return subs
}

// CPU is what the group's processes have spent so far, those that are gone too; false where
// it can't be told.
func (g *Group) CPU() (time.Duration, bool) {
	if g == nil {
		return 0, false
	}
	var b [512]byte
	n, err := unix.Pread(g.cpu, b[:], 0)
	if err != nil {
		return 0, false
	}
	// Its first line is "usage_usec N", whether or not there is a controller.
	rest, ok := strings.CutPrefix(string(b[:n]), "usage_usec ")
	line, _, whole := strings.Cut(rest, "\n")
	us, err := strconv.ParseInt(line, 10, 64)
	return time.Duration(us) * time.Microsecond, ok && whole && err == nil
}

// Kill sends SIGKILL to all processes of the group at once: none can fork itself away.
func (g *Group) Kill() {
	if g != nil {
		kill(g.dir)
	}
}

func kill(dir string) {
	// cgroup.kill is of Linux 5.14.
	if os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0) == nil {
		return
	}
	for _, pid := range processes(dir) {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

// freezeWithin is how long Frozen waits for all processes to stand still: one that waits for
// a device does so late.
const freezeWithin = 100 * time.Millisecond

// Frozen does f while none of the group's processes can go on, or fork, or end but by
// SIGKILL, as far as the system has that (Linux 5.2) and they stand still soon.
func (g *Group) Frozen(f func()) {
	if g != nil {
		file := filepath.Join(g.dir, "cgroup.freeze")
		if os.WriteFile(file, []byte("1"), 0) == nil {
			defer func() { _ = os.WriteFile(file, []byte("0"), 0) }()
			for end := time.Now().Add(freezeWithin); !g.stands() && time.Now().Before(end); {
				time.Sleep(time.Millisecond)
			}
		}
	}
	f()
}

func (g *Group) stands() bool {
	b, err := os.ReadFile(filepath.Join(g.dir, "cgroup.events"))
	return err != nil || strings.Contains(string(b), "frozen 1\n")
}

// Close ends what runs in the group and removes it.
func (g *Group) Close() {
	if g != nil {
		g.fd.Close()
		if g.cpu >= 0 {
			unix.Close(g.cpu)
		}
		Remove(g.dir)
	}
}

// removeWithin is how long Remove waits for killed processes to be gone: one that waits
// for a device can't be killed before that answers.
const removeWithin = time.Second

// Remove ends what runs in the group whose directory that is, and in those inside it, and
// removes them; "" is none. What can't be ended stays, and its group.
func Remove(dir string) {
	if dir == "" {
		return
	}
	for end := time.Now().Add(removeWithin); ; time.Sleep(time.Millisecond) {
		kill(dir)
		err := remove(dir)
		if err == nil || !errors.Is(err, unix.EBUSY) || time.Now().After(end) {
			return
		}
	}
}

func remove(dir string) error {
	for _, sub := range groupsIn(dir) {
		if err := remove(sub); err != nil {
			return err
		}
	}
	err := os.Remove(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// ownGroup is the directory of this process's group.
func ownGroup() (string, error) {
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	return find(string(groups), string(mounts))
}

// find finds a process's group of version 2 from what /proc/PID/cgroup and
// /proc/PID/mountinfo say (cgroups(7), proc(5)).
func find(groups, mounts string) (string, error) {
	path := ""
	for line := range strings.Lines(groups) {
		if p, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			path = p
		}
	}
	if !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "/..") || strings.HasSuffix(path, " (deleted)") {
		return "", fmt.Errorf("this process is in no control group of version 2 that is to be seen (%q)", path)
	}
	for line := range strings.Lines(mounts) {
		before, after, _ := strings.Cut(line, " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if len(fields) < 5 || len(kind) == 0 || kind[0] != "cgroup2" {
			continue
		}
		root, point := fields[3], fields[4]
		if rel, ok := strings.CutPrefix(path+"/", strings.TrimSuffix(root, "/")+"/"); ok && !strings.Contains(point, `\`) {
			return filepath.Join(point, rel), nil
		}
	}
	return "", errors.New("control groups of version 2 are not mounted")
}
