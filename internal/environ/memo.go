package environ

import (
	"context"
	"os"
	"strconv"
	"strings"
)

// Memo remembers what was found out about a program as long as that stays the same file.
// A failure is not remembered: the next call looks again, so that an installation mends
// it. Make it by NewMemo; it is safe for concurrent use.
type Memo[T any] struct {
	lock    chan struct{} // of one element: who holds it may use the rest
	found   *T
	program string
	stat    os.FileInfo // of the program, as it was then
}

// NewMemo returns a Memo that remembers nothing yet.
func NewMemo[T any]() *Memo[T] { return &Memo[T]{lock: make(chan struct{}, 1)} }

// Get returns what is remembered, or else what look finds, and the program that this is
// of. Others wait meanwhile. The error is look's, or ctx's.
func (m *Memo[T]) Get(ctx context.Context, look func() (found *T, program string, err error)) (*T, error) {
	select {
	case m.lock <- struct{}{}:
		defer func() { <-m.lock }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if m.found != nil && m.unchanged() {
		return m.found, nil
	}
	m.found = nil
	found, program, err := look()
	if err != nil {
		return nil, err
	}
	m.found, m.program = found, program
	m.stat, _ = os.Stat(program)
	return found, nil
}

// Forget makes the next Get look again: for a caller whose kernel did not start.
func (m *Memo[T]) Forget() {
	m.lock <- struct{}{}
	m.found = nil
	<-m.lock
}

func (m *Memo[T]) unchanged() bool {
	now, err := os.Stat(m.program)
	return err == nil && m.stat != nil && os.SameFile(now, m.stat) && now.ModTime().Equal(m.stat.ModTime())
}

// AtLeast tells whether a version, such as "5.2.15(1)-release", is major.minor or newer.
func AtLeast(version string, major, minor int) bool {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return false
	}
	a, err1 := strconv.Atoi(parts[0])
	b, err2 := strconv.Atoi(parts[1])
	return err1 == nil && err2 == nil && (a > major || a == major && b >= minor)
}
