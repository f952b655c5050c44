package front

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/cellard/cellard/internal/environ"
	"github.com/cellard/cellard/kernels/output"
	"github.com/cellard/cellard/protocol/jupyter"
	"github.com/cellard/cellard/protocol/jupyter/kernel"
)

const (
	startWithin = time.Minute
	// lastWithin is how long the messages of an R that has ended are read.
	lastWithin = 500 * time.Millisecond
	// quitWithin is how long R has for its end.
	quitWithin = 2 * time.Second
)

// takenFile is where R reads, in its directory, up to which of its messages all was taken.
const takenFile = "taken"

// openedFD is the descriptor by which R has process.opened.
const openedFD = 3

// process is R, with its directory, its pipes, and a client of it.
type process struct {
	dir     string
	taken   *os.File
	opened  *os.File // dir, for R too; nil where its path is short enough
	reaper  *output.Reaper
	streams *output.Streams
	keeper  *exec.Cmd // nil where there is none
	told    io.WriteCloser
	mark    string // NAME=VALUE in the environment of all that comes from R

	cmd    *exec.Cmd       // nil before start
	ended  <-chan struct{} // closed when R has ended
	client *jupyter.Client
	info   jupyter.KernelInfo
}

// start starts R and returns once it answers. What is there of it, after an error too, is
// the caller's to close. Of a message of R's as many bytes are held in memory: what is over
// goes to a file, whose text nobody reads.
func (p *process) start(o Options, inline int) (err error) {
	temp := o.Temp
	if temp == "" {
		temp = os.TempDir()
	}
	if temp, err = filepath.Abs(temp); err != nil {
		return err
	}
	if p.dir, err = os.MkdirTemp(temp, "cellard-r-kernel-"); err != nil {
		return err
	}
	p.reaper = output.NewReaper()
	p.mark = "CELLARD_R_FRONT=" + rand.Text()
	if err := p.keep(o.Keeper); err != nil {
		return err
	}
	for name, data := range o.Files {
		if err := os.WriteFile(filepath.Join(p.dir, name), data, 0o600); err != nil {
			return err
		}
	}
	if p.taken, err = os.OpenFile(filepath.Join(p.dir, takenFile), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return err
	}
	if _, err := p.taken.Write(make([]byte, 4)); err != nil {
		return err
	}
	theirs, ours, err := p.sockets()
	if err != nil {
		return err
	}
	file := filepath.Join(p.dir, "connection.json")
	if err := theirs.WriteFile(file); err != nil {
		return err
	}
	argv := make([]string, len(o.Argv))
	for i, a := range o.Argv {
		argv[i] = strings.NewReplacer("{dir}", p.dir, "{connection_file}", file).Replace(a)
	}
	env := append(os.Environ(), o.Env...)
	// R leaves its temporary files behind where it is killed; its children have their own place.
	env = append(env, p.mark, "TMPDIR="+p.dir, "CELLARD_TMPDIR="+os.Getenv("TMPDIR"))
	if err := p.run(argv, env); err != nil {
		return err
	}
	return p.connect(ours, inline)
}

// sockets tells where R's are, for R and for its client: in the directory. Where that's path
// is too long for a socket's, as a batch system's for temporary files may be, each has it
// by a descriptor.
func (p *process) sockets() (theirs, ours jupyter.ConnectionInfo, err error) {
	if theirs, err = jupyter.NewIPC(p.dir); err == nil {
		return theirs, theirs, nil
	}
	if p.opened, err = os.Open(p.dir); err != nil {
		return theirs, ours, err
	}
	if theirs, err = jupyter.NewIPC(fmt.Sprintf("/proc/self/fd/%d", openedFD)); err != nil {
		return theirs, ours, err
	}
	ours = theirs
	ours.IP = fmt.Sprintf("/proc/self/fd/%d/k", p.opened.Fd())
	return theirs, ours, nil
}

// keep starts the keeper, which is told of this process's end by that of a pipe.
func (p *process) keep(argv []string) error {
	if len(argv) == 0 {
		return nil
	}
	c := exec.Command(argv[0], append(argv[1:len(argv):len(argv)], p.mark, p.dir, "")...)
	c.Dir, c.Env = "/", []string{"GOMAXPROCS=1"}
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	told, err := c.StdinPipe()
	if err == nil {
		err = p.reaper.Start(c)
	}
	if err != nil {
		return fmt.Errorf("starting the keeper: %w", err)
	}
	p.keeper, p.told = c, told
	return nil
}

// run starts R in a session of its own: a Ctrl-C at a terminal is the front's to take.
func (p *process) run(argv, env []string) error {
	streams, stdout, stderr, err := output.NewStreams()
	if err != nil {
		return err
	}
	defer stdout.Close()
	defer stderr.Close()
	p.streams = streams
	p.streams.SetCell(kernel.NewCell("", log{}))
	c := exec.Command(argv[0], argv[1:]...)
	c.Env, c.Stdout, c.Stderr = env, stdout, stderr
	if p.opened != nil {
		c.ExtraFiles = []*os.File{p.opened}
	}
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	ended, started := make(chan struct{}), make(chan error)
	go func() {
		runtime.LockOSThread() // Pdeathsig follows the thread, which ends with the goroutine
		err := p.reaper.Start(c)
		started <- err
		if err == nil {
			_ = p.reaper.Wait(c) // how it ended is in its ProcessState
			close(ended)
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("starting %s: %w", argv[0], err)
	}
	p.cmd, p.ended = c, ended
	if p.told != nil {
		fmt.Fprintf(p.told, "+%d\n", c.Process.Pid)
	}
	return nil
}

// connect connects to R as soon as it listens, unless it ends before.
func (p *process) connect(ci jupyter.ConnectionInfo, inline int) (err error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), startWithin, fmt.Errorf("the process of R did not start within %v", startWithin))
	defer cancel()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	go func() {
		select {
		case <-p.ended:
			end(errEnded)
		case <-ctx.Done():
		}
	}()
	if p.client, err = jupyter.Dial(ctx, ci, jupyter.ClientOptions{Inline: inline}); err == nil {
		p.info, err = p.client.Ready(ctx)
	}
	if err != nil {
		select { // its channels end a moment before it has been waited for
		case <-p.ended:
			err = p.died()
		case <-time.After(lastWithin):
		}
	}
	return err
}

var errEnded = errors.New("the process of R has ended")

// died is the reason why no more comes. A process that lives without its sockets is ended:
// what it holds can't be had any more.
func (p *process) died() error {
	select {
	case <-p.ended:
	case <-time.After(lastWithin):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
	p.streams.Drain()
	return &kernel.DiedError{What: "R", State: p.cmd.ProcessState}
}

// close ends R, by itself if that is quick, and removes what is left.
func (p *process) close() error {
	if p.cmd != nil {
		if p.client != nil {
			_ = p.client.Send(jupyter.Control, p.client.NewMessage("shutdown_request", jupyter.ShutdownRequest{}))
		}
		select {
		case <-p.ended:
		case <-time.After(quitWithin):
			_ = p.cmd.Process.Kill()
			<-p.ended
		}
	}
	if p.client != nil {
		_ = p.client.Close()
	}
	if p.reaper != nil {
		p.reaper.Close()
	}
	if p.streams != nil {
		p.streams.Close()
	}
	if p.taken != nil {
		p.taken.Close()
	}
	if p.opened != nil {
		p.opened.Close()
	}
	err := environ.RemoveAll(p.dir)
	if p.keeper != nil {
		_, _ = io.WriteString(p.told, "done\n")
		p.told.Close()
		_ = p.reaper.Wait(p.keeper)
	}
	return err
}

// log takes what R prints before the first cell, as a profile that fails: it is for this
// process's stderr, which a client shows where it shows its own log.
type log struct{}

func (log) Publish(_ string, content any) {
	if s, ok := content.(jupyter.Stream); ok {
		_, _ = io.WriteString(os.Stderr, s.Text)
	}
}

func (log) Input(context.Context, string, bool) (string, error) {
	return "", kernel.ErrStdinNotAllowed
}
