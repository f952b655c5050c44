package environ

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// maxAnswer bounds what is read of a program's answer, in bytes.
const maxAnswer = 64 << 10

// Asking is how a program is run to ask it something, such as its version.
type Asking struct {
	Argv []string // a path first
	Env  []string
	Dir  string
	// Timeout bounds its answer; 0 stands for 30 s.
	Timeout time.Duration
	// Credential is whom it runs as; nil stands for the agent's own.
	Credential *syscall.Credential
}

// Ask runs a program to its end, and its children with it, and returns what it printed
// on stdout, at most 64 KiB of it. The error is for the user: it has the last line of its
// stderr, and doesn't name the program.
func Ask(ctx context.Context, a Asking) (string, error) {
	if a.Timeout <= 0 {
		a.Timeout = 30 * time.Second
	}
	bounded, cancel := context.WithTimeout(ctx, a.Timeout)
	defer cancel()
	cmd := exec.CommandContext(bounded, a.Argv[0], a.Argv[1:]...)
	cmd.Env, cmd.Dir = a.Env, a.Dir
	out, errs := &limited{}, &limited{}
	cmd.Stdout, cmd.Stderr = out, errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: a.Credential}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	switch {
	case err == nil:
		return strings.ToValidUTF8(out.String(), "\uFFFD"), nil
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case bounded.Err() != nil:
		return "", fmt.Errorf("it did not answer within %s", a.Timeout)
	case a.Credential != nil && errors.Is(err, os.ErrPermission):
		return "", fmt.Errorf("uid %d, whom cells run as, may not run it", a.Credential.Uid)
	}
	words := strings.TrimSpace(strings.ToValidUTF8(errs.String(), "\uFFFD"))
	words = words[strings.LastIndexByte(words, '\n')+1:]
	if words != "" {
		words = fmt.Sprintf(" (%.300s)", words)
	}
	return "", fmt.Errorf("%w%s", err, words)
}

// limited takes what is written up to its limit, and forgets the rest. The buffer is not
// embedded: its ReadFrom, which io.Copy prefers, knows no limit.
type limited struct{ b bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if room := maxAnswer - l.b.Len(); room > 0 {
		l.b.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

func (l *limited) String() string { return l.b.String() }
