package install

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/cellard/cellard/internal/environ"
)

const (
	// maxLine is the longest line of an installer's output that is kept, in bytes.
	maxLine = 300
	// killAfter is how long a program has to end once it was asked to.
	killAfter = 10 * time.Second
)

// run runs a program and hands on each line that it prints, to either stream. When ctx
// ends the program and its children are asked to end, then killed.
func (i *Installer) run(ctx context.Context, argv, env []string, tell func(string)) error {
	program, err := environ.LookPath(i.o.Env, argv[0])
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program, argv[1:]...)
	cmd.Env = append(slices.Clone(i.o.Env), env...)
	cmd.Dir = "/"
	// A group of its own, but not a session: see supervisor.Options.Sole.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = killAfter
	r, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	read := make(chan struct{})
	go func() {
		defer close(read)
		eachLine(r, tell)
	}()
	err = cmd.Run()
	if cmd.Process != nil {
		if ctx.Err() != nil {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what is left of its children
		}
		reap(cmd.Process.Pid, ctx.Err() != nil)
	}
	_ = w.Close()
	<-read
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // it ended well, and left something behind that has its streams
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", strings.Join(argv[:min(len(argv), 2)], " "), err)
	}
	return nil
}

// reap waits for the orphans of a group, which are this process's where it is their
// subreaper; for those that live only if they were killed.
func reap(group int, killed bool) {
	for end := time.Now().Add(killAfter); time.Now().Before(end); {
		pid, err := syscall.Wait4(-group, nil, syscall.WNOHANG, nil)
		switch {
		case err == syscall.EINTR || pid > 0:
		case err != nil || !killed:
			return
		default:
			time.Sleep(time.Millisecond)
		}
	}
}

// eachLine hands on the lines of r, cleaned and cut. It reads to the end.
func eachLine(r io.Reader, tell func(string)) {
	b := bufio.NewReaderSize(r, 4096)
	var line []byte
	flush := func() {
		if text := clean(line); text != "" {
			tell(text)
		}
		line = line[:0]
	}
	for {
		c, err := b.ReadByte()
		switch {
		case err != nil:
			flush()
			return
		case c == '\n' || c == '\r':
			flush()
		case len(line) < maxLine:
			line = append(line, c)
		}
	}
}

func clean(line []byte) string {
	text := strings.ToValidUTF8(string(line), "")
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, text))
}
