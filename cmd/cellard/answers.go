package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// answers reads lines of stdin for cells that ask. A read can be given up, as when the
// cell was interrupted meanwhile: what is typed then is somebody else's.
type answers struct{ rest []byte }

// maxAnswer bounds a line, in bytes.
const maxAnswer = 16 << 20

// line reads one line, without its end. At the end of stdin what is left is a line too;
// then it is io.EOF.
func (a *answers) line(ctx context.Context) (string, error) {
	for {
		if line, rest, ok := bytes.Cut(a.rest, []byte("\n")); ok {
			a.rest = rest
			return string(bytes.TrimSuffix(line, []byte("\r"))), nil
		}
		if len(a.rest) > maxAnswer {
			return "", errors.New("an answer of more than 16 MiB")
		}
		fds := []unix.PollFd{{Fd: int32(os.Stdin.Fd()), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, 50) // ms; a terminal can't be told to stop waiting
		switch {
		case ctx.Err() != nil:
			return "", ctx.Err()
		case n == 0 || errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return "", err
		}
		b := make([]byte, 64<<10)
		n, err = os.Stdin.Read(b)
		a.rest = append(a.rest, b[:n]...)
		if err == nil {
			continue
		}
		if err == io.EOF && len(a.rest) > 0 {
			line := string(a.rest)
			a.rest = nil
			return line, nil
		}
		return "", err
	}
}

// secret is line that the terminal doesn't show.
func (a *answers) secret(ctx context.Context) (string, error) {
	fd := int(os.Stdin.Fd())
	if shown, err := unix.IoctlGetTermios(fd, unix.TCGETS); err == nil {
		hidden := *shown
		hidden.Lflag &^= unix.ECHO
		hidden.Lflag |= unix.ECHONL
		if err := unix.IoctlSetTermios(fd, unix.TCSETS, &hidden); err != nil {
			return "", err
		}
		defer func() { _ = unix.IoctlSetTermios(fd, unix.TCSETS, shown) }()
	}
	return a.line(ctx)
}
