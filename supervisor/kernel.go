package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/cellard/cellard/execution"
	"github.com/cellard/cellard/internal/environ"
	"github.com/cellard/cellard/internal/logging"
	"github.com/cellard/cellard/internal/procfs"
	"github.com/cellard/cellard/kernels"
	"github.com/cellard/cellard/mime"
	"github.com/cellard/cellard/notebook"
	"github.com/cellard/cellard/protocol/api"
	"github.com/cellard/cellard/protocol/jupyter"
)

// kernel is one kernel process and the sockets to it. It is never reconnected: at the
// first sign of its end all of it is thrown away.
type kernel struct {
	*Process
	client   *jupyter.Client
	launch   *kernels.Launch
	dir      string // its private directory, removed by close
	temp     string // for its temporary files, if it has one: see makeTemp
	mark     string // NAME=VALUE in the environment of all that comes from it
	info     api.KernelInfo
	language json.RawMessage // language_info, as a notebook has it
	lists    bool            // it answers variables_request
	displays execution.DisplayMap
	taken    *os.File       // where it reads what was taken of it, if it waits for that
	helpers  map[int]uint64 // processes that are part of it: pid to start time
	words    lastWords
	meter    *procfs.Meter
	oomsAt   int64     // procfs.OOMKills at its start, then at that of its last cell
	killedAs *api.Lost // why the agent killed it, if it did
	killedAt time.Time
}

// startTimeout bounds the start of a kernel.
func (m *Manager) startTimeout(l *kernels.Launch) time.Duration {
	return max(m.o.StartTimeout, l.StartTimeout)
}

// startKernel starts what launch describes and returns once it answers. When ctx
// ends first, or the process does, nothing is left of it and the error is an
// *api.Error with the kernel's last words.
func (m *Manager) startKernel(ctx context.Context, launch *kernels.Launch, cwd string, env map[string]string) (*kernel, error) {
	n := m.kernels.Add(1)
	dir := filepath.Join(m.o.RuntimeDir, fmt.Sprintf("k%d", n))
	k := &kernel{launch: launch, dir: dir, mark: fmt.Sprintf("CELLARD_KERNEL=%s-%d", m.instance, n), oomsAt: procfs.OOMKills()}
	err := k.start(ctx, m, cwd, env)
	if err == nil {
		return k, nil
	}
	words, how := "", ""
	if k.Process != nil {
		k.killTree(k.mark)
		k.waitDone()
		m.keeper.unwatch(k.Pid())
		k.takeWords()
		words = k.words.String()
		if sig, code := k.ended(); k.killedAs == nil && errors.Is(err, errEnded) {
			how = "it ended: " + howEnded(sig, code)
			err = fmt.Errorf("the kernel ended at its start (%s)", howEnded(sig, code))
		}
	}
	k.close()
	if ctx.Err() != nil && errors.Is(context.Cause(ctx), errStartTimeout) {
		how = fmt.Sprintf("no answer within %v", m.startTimeout(launch))
		err = fmt.Errorf("the kernel did not answer within %v", m.startTimeout(launch))
	}
	if how == "" {
		how = logging.Describe(err)
	}
	e := api.Errorf(api.CodeKernelFailed, "%s: %v", launch.KernelName, err)
	if words != "" {
		e.Message += ":\n" + words
	}
	hint := fmt.Sprintf("run %q by hand to see what it lacks", strings.Join(launch.Argv, " "))
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		hint = fmt.Sprintf("make room on the disk of the runtime directory, which is %s", m.o.RuntimeDir)
	}
	return nil, &startError{e.WithHint("%s", hint), how}
}

// startError is why a kernel did not start: for the host with its last words, for the log
// without.
type startError struct {
	refusal *api.Error
	how     string
}

func (e *startError) Error() string   { return e.refusal.Error() }
func (e *startError) Unwrap() error   { return e.refusal }
func (e *startError) LogText() string { return e.how }

var (
	errEnded        = errors.New("the kernel ended")
	errStartTimeout = errors.New("start timeout")
)

func (k *kernel) start(ctx context.Context, m *Manager, cwd string, env map[string]string) error {
	// The directory is given to the cells' account last: until then no cell of another
	// context can put a link where the agent is about to write.
	if err := os.Mkdir(k.dir, 0o700); err != nil {
		return err
	}
	for name, data := range k.launch.Files {
		path := filepath.Join(k.dir, name)
		if sub := filepath.Dir(path); sub != k.dir {
			if err := m.user.mkdir(sub); err != nil {
				return err
			}
		}
		if err := m.user.writeFile(path, data); err != nil {
			return err
		}
	}
	if k.launch.Waits {
		if err := k.makeTaken(m); err != nil {
			return err
		}
	}
	ci, release, err := k.connection()
	if err != nil {
		return err
	}
	defer release()
	connFile := filepath.Join(k.dir, "connection.json")
	if err := ci.WriteFile(connFile); err != nil {
		return err
	}
	if err := errors.Join(m.user.own(connFile), m.user.own(k.dir)); err != nil {
		return err
	}
	argv := make([]string, len(k.launch.Argv))
	for i, a := range k.launch.Argv {
		argv[i] = strings.NewReplacer("{connection_file}", connFile, "{dir}", k.dir).Replace(a)
	}
	if len(argv) == 0 {
		return errors.New("its kernelspec has no argv")
	}
	vars := m.environ(k.launch.Env, env, k.mark)
	if k.launch.Temp {
		vars = k.makeTemp(m, vars)
	}
	program := k.launch.Program
	if program == "" {
		if program, err = environ.LookPath(vars, argv[0]); err != nil {
			return err
		}
		argv[0] = program
	}
	attr := &os.ProcAttr{Dir: cwd, Env: vars, Sys: &syscall.SysProcAttr{Credential: m.user.credential}}
	release()
	m.keeper.begin()
	group := m.group(filepath.Base(k.dir))
	if k.Process, err = m.spawn.Start(program, argv, attr, group); err != nil {
		group.Close()
		return err
	}
	if k.group == nil {
		group.Close()
	}
	k.meter = procfs.NewMeter(k.Pid())
	k.meter.Children = k.launch.Own
	if _, ok := k.group.CPU(); ok {
		k.meter.CPU = k.group.CPU
	}
	m.keeper.watch(k.Pid())
	ctx, stop := k.whileAlive(ctx)
	defer stop()
	if k.client, err = k.dial(ctx, ci, m); err != nil {
		return k.orEnded(ctx, err)
	}
	info, err := k.client.Ready(ctx)
	if err != nil {
		return k.orEnded(ctx, err)
	}
	k.info = api.KernelInfo{Name: info.Implementation, Version: info.ImplementationVersion}
	k.language = notebook.LanguageInfo(info.LanguageInfo.Raw, k.launch.Language)
	k.lists = slices.Contains(info.SupportedFeatures, jupyter.FeatureVariables)
	k.helpers = map[int]uint64{}
	for _, s := range procfs.Descendants(k.Pid()) {
		k.helpers[s.PID] = s.Start
	}
	return nil
}

// makeTaken makes the file by which the kernel is told what was taken of it.
func (k *kernel) makeTaken(m *Manager) (err error) {
	path := filepath.Join(k.dir, kernels.TakenFile)
	if k.taken, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return err
	}
	if _, err = k.taken.Write(make([]byte, 4)); err != nil { // a disk that fills up later takes them too
		return err
	}
	return m.user.own(path)
}

func (k *kernel) connection() (ci jupyter.ConnectionInfo, release func(), err error) {
	if k.launch.Transport == "tcp" {
		return jupyter.NewTCP()
	}
	ci, err = jupyter.NewIPC(k.dir)
	return ci, func() {}, err
}

// dial connects the channels as soon as the kernel has bound them all.
func (k *kernel) dial(ctx context.Context, ci jupyter.ConnectionInfo, m *Manager) (*jupyter.Client, error) {
	wait := time.Millisecond / 2 // the quickest of them take some milliseconds
	for {
		if k.bound(ci) {
			c, err := jupyter.Dial(ctx, ci, jupyter.ClientOptions{Spill: m.store.Temp, MaxMessage: m.o.MaxMessage})
			if err == nil {
				return c, nil
			}
			if !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, os.ErrNotExist) {
				return nil, err
			}
		}
		select {
		case <-time.After(wait):
			wait = min(wait+wait/16, 20*time.Millisecond)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		k.takeWords()
	}
}

// bound reports whether all the sockets' files are there; over tcp only a connection tells.
func (k *kernel) bound(ci jupyter.ConnectionInfo) bool {
	if ci.Transport != "ipc" {
		return true
	}
	for _, ch := range []jupyter.Channel{jupyter.Shell, jupyter.IOPub, jupyter.Stdin, jupyter.Control, jupyter.Heartbeat} {
		_, path := ci.Address(ch)
		if _, err := os.Stat(path); err != nil {
			return false
		}
	}
	return true
}

// whileAlive is a context that ends with the process too, for errEnded.
func (k *kernel) whileAlive(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-k.Done():
			cancel(errEnded)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil); <-watched }
}

// orEnded is errEnded if that is what is behind err: a process's channels end a moment
// before it has been waited for.
func (k *kernel) orEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case <-k.Done():
		return errEnded
	case <-time.After(drainExit):
		return err
	}
}

// takeWords keeps the end of what the process itself wrote, for when it fails.
func (k *kernel) takeWords() {
	for _, p := range k.raw.Drain() {
		k.words.add(p.Bytes)
	}
}

// interrupt stops what the cell runs: by the kernelspec's way, and the processes that
// were born since. The kernel comes first, that it doesn't go on with the cell where a
// child has ended; and the children stand by then, as kernels signal them, too.
func (k *kernel) interrupt(c *cell) (err error) {
	c.stop.ending.Repeat()
	k.signalBorn(c, syscall.SIGINT, func() { err = k.interruptSelf() })
	return err
}

// interruptSelf is interrupt for the kernel alone. One that a cell has stopped (SIGSTOP) goes
// on, or it would take none.
func (k *kernel) interruptSelf() error {
	if k.launch.InterruptMode == "message" {
		k.Signal(syscall.SIGCONT)
		return k.client.Send(jupyter.Control, k.client.NewMessage("interrupt_request", struct{}{}))
	}
	if p, ok := procfs.Read(k.Pid()); ok {
		procfs.Interrupt(p, k.launch.WhileIgnored)
	}
	k.Signal(syscall.SIGCONT)
	helpers, _ := k.parts(procfs.Moment{})
	for _, p := range helpers { // a wrapper's child
		procfs.Interrupt(p, k.launch.WhileIgnored)
	}
	return nil
}

// parts are the processes that came from the kernel: its helpers, which are part of it, and
// those that were born since. Of a kernel of our own these are none: its interrupt ends what a
// cell has started, and knows what is part of it.
func (k *kernel) parts(since procfs.Moment) (helpers, born []procfs.Stat) {
	if k.launch.Own {
		return nil, nil
	}
	for _, s := range k.family(k.mark) {
		if k.helper(s) {
			helpers = append(helpers, s)
		} else if since.Before(s) {
			born = append(born, s)
		}
	}
	return helpers, born
}

// bornSince are the processes of parts that were born since.
func (k *kernel) bornSince(since procfs.Moment) []procfs.Stat {
	_, born := k.parts(since)
	return born
}

// signalBorn signals what a stopped cell has started; first: see procfs.Ending.
func (k *kernel) signalBorn(c *cell, sig syscall.Signal, first func()) {
	helpers, born := k.parts(c.born)
	c.stop.ending.Signal(sig, born, helpers, func() []procfs.Stat { return k.bornSince(c.born) }, first)
}

// killBorn kills the processes that were born since. What forks all the time is faster than
// that, unless it stands still.
func (k *kernel) killBorn(since procfs.Moment) {
	if k.launch.Own {
		return
	}
	k.group.Frozen(func() { signalAll(k.bornSince(since), sigKill) })
}

func signalAll(all []procfs.Stat, sig syscall.Signal) {
	for _, s := range all {
		_ = syscall.Kill(s.PID, sig)
	}
}

// helper reports whether a process is part of the kernel: one that was there when it was
// ready, or that its language's runtime keeps.
func (k *kernel) helper(s procfs.Stat) bool {
	if start, ok := k.helpers[s.PID]; ok && start == s.Start {
		return true
	}
	return slices.ContainsFunc(k.launch.Helpers, func(text string) bool { return procfs.Runs(s.PID, text) })
}

// nudge wakes a kernel whose interrupt takes effect only when its loop turns
// (ipython/ipykernel#881).
func (k *kernel) nudge() {
	_ = k.client.Send(jupyter.Shell, k.client.NewMessage("kernel_info_request", struct{}{}))
}

// close frees all but the process, which must have ended.
func (k *kernel) close() {
	if k.client != nil {
		_ = k.client.Close()
	}
	if k.Process != nil {
		k.raw.Close()
		k.group.Close()
		k.meter.Close()
	}
	if k.taken != nil {
		k.taken.Close()
	}
	k.removeTemp()
	_ = environ.RemoveAll(k.dir)
}

// lost tells how the kernel ended. Only after Done.
func (k *kernel) lost() *api.Lost {
	if k.killedAs != nil {
		return k.killedAs
	}
	sig, code := k.ended()
	l := &api.Lost{Reason: api.LostExit, Message: "the kernel ended by itself (" + howEnded(sig, code) + ")"}
	if sig != 0 {
		name := signalName(sig)
		l.Reason, l.Signal = api.LostSignal, &name
		l.Message = "the kernel was ended by " + name
		if now := procfs.OOMKills(); sig == syscall.SIGKILL && now > k.oomsAt {
			l.Reason, l.Message = api.LostOOM, "the system ran out of memory and ended the kernel"
		}
	} else {
		l.ExitCode = &code
	}
	if w := k.words.String(); w != "" {
		l.Message += "; its last words: " + w
	}
	return l
}

func howEnded(sig syscall.Signal, code int) string {
	if sig != 0 {
		return signalName(sig)
	}
	return fmt.Sprintf("exit code %d", code)
}

// lastWords keeps the end of a text.
type lastWords struct{ b []byte }

const lastWordsBytes = 4 << 10

func (w *lastWords) add(b []byte) {
	w.b = append(w.b, b[max(0, len(b)-lastWordsBytes):]...)
	if n := len(w.b) - lastWordsBytes; n > 0 {
		w.b = append(w.b[:0:0], w.b[n:]...)
	}
}

func (w *lastWords) String() string {
	return strings.TrimSpace(mime.StripANSI(strings.ToValidUTF8(string(w.b), "\uFFFD")))
}
