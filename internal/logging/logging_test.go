package logging_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/cellard/cellard/internal/logging"
	"github.com/cellard/cellard/protocol/api"
)

const secret = "s3cret"

type described struct{ error }

func (described) LogText() string { return "exit code 3" }

func TestDescribeTellsTheKindAlone(t *testing.T) {
	jsonErr := json.Unmarshal([]byte("{\"s3cret\""), new(any))
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, "none"},
		{errors.New(secret), "*errors.errorString"},
		{fmt.Errorf("%s: %w", secret, context.Canceled), "context canceled"},
		{&fs.PathError{Op: "open", Path: secret, Err: syscall.ENOENT}, "open: no such file or directory"},
		{fmt.Errorf("%s %w", secret, &fs.PathError{Op: "open", Path: secret, Err: errors.New(secret)}), "open: *errors.errorString"},
		{&os.LinkError{Op: "link", Old: secret, New: secret, Err: syscall.EEXIST}, "link: file exists"},
		{&net.OpError{Op: "dial", Net: "unix", Addr: &net.UnixAddr{Name: secret}, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, "dial unix: connect: connection refused"},
		{api.Errorf(api.CodeKernelFailed, "%s", secret).WithHint("%s", secret), "kernel_failed"},
		{fmt.Errorf("%s: %w", secret, described{errors.New(secret)}), "exit code 3"},
		{errors.Join(errors.New(secret), net.ErrClosed), "use of closed network connection"},
		{fmt.Errorf("x: %w", jsonErr), "*json.SyntaxError"},
	} {
		if got := logging.Describe(c.err); got != c.want {
			t.Errorf("%v is %q, want %q", c.err, got, c.want)
		}
	}
}

// What may be a secret is in no line, in no format and at no level, unless it is asked for.
func TestContentIsLeftOut(t *testing.T) {
	for _, o := range []logging.Options{{}, {JSON: true}, {Content: true}, {JSON: true, Content: true}} {
		var b bytes.Buffer
		o.Level = slog.LevelDebug
		log := logging.New(&b, o).With("with", logging.Content(secret)).WithGroup("g").With("error", errors.New(secret))
		for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
			log.Log(context.Background(), level, "text", "code", logging.Content(secret), slog.Group("h", "error", fmt.Errorf("a %s", secret)), "n", 3)
		}
		if got := strings.Contains(b.String(), secret); got != o.Content {
			t.Errorf("%+v: %s", o, &b)
		}
		if n := strings.Count(b.String(), "\n"); n != 4 || !o.Content && strings.Count(b.String(), "[6 bytes]") != 8 {
			t.Errorf("%+v: %s", o, &b)
		}
	}
	// A handler that knows nothing of it leaves it out too.
	var b bytes.Buffer
	slog.New(slog.NewTextHandler(&b, nil)).Info("text", "code", logging.Content(secret))
	slog.New(slog.NewJSONHandler(&b, nil)).Info("text", "code", logging.Content(secret))
	if strings.Contains(b.String(), secret) || strings.Count(b.String(), "[6 bytes]") != 2 {
		t.Error(b.String())
	}
}
