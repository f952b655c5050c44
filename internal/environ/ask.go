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

// Search says where what runs a language is looked for. The zero value looks in this
// process's environment and asks as its user.
type Search struct {
	// Env is the environment of kernels; nil stands for this process's own.
	Env []string
	// Dir is where a program is asked; "" stands for the current directory.
	Dir string
	// Timeout bounds a program's answer; 0 stands for 30 s.
	Timeout time.Duration
	// Credential is whom it runs as when it is asked: the kernels' user; nil stands for
	// this process's own.
	Credential *syscall.Credential
}

// WithDefaults fills in what the zero value stands for.
func (s Search) WithDefaults() Search {
	if s.Env == nil {
		s.Env = os.Environ()
	}
	if s.Timeout <= 0 {
		s.Timeout = 30 * time.Second
	}
	return s
}

// Ask runs a program, by its path, to ask it something, such as its version. It waits for
// it and for its children, and returns what it printed on stdout, at most 64 KiB of it.
// The error is for the user: it has the last line of its stderr, or else of its stdout, and
// doesn't name the program.
func (s Search) Ask(ctx context.Context, argv ...string) (string, error) {
	s = s.WithDefaults()
	bounded, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	cmd := exec.CommandContext(bounded, argv[0], argv[1:]...)
	cmd.Env, cmd.Dir = s.Env, s.Dir
	out, errs := &limited{}, &limited{}
	cmd.Stdout, cmd.Stderr = out, errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: s.Credential}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	switch {
	case err == nil:
		return strings.ToValidUTF8(out.String(), "\uFFFD"), nil
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case bounded.Err() != nil:
		return "", fmt.Errorf("it did not answer within %s", s.Timeout)
	}
	if errors.Is(err, os.ErrPermission) && s.Dir != "" {
		if err := Enter(s.Dir, s.Credential); err != nil {
			return "", err
		}
	}
	if s.Credential != nil && errors.Is(err, os.ErrPermission) {
		return "", fmt.Errorf("uid %d, whom cells run as, may not run it", s.Credential.Uid)
	}
	words := lastLine(errs.String())
	if words == "" {
		words = lastLine(out.String())
	}
	if words != "" {
		words = fmt.Sprintf(" (%.300s)", words)
	}
	return "", fmt.Errorf("%w%s", err, words)
}

func lastLine(text string) string {
	text = strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD"))
	return text[strings.LastIndexByte(text, '\n')+1:]
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
