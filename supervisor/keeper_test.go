package supervisor

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cellard/cellard/internal/fixture"
	"github.com/cellard/cellard/internal/procfs"
	"golang.org/x/sys/unix"
)

// agentMain is an agent that is going to be killed: it runs a cell that leaves
// children of all kinds, tells that it did, and waits.
func agentMain(dir string) {
	o := options(dir)
	self, err := os.Executable()
	if err == nil {
		o.Keeper = []string{self, "keeper"}
		err = writeSpecs(dir)
	}
	var m *Manager
	if err == nil {
		m, err = NewManager(o)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	r, err := m.Run(request(lines(
		"sh setsid sleep 1000 & (sleep 1000 &) ; (setsid sleep 1000 > /dev/null 2>&1 &) ; sleep 1000 &",
		hidden, "print ready", "sleep 3600000")))
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	var pid int
	for {
		x, _ := r.Snapshot()
		for _, word := range strings.Fields(x.Stdout) {
			if n, err := strconv.Atoi(word); err == nil {
				pid = n
			}
		}
		if pid > 0 && strings.Contains(x.Stdout, "ready") {
			break
		}
		unix.Nanosleep(&unix.Timespec{Nsec: 1e6}, nil)
	}
	fmt.Println("ready", m.InstanceID(), pid, m.groups.Dir())
	select {}
}

// An agent that is killed leaves no kernel, no child of one, and no directory.
func TestKilledAgentLeavesNothing(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "cellard")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Mkdir(filepath.Join(dir, "w"), 0o755); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "agent", dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	said := strings.Fields(line)
	if len(said) < 3 || said[0] != "ready" || said[2] == "0" {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		t.Fatalf("the agent said %q", line)
	}
	id := said[1]
	hidden, err := strconv.Atoi(said[2])
	if err != nil || hidden <= 1 {
		t.Fatal(hidden, err)
	}
	defer func() { _ = unix.Kill(hidden, unix.SIGKILL) }()
	a := &agent{Manager: &Manager{instance: id}, t: t, logs: &fixture.Buffer{}}
	a.until("the kernel and four children run", func() bool { return len(a.processes()) == 5 })
	keeper := keepers(id)
	if len(keeper) != 1 {
		t.Errorf("keepers: %v", keeper)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	a.until("no process of the kernel's is left", func() bool { return len(a.processes()) == 0 })
	a.until("no directory is left", func() bool {
		_, err := os.Stat(filepath.Join(dir, "r"))
		return errors.Is(err, os.ErrNotExist)
	})
	a.until("the keeper has ended", func() bool { return len(keepers(id)) == 0 })
	if len(said) == 4 {
		a.until("what was hidden has ended", func() bool { return !alive(hidden) })
		if _, err := os.Stat(said[3]); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the groups are left: %v", err)
		}
	}
}

// keepers are the keepers of an agent.
func keepers(instance string) []int {
	var found []int
	for _, p := range procfs.All() {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.PID))
		if p.State != 'Z' && strings.Contains(string(b), "keeper\x00CELLARD_KERNEL="+instance) {
			found = append(found, p.PID)
		}
	}
	return found
}

// An agent that ends as it should lets its keeper go, which then kills nothing.
func TestKeeperIsLetGo(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	a := newAgent(t, func(o *Options) { o.Keeper = []string{self, "keeper"} })
	a.ok(a.cell("print a"))
	if k := keepers(a.InstanceID()); len(k) != 1 {
		t.Errorf("keepers: %v", k)
	}
	if err := a.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if k := keepers(a.InstanceID()); len(k) != 0 {
		t.Errorf("keepers left: %v", k)
	}
}

// What the keeper reads decides what it kills: nothing after a goodbye, and without
// one the sessions that were watched and not let go.
func TestKeeperKillsWhatIsWatched(t *testing.T) {
	t.Parallel()
	sleeper := func() *exec.Cmd {
		cmd := exec.Command("sleep", "1000")
		cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	one, two := sleeper(), sleeper()
	dir := filepath.Join(t.TempDir(), "r")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	const nobody = "CELLARD_KERNEL=nobody-at-all-"
	said := fmt.Sprintf("+%d\n+%d\n-%d\nnonsense\n+0\n+1\n", one.Process.Pid, two.Process.Pid, two.Process.Pid)
	Keeper(strings.NewReader(said+"done\n"), nobody, dir, "")
	if !alive(one.Process.Pid) || !alive(two.Process.Pid) {
		t.Error("it killed after a goodbye")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("it removed after a goodbye: %v", err)
	}
	Keeper(strings.NewReader(said), nobody, dir, "")
	if err := one.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("the watched one: %v", err)
	}
	if !alive(two.Process.Pid) {
		t.Error("it killed one that had been let go")
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is left: %v", err)
	}
	_ = two.Process.Kill()
	_ = two.Wait()
}
