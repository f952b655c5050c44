package cgroup

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestFind(t *testing.T) {
	const host = "24 1 0:21 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
	for _, c := range []struct{ name, groups, mounts, want string }{
		{"systemd", "0::/system.slice/cellard.service\n", host, "/sys/fs/cgroup/system.slice/cellard.service"},
		{"the root", "0::/\n", host, "/sys/fs/cgroup"},
		{"hybrid", "4:memory:/x\n0::/\n", "1 2 0:3 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n" +
			"3 2 0:4 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n5 2 0:6 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n", "/sys/fs/cgroup/unified"},
		{"a container without a namespace", "0::/docker/abc/job\n", "1 2 0:3 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "/sys/fs/cgroup/job"},
		{"a mount of another part", "0::/docker/abcd\n", "1 2 0:3 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", ""},
		{"above the namespace", "0::/../other\n", host, ""},
		{"removed", "0::/gone (deleted)\n", host, ""},
		{"version 1", "4:memory:/x\n", "3 2 0:4 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n", ""},
		{"not mounted", "0::/\n", "", ""},
		{"nonsense", "::\n0:\n", "- - -\n - cgroup2\n", ""},
	} {
		got, err := find(c.groups, c.mounts)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %q, %v, want %q", c.name, got, err, c.want)
		}
	}
}

// tree makes a Tree, where that can be had.
func tree(t *testing.T) *Tree {
	t.Helper()
	tr, err := New("test-" + strconv.Itoa(os.Getpid()) + "-" + strconv.FormatInt(time.Now().UnixNano(), 36))
	if err != nil {
		t.Skip("no control groups here:", err)
	}
	t.Cleanup(tr.Close)
	return tr
}

// runaway starts, in a group, a shell that leaves a process behind which has nothing of it
// but the group: another session, no environment, no parent. It returns that one's id.
func runaway(t *testing.T, g *Group) int {
	t.Helper()
	cmd := exec.Command("sh", "-c", `env -i setsid sh -c 'echo $$; exec sleep 600' & wait $!`)
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: g.FD()}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	_ = cmd.Process.Kill() // sleep is an orphan now
	_ = cmd.Wait()
	t.Cleanup(func() { _ = unix.Kill(pid, unix.SIGKILL) })
	return pid
}

// gone waits until a process is no more than a zombie.
func gone(pid int) bool {
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil || strings.Contains(string(b), ") Z ") || strings.Contains(string(b), ") X ") {
			return true
		}
	}
	return false
}

func TestGroupHasWhatRanAway(t *testing.T) {
	g, err := tree(t).Group("one")
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	pid := runaway(t, g)
	if pids := g.Processes(); !slices.Contains(pids, pid) {
		t.Fatalf("%v without %d", pids, pid)
	}
	g.Kill()
	if !gone(pid) {
		t.Fatal("it lives")
	}
}

// What a process spends counts while it lives and when it is gone.
func TestCPU(t *testing.T) {
	g, err := tree(t).Group("one")
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if cpu, ok := g.CPU(); cpu != 0 || !ok {
		t.Errorf("of no process: %v, %v", cpu, ok)
	}
	cmd := exec.Command("sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done")
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: g.FD()}
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	spent := cmd.ProcessState.SystemTime() + cmd.ProcessState.UserTime()
	if cpu, ok := g.CPU(); !ok || cpu < spent/2 || cpu > 2*spent+100*time.Millisecond {
		t.Errorf("%v, %v of a process that spent %v", cpu, ok, spent)
	}
	var none *Group
	if _, ok := none.CPU(); ok {
		t.Error("no group spent something")
	}
}

func TestRemoveTakesGroupsInside(t *testing.T) {
	tr := tree(t)
	g, err := tr.Group("one")
	if err != nil {
		t.Fatal(err)
	}
	pid := runaway(t, g)
	inner := filepath.Join(g.dir, "inner")
	if err := os.Mkdir(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(inner, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil {
		t.Fatal(err)
	}
	if pids := g.Processes(); !slices.Contains(pids, pid) {
		t.Fatalf("%v without %d", pids, pid)
	}
	g.Close()
	if !gone(pid) {
		t.Fatal("it lives")
	}
	if _, err := os.Stat(g.dir); !errors.Is(err, os.ErrNotExist) {
		t.Fatal("the group is still there:", err)
	}
}

func TestNewRemovesWhatTheDeadLeft(t *testing.T) {
	dead, alive := tree(t), tree(t)
	g, err := dead.Group("one")
	if err != nil {
		t.Fatal(err)
	}
	defer g.fd.Close()
	other, err := alive.Group("one")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	pid, kept := runaway(t, g), runaway(t, other)
	dead.lock.Close() // as its process's end does
	tree(t)
	if !gone(pid) {
		t.Error("it lives")
	}
	if _, err := os.Stat(dead.dir); !errors.Is(err, os.ErrNotExist) {
		t.Error("the dead one's tree is still there:", err)
	}
	if !slices.Contains(other.Processes(), kept) {
		t.Error("the living one's process is gone")
	}
}

// TestNewBesideNew: of those that are made at once, each is there afterwards.
func TestNewBesideNew(t *testing.T) {
	tree(t) // or skip
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for j := range 20 {
				tr, err := New(fmt.Sprintf("test-%d-beside-%d-%d", os.Getpid(), i, j))
				if err != nil {
					t.Error(err)
					return
				}
				if g, err := tr.Group("one"); err != nil {
					t.Error(err)
				} else {
					g.Close()
				}
				tr.Close()
			}
		}()
	}
	wg.Wait()
}

func TestNoGroup(t *testing.T) {
	var g *Group
	g.Kill()
	if pids := g.Processes(); pids != nil {
		t.Error(pids)
	}
	g.Close()
}
