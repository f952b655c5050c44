package golang

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/cellard/cellard/internal/procfs"
	"github.com/cellard/cellard/kernels/golang/wire"
	"github.com/cellard/cellard/kernels/output"
	"github.com/cellard/cellard/protocol/jupyter"
	"github.com/cellard/cellard/protocol/jupyter/kernel"
)

// Version is the kernel's own version, Implementation its name.
const (
	Version        = "1"
	Implementation = "cellard-go"
)

// Kernel is the Go kernel. Make it by New.
type Kernel struct {
	toolchain *Toolchain
	reaper    *output.Reaper
	dir       string          // of the session's files
	held      *os.File        // the directory, locked
	ctx       context.Context // of the preparations
	cancel    context.CancelFunc
	preparing sync.WaitGroup

	mu       sync.Mutex
	last     *preparation
	progress string // what the preparation does now

	started  chan struct{} // closed when both of these are there: a preparation has succeeded
	worker   *worker
	compiler *compilation

	loaded int  // how many cells the worker has loaded
	told   bool // that they take much memory
}

var _ kernel.Mortal = (*Kernel)(nil)

// New returns a kernel that runs cells by the toolchain, and begins to start it. What a
// toolchain needs once is built when no Warm has: cells wait for it. The session's files
// are in a directory below temp, "" for where temporary files belong.
func New(t *Toolchain, temp string) (*Kernel, error) {
	dir, held, err := sessionDir(temp)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	k := &Kernel{toolchain: t, reaper: output.NewReaper(), dir: dir, held: held, ctx: ctx, cancel: cancel, started: make(chan struct{})}
	k.last = k.begin()
	return k, nil
}

// preparation is a start of what cells need.
type preparation struct {
	ready chan struct{} // closed once err is there
	err   error
}

func (k *Kernel) begin() *preparation {
	p := &preparation{ready: make(chan struct{})}
	k.preparing.Add(1)
	go func() {
		defer k.preparing.Done()
		defer close(p.ready)
		p.err = k.prepare(k.ctx)
	}()
	return p
}

// preparation is the last one. again, unless it is nil, is told why that has failed, and
// another begins.
func (k *Kernel) preparation(again func(failed error)) *preparation {
	k.mu.Lock()
	defer k.mu.Unlock()
	select {
	case <-k.last.ready:
		if again != nil && k.last.err != nil && k.ctx.Err() == nil {
			again(k.last.err)
			k.progress = ""
			k.last = k.begin()
		}
	default:
	}
	return k.last
}

func (k *Kernel) prepare(ctx context.Context) error {
	w, err := openWorkspace(k.toolchain, os.Getenv)
	if err != nil {
		return err
	}
	if w == nil {
		base, err := ownCache(os.Getenv)
		if err != nil {
			return err
		}
		if w, err = build(ctx, k.toolchain, base, k.say, k.reaper.Run); err != nil {
			return err
		}
	}
	worker, err := startWorker(k.reaper, w)
	if err != nil {
		return err
	}
	compiler, err := startCompilation(k.reaper, w, k.toolchain, k.dir)
	if err != nil {
		worker.close()
		return err
	}
	k.worker, k.compiler = worker, compiler
	close(k.started)
	return nil
}

func (k *Kernel) say(what string) {
	k.mu.Lock()
	k.progress = what
	k.mu.Unlock()
}

// Close ends the front and the worker, and removes the session's files.
func (k *Kernel) Close() error {
	k.mu.Lock() // no preparation begins from here on
	k.cancel()
	k.mu.Unlock()
	k.preparing.Wait()
	if k.compiler != nil {
		k.compiler.close()
	}
	if k.worker != nil {
		k.worker.close()
	}
	k.reaper.Close()
	err := os.RemoveAll(k.dir)
	k.held.Close()
	return err
}

// WaitVariable, in the kernel's environment, has it answer only once what cells need is
// built, and end where that fails: for an agent, whose cells' deadlines are not to count
// that. Other front ends take a kernel that doesn't answer within a minute for dead.
const WaitVariable = "CELLARD_GO_WAIT"

// Info is the reply to kernel_info_request.
func (k *Kernel) Info() (jupyter.KernelInfo, error) {
	if os.Getenv(WaitVariable) != "" {
		p := k.preparation(nil)
		<-p.ready
		if p.err != nil {
			return jupyter.KernelInfo{}, p.err // the start's: no cell is to build anew within its deadline
		}
	}
	return jupyter.KernelInfo{
		Implementation:        Implementation,
		ImplementationVersion: Version,
		LanguageInfo: jupyter.LanguageInfo{
			Name: "go", Version: strings.TrimPrefix(k.toolchain.Version, "go"), MimeType: "text/x-go", FileExtension: ".go",
		},
		Banner: "Go (" + k.toolchain.Version + "), compiled, whose values live",
	}, nil
}

// patience is how long a cell waits for the preparation before it says what is done.
const patience = 2 * time.Second

// wait waits for the preparation. A cell, which isn't nil, has one that failed tried anew.
func (k *Kernel) wait(ctx context.Context, c *kernel.Cell) error {
	var again func(error)
	if c != nil {
		again = func(failed error) { c.Stderr(fmt.Sprintf("%v; trying again …\n", failed)) }
	}
	p := k.preparation(again)
	t := time.NewTimer(patience)
	defer t.Stop()
	for {
		select {
		case <-p.ready:
			return p.err
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-t.C:
			k.mu.Lock()
			if k.progress != "" && c != nil {
				c.Stderr(k.progress + " …\n")
			}
			k.mu.Unlock()
		}
	}
}

// Execute compiles a cell, loads it and runs it.
func (k *Kernel) Execute(ctx context.Context, c *kernel.Cell) error {
	if err := k.wait(ctx, c); err != nil {
		if ctx.Err() != nil {
			return err
		}
		return &kernel.Error{Name: "ToolchainError", Value: err.Error(), Traceback: []string{err.Error()}}
	}
	made, err := k.compile(ctx, c, false)
	if err != nil {
		return err
	}
	for _, note := range made.Notes {
		if note != "" {
			c.Stderr(note + "\n")
		}
	}
	if made.Number == 0 {
		return nil
	}
	if err = k.run(ctx, c, made); !errors.Is(err, errUnknown) {
		return err
	}
	if made, err = k.compile(ctx, c, true); err != nil {
		return err
	}
	return k.run(ctx, c, made)
}

// compile has the front make what the worker can run. whole: nothing but a plugin.
func (k *Kernel) compile(ctx context.Context, c *kernel.Cell, whole bool) (*wire.Result, error) {
	a, err := k.compiler.ask(ctx, frontRequest{Op: "compile", Name: cellName(c), Code: c.Code, Whole: whole})
	var failed *failedError
	var replaced *replacedError
	switch {
	case errors.As(err, &failed):
		return nil, &kernel.Error{Name: "CompileError", Value: failed.text, Traceback: []string{failed.text}}
	case errors.As(err, &replaced) && ctx.Err() == nil:
		return nil, &kernel.Error{Name: "ToolchainError", Value: replaced.Error(), Traceback: []string{replaced.Error()}}
	case errors.As(err, &replaced):
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, err
	case a.Errors != nil:
		return nil, &kernel.Error{Name: "CompileError", Value: a.Errors.Error(), Traceback: a.Trace}
	case a.Result == nil:
		return nil, errors.New("the Go compiler's front has answered nothing")
	}
	return a.Result, nil
}

// cellName is how tracebacks name a cell.
func cellName(c *kernel.Cell) string { return "In[" + strconv.Itoa(c.Count) + "]" }

// errUnknown tells that the worker can't evaluate a program, and has not begun to.
var errUnknown = errors.New("the worker can't evaluate the cell")

// run runs a compiled cell.
func (k *Kernel) run(ctx context.Context, c *kernel.Cell, made *wire.Result) error {
	since := procfs.Now()
	done, err := k.worker.begin(ctx, c, made)
	if err != nil {
		return k.workerDied(err)
	}
	var m workerMessage
	stop := ctx.Done()
	for m.Kind == "" {
		select {
		case m = <-done:
		case <-k.worker.ended:
			select {
			case m = <-done:
			default:
				return k.workerDied(errors.New("the Go worker has ended"))
			}
		case <-stop:
			stop = nil
			_ = k.worker.send(workerRequest{Op: "stop", Cell: made.Number})
		}
	}
	if stop == nil {
		// What the cell has started has to end with it.
		k.reaper.End(since, nil, nil)
	}
	k.worker.streams.Drain()
	if m.Unknown {
		return errUnknown
	}
	if m.LoadError != "" {
		return &kernel.Error{Name: "LoadError", Value: loadError(m.LoadError), Traceback: []string{loadError(m.LoadError)}}
	}
	if made.Lasts {
		past := wire.Past{Number: made.Number, Done: m.Done, Name: cellName(c), Code: c.Code, Direct: made.Direct != nil}
		if err := k.compiler.commit(context.WithoutCancel(ctx), past); err != nil {
			return err
		}
	}
	if made.Plugin != "" {
		k.budget(c)
	}
	return outcome(ctx, m)
}

// outcome is how a cell ended.
func outcome(ctx context.Context, m workerMessage) error {
	switch {
	case m.Failure != nil:
		return &kernel.Error{Name: m.Failure.Name, Value: m.Failure.Value, Traceback: m.Failure.Traceback}
	case m.Exit != nil && *m.Exit != 0:
		text := strconv.Itoa(*m.Exit)
		return &kernel.Error{Name: "ExitStatus", Value: text, Traceback: []string{"exit status " + text}}
	case m.Stopped && ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return nil
}

// loadError makes the loader's error say what to do.
func loadError(text string) string {
	if strings.Contains(text, "different version of package") {
		return text + ": the module was loaded in another version before; restart the kernel to use this one"
	}
	if strings.Contains(text, "failed to map segment") {
		return text + ": the directory for temporary files does not let programs run; set TMPDIR to one that does"
	}
	return text
}

// memoryBudget is how many bytes of cells may be loaded before the user is told: they
// can't be given back.
const memoryBudget = 1 << 30

// budget tells once that the cells take much memory.
func (k *Kernel) budget(c *kernel.Cell) {
	k.loaded++
	if k.told || k.loaded%64 != 0 {
		return
	}
	if n := mapped(k.worker.cmd.Process.Pid); n > memoryBudget {
		k.told = true
		c.Stderr(fmt.Sprintf("the %d cells of this session take %d MB of memory that only a restart of the kernel gives back\n", k.loaded, n>>20))
	}
}

// mapped is the memory of a process's own: resident, in bytes.
func mapped(pid int) int64 {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(b))
	if len(fields) < 2 {
		return 0
	}
	n, _ := strconv.ParseInt(fields[1], 10, 64)
	return n * int64(os.Getpagesize())
}

func (k *Kernel) workerDied(err error) error {
	<-k.worker.ended
	k.worker.streams.Drain()
	if k.worker.cmd.ProcessState != nil {
		return &kernel.DiedError{What: "the Go worker", State: k.worker.cmd.ProcessState}
	}
	return err
}

// Ended is a kernel.Mortal's: of the worker, which has the values.
func (k *Kernel) Ended(ctx context.Context) error {
	select {
	case <-k.started:
	case <-ctx.Done():
		return nil
	}
	select {
	case <-k.worker.ended:
		return k.workerDied(errors.New("the Go worker has ended"))
	case <-ctx.Done():
		return nil
	}
}

// Complete answers by what is alive and what the cell declares.
func (k *Kernel) Complete(ctx context.Context, code string, cursor int) (kernel.Completion, error) {
	if k.wait(ctx, nil) != nil {
		return kernel.Completion{}, nil
	}
	a, err := k.compiler.ask(ctx, frontRequest{Op: "complete", Code: code, Cursor: byteOf(code, cursor)})
	if err != nil || a.Answer == nil {
		return kernel.Completion{}, ignoreFailed(err)
	}
	return kernel.Completion{Matches: a.Answer.Matches, Types: a.Answer.Types,
		Start: pointOf(code, a.Answer.Start), End: pointOf(code, a.Answer.End)}, nil
}

// Inspect tells of a name: its declaration, and what the standard library says of it.
func (k *Kernel) Inspect(ctx context.Context, code string, cursor, _ int) (kernel.Inspection, error) {
	if k.wait(ctx, nil) != nil {
		return kernel.Inspection{}, nil
	}
	a, err := k.compiler.ask(ctx, frontRequest{Op: "inspect", Code: code, Cursor: byteOf(code, cursor)})
	if err != nil || a.Doc == "" {
		return kernel.Inspection{}, ignoreFailed(err)
	}
	return kernel.Inspection{Found: true, Data: kernel.Bundle{"text/plain": a.Doc}}, nil
}

// IsComplete asks the parser.
func (k *Kernel) IsComplete(ctx context.Context, code string) (kernel.Completeness, error) {
	if k.wait(ctx, nil) != nil {
		return kernel.Completeness{Status: "unknown"}, nil
	}
	a, err := k.compiler.ask(ctx, frontRequest{Op: "is_complete", Code: code})
	if err != nil {
		return kernel.Completeness{Status: "unknown"}, ignoreFailed(err)
	}
	return kernel.Completeness{Status: a.Status, Indent: a.Indent}, nil
}

// ignoreFailed keeps only the errors that end the kernel.
func ignoreFailed(err error) error {
	if died := (*kernel.DiedError)(nil); errors.As(err, &died) {
		return err
	}
	return nil
}

// byteOf and pointOf go between code points and bytes.
func byteOf(code string, point int) int {
	for i := range code {
		if point <= 0 {
			return i
		}
		point--
	}
	return len(code)
}

func pointOf(code string, at int) int {
	return utf8.RuneCountInString(code[:max(0, min(at, len(code)))])
}
