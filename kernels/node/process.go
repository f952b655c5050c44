package node

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cellard/cellard/internal/procfs"
	"github.com/cellard/cellard/kernels/output"
	"github.com/cellard/cellard/protocol/jupyter/kernel"
)

// process is a running Node and the pipes to it. In Node they are fd 3 (frames), 4
// (commands), 5 (answers) and 6 (the kernel's sources).
type process struct {
	cmd     *exec.Cmd
	streams *output.Streams
	reaper  *output.Reaper
	frames  *os.File
	reader  *bufio.Reader

	commands, answers *sender

	ended chan struct{} // closed when the process has ended
	wg    sync.WaitGroup
}

// flags are Node's: without the check, a termination between two calls of an async hook
// aborts the process; warnings about Node's own experiments are nothing of the cell's; the
// address of the debugging interface is told on stderr, before the first cell, and not to
// who asks its port.
var flags = []string{"--no-force-async-hooks-checks", "--disable-warning=ExperimentalWarning", "--inspect-publish-uid=stderr"}

func startProcess(program string, env []string) (p *process, err error) {
	p = &process{ended: make(chan struct{})}
	var theirs []*os.File // what is Node's, from fd 3 on
	defer func() {
		for _, f := range theirs {
			f.Close()
		}
	}()
	pipe := func(toNode bool) (*os.File, error) {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		if toNode {
			r, w = w, r
		}
		theirs = append(theirs, w)
		return r, nil
	}
	var ours [4]*os.File
	for i := range ours {
		if ours[i], err = pipe(i > 0); err != nil {
			closeAll(ours[:])
			return nil, err
		}
	}
	streams, stdout, stderr, err := output.NewStreams()
	if err != nil {
		closeAll(ours[:])
		return nil, err
	}
	theirs = append(theirs, stdout, stderr)
	p.streams = streams
	p.reaper = output.NewReaper()

	p.cmd = exec.Command(program, append(flags[:len(flags):len(flags)], "-e", bootScript())...)
	p.cmd.Env = env
	p.cmd.Stdout, p.cmd.Stderr = stdout, stderr
	p.cmd.ExtraFiles = theirs[:len(ours)]
	// A group of its own: a Ctrl-C at a terminal is the kernel's to take.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		closeAll(ours[:])
		streams.Close()
		p.reaper.Close()
		return nil, fmt.Errorf("starting %s: %w", program, err)
	}
	p.frames, p.reader = ours[0], bufio.NewReaderSize(ours[0], 64<<10)
	p.commands, p.answers = p.newSender(ours[1]), p.newSender(ours[2])
	p.wg.Add(1)
	go func() { // more than a pipe holds
		defer p.wg.Done()
		_ = writeSources(ours[3]) // what it lacks Node tells, or has ended
		ours[3].Close()
	}()
	return p, nil
}

// run starts the process and waits for it, in one thread: Pdeathsig follows the thread.
func (p *process) run(started chan<- error) {
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	if err := p.reaper.Start(p.cmd); err != nil {
		started <- err
		return
	}
	started <- nil
	_ = p.reaper.Wait(p.cmd) // how it ended is in cmd.ProcessState
	close(p.ended)
}

// waits reports whether Node's main thread waits in a call of the system, and not for
// its frames to be taken.
func (p *process) waits() bool {
	stat, ok := procfs.Read(p.cmd.Process.Pid)
	if !ok || stat.State != 'S' && stat.State != 'D' {
		return false
	}
	conn, err := p.frames.SyscallConn()
	if err != nil {
		return false
	}
	waiting := 1
	if err := conn.Control(func(fd uintptr) { waiting, err = unix.IoctlGetInt(int(fd), unix.TIOCINQ) }); err != nil {
		return false
	}
	return waiting == 0
}

// died is the reason why there is no more to read.
func (p *process) died() error {
	<-p.ended
	return &kernel.DiedError{What: "node", State: p.cmd.ProcessState}
}

// close ends the process and waits for all that belongs to it. The reader of frames
// must have ended, or end by this.
func (p *process) close() {
	_ = p.cmd.Process.Kill()
	<-p.ended
	for _, s := range []*sender{p.commands, p.answers} {
		s.close()
	}
	p.wg.Wait()
	p.frames.Close()
	p.streams.Close()
	p.reaper.Close()
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// sender writes to Node in the order that it is given, without having its caller wait
// for a Node that doesn't read. What waits is bounded by its callers: one cell, and
// the asks to stop it.
type sender struct {
	f     *os.File
	mu    sync.Mutex
	queue [][]byte
	wake  chan struct{}
	stop  chan struct{}
	once  sync.Once
}

func (p *process) newSender(f *os.File) *sender {
	s := &sender{f: f, wake: make(chan struct{}, 1), stop: make(chan struct{})}
	p.wg.Add(1)
	go func() {
		defer p.wg.Done()
		for {
			s.mu.Lock()
			queue := s.queue
			s.queue = nil
			s.mu.Unlock()
			for _, b := range queue {
				if _, err := s.f.Write(b); err != nil {
					return // it has ended, which its frames' reader tells
				}
			}
			select {
			case <-s.wake:
			case <-s.stop:
				return
			}
		}
	}()
	return s
}

// json sends a value with its length before it.
func (s *sender) json(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("node: a command: %v", err)) // can't be: they are of our own types
	}
	s.bytes(append(binary.LittleEndian.AppendUint32(make([]byte, 0, len(b)+4), uint32(len(b))), b...))
}

func (s *sender) bytes(b []byte) {
	s.mu.Lock()
	s.queue = append(s.queue, b)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *sender) close() {
	s.once.Do(func() {
		close(s.stop)
		s.f.Close()
	})
}
