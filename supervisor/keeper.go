package supervisor

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cellard/cellard/internal/cgroup"
	"github.com/cellard/cellard/internal/procfs"
)

// keeper is the agent's end of a small process that outlives it: when the agent is
// killed, Pdeathsig takes the kernels, and the keeper what they had started. It is
// told each kernel's pid through a pipe, whose end tells it of the agent's. It is
// started before the first kernel.
type keeper struct {
	argv              []string
	mark, dir, groups string

	mu   sync.Mutex
	pipe *os.File
	proc *os.Process
}

func (k *keeper) watch(pid int)   { k.tell("+", pid) }
func (k *keeper) unwatch(pid int) { k.tell("-", pid) }

func (k *keeper) tell(sign string, pid int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.start() {
		fmt.Fprintf(k.pipe, "%s%d\n", sign, pid)
	}
}

// begin starts the keeper, unless it is there: a kernel must not be without it.
func (k *keeper) begin() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.start()
}

// start reports whether there is one now. The caller holds mu.
func (k *keeper) start() bool {
	if k.proc != nil || len(k.argv) == 0 {
		return k.proc != nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return false
	}
	defer r.Close()
	files := []*os.File{r, nil, nil}
	if lock, ok := held.Load(k.dir); ok { // it stays this agent's until the keeper is done with it
		files = append(files, lock.(*os.File))
	}
	k.proc, err = os.StartProcess(k.argv[0], append(k.argv[:len(k.argv):len(k.argv)], k.mark, k.dir, k.groups), &os.ProcAttr{
		Dir: "/", Env: []string{"GOMAXPROCS=1"}, Files: files,
		Sys: &syscall.SysProcAttr{Setsid: true}})
	if err != nil {
		w.Close()
		return false
	}
	k.pipe = w
	return true
}

// pid is the keeper's process id; 0 when there is none.
func (k *keeper) pid() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.proc == nil {
		return 0
	}
	return k.proc.Pid
}

// close lets the keeper end: nothing is left to be kept.
func (k *keeper) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.proc != nil {
		_, _ = k.pipe.WriteString("done\n")
		k.pipe.Close()
		_, _ = k.proc.Wait()
	}
}

// Keeper is the keeper's main: it reads what the agent tells on r, and when that ends
// without a goodbye it kills what the kernels have left behind and removes dir, and their
// temporary directories. The directory of the kernels' control groups is groups, if it isn't
// empty.
func Keeper(r io.Reader, mark, dir, groups string) {
	pids := map[int]bool{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		if line == "done" {
			return
		}
		n, err := strconv.Atoi(strings.TrimLeft(line, "+-"))
		if err != nil || n <= 1 {
			continue
		}
		if pids[n] = line[0] == '+'; !pids[n] {
			delete(pids, n)
		}
	}
	cgroup.Remove(groups)
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		left := 0
		for _, s := range procfs.All() {
			if s.PID != os.Getpid() && s.State != 'Z' && (pids[s.Session] || pids[s.PID] || procfs.HasMarkPrefix(s.PID, mark)) {
				left++
				_ = syscall.Kill(s.PID, sigKill)
			}
		}
		if left == 0 {
			break
		}
	}
	if dir != "" {
		removeTemps(dir)
	}
}
