package java

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/cellard/cellard/internal/procfs"
	"github.com/cellard/cellard/kernels/output"
	"github.com/cellard/cellard/protocol/jupyter"
	"github.com/cellard/cellard/protocol/jupyter/kernel"
)

// Options of a Language. The zero value takes the Java that Find finds.
type Options struct {
	// Java is the one to run on; nil has Find look for one in Env.
	Java *Java
	// Temp is where a directory for the kernel's own temporary files is made; "" stands for
	// where such files belong.
	Temp string
	// Env is the environment of cells; nil stands for this process's.
	Env []string
	// Cache is a directory that only this user writes to: the jars lie there, and the
	// archive that Prepare has made. "" looks where Prepare puts it; with none that can
	// be used, the jars go into a temporary directory.
	Cache string
	// Reaper ends what cells have started. There is one in a process; nil makes one,
	// which Close closes.
	Reaper *output.Reaper

	// dump is the file that an archive of the loaded classes goes to at the end.
	dump string
}

// Language is Java, as a kernel.Language.
type Language struct {
	o         Options
	ownReaper bool

	m        *machine
	version  string
	reading  sync.WaitGroup
	ready    chan struct{} // closed when the version has come, or the machine has ended
	over     chan struct{} // closed when no more frames come
	stopper  *stopper
	text     text
	fileSize int64

	mu       sync.Mutex
	last     uint64
	cells    map[uint64]*cell // the running one and late ones, by id
	calls    map[uint64]chan *frame
	protocol error // what is wrong with what came
}

// tellWithin is how long Java has to mark a cell as stopped before its processes end.
const tellWithin = time.Second

// childrenAfter is when the threads of a cell that is marked have been stopped, or have it before
// them when the call that they wait in returns: some rounds of Stopper.java, with help.
const childrenAfter = 100 * time.Millisecond

// startWithin bounds the machine's start.
const startWithin = time.Minute

// New returns a Language. It starts nothing yet; the caller closes it.
func New(o Options) *Language {
	if o.Env == nil {
		o.Env = os.Environ()
	}
	return &Language{o: o, ready: make(chan struct{}), over: make(chan struct{}), cells: make(map[uint64]*cell),
		calls: make(map[uint64]chan *frame), fileSize: output.FileLimit()}
}

var _ kernel.Mortal = (*Language)(nil)

// Info starts the virtual machine, and returns when it can run cells and has said its
// version: what that takes is not to count towards a cell's deadline.
func (l *Language) Info() (jupyter.KernelInfo, error) {
	if l.m == nil {
		if err := l.start(); err != nil {
			return jupyter.KernelInfo{}, err
		}
	}
	return jupyter.KernelInfo{
		Implementation:        Implementation,
		ImplementationVersion: Version,
		Banner:                "Java " + l.version,
		LanguageInfo: jupyter.LanguageInfo{
			Name: "java", Version: l.version, MimeType: "text/x-java-source", FileExtension: ".java",
		},
	}, nil
}

func (l *Language) start() error {
	if l.o.Java == nil {
		j, err := Find(l.o.Env)
		if err != nil {
			return err
		}
		l.o.Java = j
	}
	if l.o.Reaper == nil {
		l.o.Reaper, l.ownReaper = output.NewReaper(), true
	}
	m, err := startMachine(&l.o)
	if err != nil {
		return err
	}
	l.m = m
	m.streams.Before(l.text.give)
	l.reading.Add(1)
	go l.read()
	select {
	case <-l.ready:
	case <-time.After(startWithin):
		return fmt.Errorf("java: %s did not start within %v", l.o.Java.Executable, startWithin)
	}
	if l.version == "" {
		return fmt.Errorf("java: %s did not start: %w", l.o.Java.Executable, m.gone())
	}
	return nil
}

// Close ends the virtual machine and what it has started.
func (l *Language) Close() error {
	if l.m != nil {
		l.m.close()
		l.reading.Wait()
		l.m.inFile.Close()
		l.m = nil
	}
	if l.ownReaper {
		l.o.Reaper.Close()
		l.ownReaper = false
	}
	return nil
}

// Execute runs a cell.
func (l *Language) Execute(ctx context.Context, c *kernel.Cell) error {
	cwd := ""
	if c.Cwd != "" {
		v, err := l.m.thread.enter(c.Cwd)
		if err != nil {
			return &kernel.Error{Name: "InvalidDirectory", Value: fmt.Sprintf("the directory of the cell can't be entered: %s: %v", c.Cwd, err)}
		}
		defer v.leave()
		cwd = v.path
	}
	running := l.begin(ctx, c)
	defer l.finish(running)
	since := procfs.Now()
	l.m.streams.SetCell(c)
	b := newFrame(toRun).number(running.id).small(c.Count).flag(c.Silent).flag(c.AllowStdin).text(c.Code).text(cwd)
	b.small(len(c.Env))
	for name, value := range c.Env {
		b.text(name).text(value)
	}
	if err := l.m.send(b); err != nil {
		return l.death()
	}
	select {
	case end := <-running.end:
		return l.ended(ctx, running, end)
	case <-l.m.dead:
		return l.died(ctx, running)
	case <-ctx.Done():
	}
	var ending sync.WaitGroup
	ending.Add(1)
	over := make(chan struct{})
	told, cancel := context.WithTimeout(context.Background(), tellWithin)
	go func() {
		defer ending.Done()
		// First the cell, then what it waits for: else it would go on where its child has
		// ended.
		_, _ = l.ask(told, toStop, func(b *builder) { b.number(running.id) })
		select {
		case <-over:
		case <-time.After(childrenAfter):
		}
		// What the cell has started ends, also where the machine's end is what is left of
		// it; once more after, for what came meanwhile.
		l.o.Reaper.End(since, nil, over)
		<-over
		l.o.Reaper.End(since, nil, nil)
	}()
	defer ending.Wait()
	defer close(over)
	defer cancel()
	select {
	case end := <-running.end:
		return l.ended(ctx, running, end)
	case <-l.m.dead:
		return l.died(ctx, running)
	}
}

// ended is what the end of a cell comes to, once its output is out.
func (l *Language) ended(ctx context.Context, c *cell, end *frame) error {
	stopped, failed := end.flag(), end.flag()
	var e *kernel.Error
	if failed {
		e = &kernel.Error{Name: end.text(), Value: end.text()}
		for range end.count() {
			e.Traceback = append(e.Traceback, end.text())
		}
	}
	if err := end.err(); err != nil {
		l.fail(err)
		return l.death()
	}
	l.m.streams.Drain()
	switch {
	case stopped && ctx.Err() != nil:
		return context.Cause(ctx)
	case e != nil:
		return e
	case stopped:
		return &kernel.Error{Name: "Interrupted", Value: "the cell was stopped"}
	}
	return nil
}

// died is what a cell comes to whose machine has ended under it.
func (l *Language) died(_ context.Context, _ *cell) error {
	l.reading.Wait() // what it said before is out
	l.m.streams.Drain()
	return l.death()
}

// Ended is a kernel.Mortal's.
func (l *Language) Ended(ctx context.Context) error {
	select {
	case <-l.over:
		return l.death()
	case <-ctx.Done():
		return nil
	}
}

// death is the error that ends the kernel.
func (l *Language) death() error {
	l.mu.Lock()
	err := l.protocol
	l.mu.Unlock()
	if err != nil {
		_ = l.m.cmd.Process.Kill()
		<-l.m.dead
		return err
	}
	select {
	case <-l.m.dead:
	case <-time.After(quitWithin): // its pipe is closed, and it goes on
		_ = l.m.cmd.Process.Kill()
	}
	return l.m.gone()
}
