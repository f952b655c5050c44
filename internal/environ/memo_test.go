package environ

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestMemo(t *testing.T) {
	program := filepath.Join(t.TempDir(), "p")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(program, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	m := NewMemo[string]()
	looks := 0
	get := func() string {
		t.Helper()
		s, err := m.Get(t.Context(), func() (*string, string, error) {
			looks++
			b, err := os.ReadFile(program)
			s := string(b)
			return &s, program, err
		})
		if err != nil {
			t.Fatal(err)
		}
		return *s
	}
	for range 2 {
		if s := get(); s != "one" || looks != 1 {
			t.Errorf("%q after %d looks", s, looks)
		}
	}
	write("two")
	if err := os.Chtimes(program, time.Time{}, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if s := get(); s != "two" || looks != 2 {
		t.Errorf("of another file: %q after %d looks", s, looks)
	}
	m.Forget()
	if get(); looks != 3 {
		t.Errorf("forgotten, but %d looks", looks)
	}
}

func TestMemoOfAFailure(t *testing.T) {
	m, no := NewMemo[int](), errors.New("no")
	for range 2 {
		if _, err := m.Get(t.Context(), func() (*int, string, error) { return nil, "", no }); err != no {
			t.Errorf("error %v", err)
		}
	}
	n := 1
	if got, err := m.Get(t.Context(), func() (*int, string, error) { return &n, "/", nil }); err != nil || *got != 1 {
		t.Errorf("%v, %v after a failure", got, err)
	}
}

// Who waits for another's look may give up.
func TestMemoWaits(t *testing.T) {
	m := NewMemo[int]()
	begun, end := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		_, err := m.Get(t.Context(), func() (*int, string, error) {
			close(begun)
			<-end
			return nil, "", context.DeadlineExceeded
		})
		done <- err
	}()
	<-begun
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Get(ctx, func() (*int, string, error) { panic("looked twice") }); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	close(end)
	<-done
}
