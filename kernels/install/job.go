package install

import (
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// pause is the least time between two lines of progress.
	pause = 200 * time.Millisecond
	// keptLines is how many of an installer's last lines are kept for an error.
	keptLines = 12
)

// job is an install under way.
type job struct {
	done chan struct{} // closed at its end, after err was set
	err  error

	mu        sync.Mutex
	listeners []*listener
	told      time.Time // when the last line went out
	last      string    // the last one that went out, for who comes later
	lines     []string
}

type listener struct{ tell func(string) }

// listen has lines of progress told; leave ends that, and waits for one being told.
func (j *job) listen(tell func(string)) (leave func()) {
	if tell == nil {
		return func() {}
	}
	l := &listener{tell}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.listeners = append(j.listeners, l)
	if j.last != "" {
		tell(j.last)
	}
	return func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		for k := range j.listeners {
			if j.listeners[k] == l {
				j.listeners = append(j.listeners[:k:k], j.listeners[k+1:]...)
				return
			}
		}
	}
}

// step tells what is done now, which is never left out.
func (j *job) step(text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.say(text)
}

// line is a line of an installer's: told if it is time, and kept for an error.
func (j *job) line(text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.lines) == keptLines {
		j.lines = j.lines[:copy(j.lines, j.lines[1:])]
	}
	j.lines = append(j.lines, text)
	if time.Since(j.told) >= pause {
		j.say(text)
	}
}

func (j *job) say(text string) {
	j.told, j.last = time.Now(), text
	for _, l := range j.listeners {
		l.tell(text)
	}
}

// words are the last lines: the errors among them, if there are any.
func (j *job) words() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var errs []string
	for _, l := range j.lines {
		for _, mark := range []string{"E:", "W:", "ERROR", "Err:", "npm ERR!", "npm error"} {
			if strings.HasPrefix(l, mark) {
				errs = append(errs, l)
				break
			}
		}
	}
	if errs == nil {
		errs = j.lines
	}
	return strings.Join(errs, "\n")
}

// offline tells that one of the last lines is of a network that isn't there: pip says so
// in warnings, and then that there is no such package.
func (j *job) offline() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.ContainsFunc(j.lines, offline)
}

func (j *job) end(err error) {
	j.err = err
	close(j.done)
}
