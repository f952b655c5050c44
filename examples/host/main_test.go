package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cellard/cellard/client"
	"github.com/cellard/cellard/internal/pythons"
	"github.com/cellard/cellard/internal/testagent"
)

// The program does what docs/host.md says, by way of a VM's socket.
func TestHost(t *testing.T) {
	python := pythons.Newest(t)
	binary, err := testagent.Build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	agent, err := testagent.Start(binary, python)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := agent.Stop(); err != nil {
			t.Error(err)
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	dir := filepath.Join(t.TempDir(), "new", "directory")
	var out strings.Builder
	cells := []string{"x = 6 * 7", "print(x)\nx > 40", "1 / 0", "'y' * 60_000"}
	if err := host(ctx, agent.Firecracker, dir, cells, &out); err != nil {
		t.Fatal(err)
	}
	want := `^\[ok, variables kept\]
42
\[text/plain: "True"\]
\[ok, variables kept\]
\[error, variables kept\]
\[ZeroDivisionError: division by zero\]
(?s:.*)\[text/plain, 60002 bytes: (.*)\]
\[ok, variables kept\]
\[0 cells run or wait; idle for 0s\]
$`
	m := regexp.MustCompile(want).FindStringSubmatch(out.String())
	if m == nil {
		t.Fatalf("it says\n%.2000s", out.String())
	}
	if b, err := os.ReadFile(m[1]); err != nil || len(b) != 60002 || filepath.Dir(m[1]) != dir {
		t.Errorf("%s: %d bytes, %v", m[1], len(b), err)
	}
	// It leaves no context behind, also where it fails, or is told to stop.
	failing := filepath.Join(t.TempDir(), "out")
	remove := writer(func() { _ = os.Remove(failing) })
	if err := host(ctx, agent.Firecracker, failing, []string{"1", "'y' * 60_000"}, remove); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without its directory: %v", err)
	}
	stopped, stop := context.WithCancel(ctx)
	if err := host(stopped, agent.Firecracker, dir, []string{"print('runs')\nwhile True: pass"}, writer(func() { stop() })); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
	c, err := client.New(agent.Firecracker, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if left, err := c.Contexts(ctx); err != nil || len(left) > 0 {
		t.Errorf("left %+v, %v", left, err)
	}
	if err := host(ctx, "nonsense", dir, cells, &out); err == nil || !strings.Contains(err.Error(), "want one as") {
		t.Errorf("%v", err)
	}
}

// writer is called with each write.
type writer func()

func (w writer) Write(b []byte) (int, error) {
	w()
	return len(b), nil
}

// What docs/host.md shows of the program is in it.
func TestGuideShowsTheProgram(t *testing.T) {
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	guide, err := os.ReadFile("../../docs/host.md")
	if err != nil {
		t.Fatal(err)
	}
	parts := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllSubmatch(guide, -1)
	for _, p := range parts {
		if !strings.Contains(squeeze(string(program)), squeeze(string(p[1]))) {
			t.Errorf("not in main.go:\n%s", p[1])
		}
	}
	if len(parts) < 3 {
		t.Errorf("the guide shows %d parts", len(parts))
	}
}

// squeeze leaves the indentation out.
func squeeze(s string) string {
	return regexp.MustCompile(`(?m)^\s+`).ReplaceAllString(s, "")
}
