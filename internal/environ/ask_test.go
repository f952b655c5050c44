package environ

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestAsk(t *testing.T) {
	dir := t.TempDir()
	script := func(text string) []string {
		path := filepath.Join(dir, "program")
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
		return []string{path, "arg"}
	}
	ask := func(text string, timeout time.Duration) (string, error) {
		return Search{Env: []string{"A=b"}, Dir: dir, Timeout: timeout}.Ask(context.Background(), script(text)...)
	}
	if out, err := ask(`echo "$1 $A"; pwd; echo noise >&2`, 0); err != nil || out != "arg b\n"+dir+"\n" {
		t.Errorf("%q %v", out, err)
	}
	if _, err := ask("echo first >&2; echo last words >&2; exit 3", 0); err == nil || !strings.Contains(err.Error(), "exit status 3 (last words)") {
		t.Errorf("one that fails: %v", err)
	}
	if _, err := ask("echo first; echo last words; exit 3", 0); err == nil || !strings.Contains(err.Error(), "exit status 3 (last words)") { // as R does
		t.Errorf("one that fails, and says so on stdout: %v", err)
	}
	if out, err := ask("/usr/bin/head -c 1000000 /dev/zero", 0); err != nil || len(out) != maxAnswer {
		t.Errorf("one that says much: %d bytes, %v", len(out), err)
	}
	if _, err := ask("/bin/sleep 300 & /bin/sleep 300", 200*time.Millisecond); err == nil || !strings.Contains(err.Error(), "did not answer within") {
		t.Errorf("one that hangs: %v", err)
	}
	if _, err := (Search{}).Ask(context.Background(), filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("one that isn't there: %v", err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("enough")
	cancel(why)
	if _, err := (Search{}).Ask(ctx, script("exit 0")...); !errors.Is(err, why) {
		t.Errorf("one that is not waited for: %v", err)
	}
}
