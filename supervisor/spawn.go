package supervisor

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cellard/cellard/internal/cgroup"
	"github.com/cellard/cellard/internal/procfs"
	"github.com/cellard/cellard/internal/rawpipe"
)

// spawner starts processes, and reaps what they leave behind. Pdeathsig follows the
// thread that forked, so one locked thread starts them all and lives until Close.
// As the subreaper the agent is given the orphans of its kernels, and waits for
// them: each process that spawner started is waited for by its own Process, all
// other children are left to whoever started them.
type spawner struct {
	reqs chan spawnRequest
	stop chan struct{}
	wg   sync.WaitGroup

	mu      sync.Mutex // held over a start and its entry here, and over a reaping
	started map[int]*Process
}

type spawnRequest struct {
	program string
	argv    []string
	attr    *os.ProcAttr
	group   *cgroup.Group
	reply   chan spawnReply
}

type spawnReply struct {
	p   *Process
	err error
}

func newSpawner() *spawner {
	s := &spawner{reqs: make(chan spawnRequest), stop: make(chan struct{}), started: map[int]*Process{}}
	// An error (a kernel before 3.4) means that orphans go to init: they are then
	// killed by session and by environment, but not waited for.
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	ignored := make(chan os.Signal, 1)
	for _, sig := range []os.Signal{os.Interrupt, unix.SIGHUP} {
		// An ignored one (nohup, the background of a shell) is inherited through exec: a kernel
		// could then not be interrupted, and a cell's own kill -HUP would do nothing. A
		// handled one is reset. Go's runtime itself handles the others, but those by which a
		// terminal stops a job, which stay as they are.
		if signal.Ignored(sig) {
			signal.Notify(ignored, sig)
		}
	}
	s.wg.Add(2)
	go func() {
		defer s.wg.Done()
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		for {
			select {
			case r := <-s.reqs:
				p, err := s.start(r.program, r.argv, r.attr, r.group)
				r.reply <- spawnReply{p, err}
			case <-s.stop:
				return
			}
		}
	}()
	go func() {
		defer s.wg.Done()
		defer signal.Stop(children)
		defer signal.Stop(ignored)
		var again <-chan time.Time
		for {
			select {
			case <-children:
				s.reapOrphans()
				again = time.After(reapAgain)
			case <-again:
				s.reapOrphans()
			case <-s.stop:
				s.reapOrphans()
				return
			}
		}
	}()
	return s
}

// reapAgain is when children are looked for a second time: the list of them can miss
// one while others come and go (proc(5), children).
const reapAgain = 200 * time.Millisecond

// Close ends the thread, and with it (Pdeathsig) any process that still runs.
func (s *spawner) Close() {
	close(s.stop)
	s.wg.Wait()
}

// Start starts program (a path) with argv in a session of its own. attr's Sys is
// completed. The pipes for stdout and stderr are made here, stdin is /dev/null. The
// process is put into group, unless that is nil or the system refuses it: then its own
// group is nil.
func (s *spawner) Start(program string, argv []string, attr *os.ProcAttr, group *cgroup.Group) (*Process, error) {
	r := spawnRequest{program, argv, attr, group, make(chan spawnReply, 1)}
	select {
	case s.reqs <- r:
		a := <-r.reply
		return a.p, a.err
	case <-s.stop:
		return nil, errors.New("the agent is stopping")
	}
}

func (s *spawner) start(program string, argv []string, attr *os.ProcAttr, group *cgroup.Group) (p *Process, err error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	p = &Process{done: make(chan struct{})}
	var stdout, stderr *os.File
	if p.raw, stdout, stderr, err = rawpipe.New(); err == nil {
		defer stdout.Close()
		defer stderr.Close()
		attr.Files = []*os.File{null, stdout, stderr}
		attr.Sys.Setsid, attr.Sys.Pdeathsig = true, unix.SIGKILL
		s.mu.Lock()
		if p.group = group; group != nil {
			attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, group.FD()
		}
		p.proc, err = os.StartProcess(program, argv, attr)
		if err != nil && group != nil {
			// A seccomp filter without clone3, or a threaded group (cgroups(7)).
			attr.Sys.UseCgroupFD, p.group = false, nil
			p.proc, err = os.StartProcess(program, argv, attr)
		}
		if err == nil {
			s.started[p.proc.Pid] = p
			offerToOOM(p.proc.Pid)
		}
		s.mu.Unlock()
	}
	if err != nil {
		if p.raw != nil {
			p.raw.Close()
		}
		return nil, fmt.Errorf("starting %s: %w", argv[0], err)
	}
	go func() {
		p.state, p.waitErr = p.proc.Wait()
		s.mu.Lock()
		delete(s.started, p.proc.Pid)
		s.mu.Unlock()
		close(p.done)
	}()
	return p, nil
}

// offerToOOM has the system's OOM killer take a kernel, and what comes from it, before
// the agent: half of all memory counts as theirs already (proc(5), oom_score_adj). Where
// the agent is root they can't take it back.
func offerToOOM(pid int) {
	// An error means that the kernel has ended, or that it is judged by its size alone.
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte("500"), 0)
}

// reapOrphans waits for the adopted children that have ended. Adopted ones are of
// another session than the agent's own: kernels are started in one of their own.
func (s *spawner) reapOrphans() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wait(procfs.Children(os.Getpid()))
}

func (s *spawner) wait(children []procfs.Stat) {
	own, _ := unix.Getsid(0)
	for _, p := range children {
		if s.started[p.PID] == nil && p.State == 'Z' && p.Session != own {
			_, _ = unix.Wait4(p.PID, nil, unix.WNOHANG, nil)
		}
	}
}

// killOrphans kills what kernels that are gone have left, as far as that is known.
func (m *Manager) killOrphans() {
	if m.o.Sole {
		m.spawn.killOrphans(m.keeper.pid())
	}
}

// killOrphans kills the adopted children, and theirs, once no started process is there
// that they could belong to: daemons whose environment was emptied or overwritten can't
// be told by a mark. The process of pid but is none of them.
func (s *spawner) killOrphans(but int) {
	if os.Getpid() == 1 { // others' orphans come here too
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	own, _ := unix.Getsid(0)
	for end := time.Now().Add(time.Second); len(s.started) == 0 && time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		left := false
		for _, p := range procfs.Children(os.Getpid()) {
			if p.PID == but || p.Session == own || p.State == 'Z' {
				continue
			}
			left = true
			for _, q := range append(procfs.Family(p.PID, ""), p) {
				_ = unix.Kill(q.PID, unix.SIGKILL)
			}
		}
		if !left {
			return
		}
	}
}

// Process is a kernel's process. Its owner takes its raw output and waits for Done,
// and closes the pipes.
type Process struct {
	proc    *os.Process
	group   *cgroup.Group // nil where groups can't be had
	raw     *rawpipe.Pair // its stdout and stderr
	done    chan struct{}
	state   *os.ProcessState
	waitErr error
}

// Pid is its process id, which is its session's too.
func (p *Process) Pid() int { return p.proc.Pid }

// Done is closed once it has ended and was waited for.
func (p *Process) Done() <-chan struct{} { return p.done }

// alive asks the system, which knows of an end a moment before Done does.
func (p *Process) alive() bool {
	s, ok := procfs.Read(p.Pid())
	return ok && s.State != 'Z' && s.State != 'X'
}

// waitDone waits for the end of a process that was killed; a bound keeps one that
// can't be (it waits for a device) from holding up the agent.
func (p *Process) waitDone() {
	select {
	case <-p.done:
	case <-time.After(time.Second):
	}
}

// Signal sends a signal; to a process that has ended it does nothing.
func (p *Process) Signal(sig os.Signal) { _ = p.proc.Signal(sig) }

// ended tells how it ended: by which signal, or with which code. Only after Done.
func (p *Process) ended() (sig syscall.Signal, code int) {
	select {
	case <-p.done:
	default:
		return 0, -1
	}
	if p.state == nil {
		return 0, -1
	}
	if ws, ok := p.state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return ws.Signal(), -1
	}
	return 0, p.state.ExitCode()
}

// family is all that came from the process and lives: by its group, and where there is
// none, or root has left it, by its session, its parents and the mark.
func (p *Process) family(mark string) []procfs.Stat {
	found := procfs.Family(p.Pid(), mark)
	for _, pid := range p.group.Processes() {
		if pid == p.Pid() || slices.ContainsFunc(found, func(s procfs.Stat) bool { return s.PID == pid }) {
			continue
		}
		if s, ok := procfs.Read(pid); ok && s.State != 'Z' && s.State != 'X' {
			found = append(found, s)
		}
	}
	return found
}

// killTree kills the process and its family, until none is left or the bound has passed.
func (p *Process) killTree(mark string) {
	end := time.Now().Add(5 * time.Second)
	for {
		p.group.Kill()
		alive := p.family(mark)
		p.Signal(unix.SIGKILL)
		for _, q := range alive {
			_ = unix.Kill(q.PID, unix.SIGKILL)
		}
		exited := false
		select {
		case <-p.done:
			exited = true
		default:
		}
		if exited && len(alive) == 0 || time.Now().After(end) {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
}
