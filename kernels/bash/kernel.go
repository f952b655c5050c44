package bash

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cellard/cellard/internal/environ"
	"github.com/cellard/cellard/internal/procfs"
	"github.com/cellard/cellard/kernels/output"
	"github.com/cellard/cellard/protocol/jupyter"
	"github.com/cellard/cellard/protocol/jupyter/kernel"
)

// startWithin bounds the start of a shell, and a copy's taking over.
const startWithin = 20 * time.Second

// Options of a Kernel. The zero value works.
type Options struct {
	// Path is the bash to run; "" looks for one on the PATH.
	Path string
	// FileBytes is the size of the largest file that display shows; 0 stands for
	// output.FileLimit.
	FileBytes int64
}

// Kernel is a kernel.Language that runs Bash.
type Kernel struct {
	o       Options
	reaper  *output.Reaper
	shell   *shell
	version string
	initial []string // names of the variables that the shell began with
	words   words    // of cells
	listing time.Duration

	displays sync.WaitGroup

	pipes   map[int]uint64 // those that the shell had open before the last cell
	applied int            // how many shells had taken over when the traps were set last

	copied *running // the last cell when the copy was made: its output is the copy's

	mu    sync.Mutex // guards what follows
	cells map[int]*running
	last  *running
	count int
}

// running is a cell with what belongs to it while its processes may write.
type running struct {
	n       int
	cell    *kernel.Cell
	streams *output.Streams
	ends    [2]*os.File // the writing ends, until the shell has opened them
	inodes  [2]uint64
	filter  *filter

	mu     sync.Mutex
	prompt string // of a read that is about to wait
	secret bool
}

// New makes a Kernel. Nothing runs before Info.
func New(o Options) *Kernel {
	if o.FileBytes <= 0 {
		o.FileBytes = output.FileLimit()
	}
	return &Kernel{o: o, cells: map[int]*running{}, listing: listWithin}
}

// Info starts the shell.
func (k *Kernel) Info() (jupyter.KernelInfo, error) {
	if err := k.start(); err != nil {
		return jupyter.KernelInfo{}, err
	}
	return jupyter.KernelInfo{
		Implementation: Implementation, ImplementationVersion: Version,
		Banner: "GNU bash " + k.version,
		LanguageInfo: jupyter.LanguageInfo{
			Name: "bash", Version: strings.SplitN(k.version, "(", 2)[0], MimeType: "text/x-sh", FileExtension: ".sh",
		},
	}, nil
}

func (k *Kernel) start() error {
	finder := NewFinder(environ.Search{})
	path := k.o.Path
	if path == "" {
		var err error
		if path, _, err = finder.Find(context.Background()); err != nil {
			return fmt.Errorf("%w: %s", err, Hint)
		}
		k.o.Path = path
	}
	k.reaper = output.NewReaper()
	first, err := k.newRunning(0, nil)
	if err != nil {
		return err
	}
	k.shell, err = startShell(path, os.Environ(), k.reaper, first.ends[0], first.ends[1])
	if err != nil {
		return err
	}
	k.last = first
	k.cells[0] = first
	k.displays.Add(1)
	go k.serveRequests()
	bound, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	if err := k.await(bound, func() bool { return k.shell.end.pid != 0 }); err != nil {
		return fmt.Errorf("%s doesn't begin: it must be able to open the kernel's pipes under /proc: %w", path, err)
	}
	first.closeEnds()
	told, err := io.ReadAll(io.NewSectionReader(k.shell.setup, 0, maxFrame))
	if err != nil {
		return err
	}
	version, names, _ := strings.Cut(string(told), "\n")
	k.version = version
	k.initial = namesIn(names)
	return k.copyShell()
}

// newRunning makes the pipes of a cell.
func (k *Kernel) newRunning(n int, c *kernel.Cell) (*running, error) {
	streams, stdout, stderr, err := output.NewStreams()
	if err != nil {
		return nil, err
	}
	r := &running{n: n, cell: c, streams: streams, ends: [2]*os.File{stdout, stderr}}
	for i, f := range r.ends {
		r.inodes[i] = inodeOf(f)
	}
	if c != nil {
		streams.SetCell(c)
	}
	return r, nil
}

func (r *running) closeEnds() {
	for i, f := range r.ends {
		if f != nil {
			f.Close()
			r.ends[i] = nil
		}
	}
}

// await waits until a condition holds, which is looked at under the shell's lock. Its
// error is ctx's, or says that the shell is gone.
func (k *Kernel) await(ctx context.Context, holds func() bool) error {
	s := k.shell
	for {
		s.mu.Lock()
		_, gone := s.dead[s.main]
		s.mu.Unlock()
		if gone { // what it told before may not have been read yet
			s.takeNow()
		}
		s.mu.Lock()
		ok := holds()
		status := s.dead[s.main]
		if gone {
			_, gone = s.dead[s.main]
		}
		handing := s.handing == s.main
		s.mu.Unlock()
		switch {
		case ok:
			return nil
		case gone && !handing:
			return &goneError{status}
		}
		var handed <-chan time.Time
		if gone { // its copy is about to come, or could not be forked
			handed = time.After(2 * time.Second)
		}
		select {
		case <-s.changed:
		case <-handed:
			s.mu.Lock()
			if s.handing == s.main {
				s.handing = 0
			}
			s.mu.Unlock()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// goneError says that the shell ended without a copy that goes on.
type goneError struct{ status unix.WaitStatus }

func (e *goneError) Error() string { return "the shell has ended: " + howEnded(e.status) }

func howEnded(status unix.WaitStatus) string {
	if status.Signaled() {
		return unix.SignalName(status.Signal())
	}
	return fmt.Sprintf("exit status %d", status.ExitStatus())
}

// settled waits until the shell waits for its next command, and returns what its
// descriptors are.
func (k *Kernel) settled(ctx context.Context) (map[int]uint64, error) {
	for {
		k.shell.mu.Lock()
		pid := k.shell.main
		k.shell.mu.Unlock()
		var st unix.Stat_t
		if unix.Stat(fmt.Sprintf("/proc/%d/fd/0", pid), &st) == nil && st.Ino == k.shell.commandInode {
			return descriptors(pid), nil
		}
		again, cancel := context.WithTimeout(ctx, settleAgain)
		err := k.await(again, func() bool { return false })
		cancel()
		if gone := (*goneError)(nil); errors.As(err, &gone) {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
}

// settleAgain is how often a shell is looked at that is about to wait: it forks.
const settleAgain = 100 * time.Microsecond

// descriptors are the inodes of those descriptors of a process that are pipes or sockets.
func descriptors(pid int) map[int]uint64 {
	pipes := map[int]uint64{}
	dir, err := unix.Open(fmt.Sprintf("/proc/%d/fd", pid), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return pipes
	}
	defer unix.Close(dir)
	var names []string
	for buf := make([]byte, 2048); len(names) < 4096; {
		n, err := unix.ReadDirent(dir, buf)
		if err != nil || n <= 0 {
			break
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
	for _, name := range names {
		fd, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		var st unix.Stat_t
		if unix.Fstatat(dir, name, &st, 0) != nil {
			continue
		}
		if kind := st.Mode & unix.S_IFMT; kind == unix.S_IFIFO || kind == unix.S_IFSOCK {
			pipes[fd] = st.Ino
		}
	}
	return pipes
}

// copyShell has the idle shell make a copy of itself, in place of the one that there is,
// unless that would hold open what the shell may want to close.
func (k *Kernel) copyShell() error {
	s := k.shell
	bound, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	// One that has not told of itself couldn't be ended, and would take over some day.
	_ = k.await(bound, func() bool { return !s.copying })
	s.mu.Lock()
	if s.copy != 0 {
		_ = unix.Kill(s.copy, unix.SIGKILL)
		s.copy = 0
	}
	main := s.main
	s.mu.Unlock()
	for fd, inode := range descriptors(main) {
		if fd > 2 && !s.inodes[inode] && !slices.Contains(k.last.inodes[:], inode) {
			return nil
		}
	}
	k.copied = k.last
	s.mu.Lock()
	s.copying = true
	s.mu.Unlock()
	_, err := s.command.WriteString("k\n")
	return err
}

// command has the shell source a setup and then code.
func (k *Kernel) command(setup, code string) error {
	if err := errors.Join(write(k.shell.setup, setup), write(k.shell.code, code)); err != nil {
		return err
	}
	_, err := k.shell.command.WriteString("r\n")
	return err
}

// capture runs code of the kernel's own in the idle shell, and returns what it prints.
func (k *Kernel) capture(ctx context.Context, code string) (string, error) {
	rec := &text{}
	streams, stdout, stderr, err := output.NewStreams()
	if err != nil {
		return "", err
	}
	defer streams.Close()
	streams.SetCell(kernel.NewCell("", rec))
	out := procPath(stdout)
	k.shell.forget()
	err = k.command(`__cellard_bad= __cellard_x=$__cellard_s; { `+code+"\n} >"+out+` 2>/dev/null </dev/null; \builtin false`, "")
	if err == nil {
		err = k.await(ctx, func() bool { return k.shell.end.pid != 0 })
	}
	stdout.Close()
	stderr.Close()
	streams.Drain()
	return rec.String(), err
}

// text is a kernel.Sink that keeps the beginning of a stream.
type text struct {
	mu sync.Mutex
	b  strings.Builder
}

const maxCapture = 1 << 20

// Publish keeps what is written to stdout.
func (t *text) Publish(_ string, content any) {
	if s, ok := content.(jupyter.Stream); ok {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.b.WriteString(s.Text[:min(len(s.Text), maxCapture-t.b.Len())])
	}
}

// Input has no one to ask.
func (t *text) Input(context.Context, string, bool) (string, error) {
	return "", kernel.ErrStdinNotAllowed
}

func (t *text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.String()
}

// Close ends the shell, after its EXIT trap, and all that it has started.
func (k *Kernel) Close() error {
	if k.shell != nil {
		k.closeShell()
	}
	if k.reaper != nil {
		k.reaper.Close()
	}
	if k.shell != nil {
		k.shell.watching.Wait()
		k.shell.closeFiles()
		k.shell.reading.Wait()
		k.displays.Wait()
	}
	for _, r := range k.cells {
		r.closeEnds()
		r.streams.Drain()
		r.streams.Close()
	}
	return nil
}

func (k *Kernel) closeShell() {
	s := k.shell
	bound, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if k.command(`\builtin trap - EXIT; \builtin eval "$__cellard_atexit"; \builtin exit 0`, "") == nil {
		_ = k.await(bound, func() bool { return false }) // until it has gone
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for pid := range s.watched {
		_ = unix.Kill(pid, syscall.SIGKILL)
	}
}

// descends tells whether a process came from this one. A parent between them may end while
// it is looked at; then the process has come to this one, and is looked at again.
func descends(pid int) bool {
	for range 100 {
		p, ok := procfs.Read(pid)
		if !ok {
			return false
		}
		for ok && p.Parent > 1 && p.Parent != os.Getpid() {
			p, ok = procfs.Read(p.Parent)
		}
		if ok {
			return p.Parent == os.Getpid()
		}
	}
	return false
}
