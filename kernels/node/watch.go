package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"
)

// watch stops what Node's main thread computes, from outside (inspector.go).
//
// A termination must hit the cell that it is meant for, or a command to stop it, which
// comes again. So it takes two sides. Here a cell is first claimed: a global by its name,
// its flag, is put into the kernel's realm, which runs no JavaScript and is done between
// two steps of the main thread; then it is read whether the cell runs. There cells.js
// leaves a cell by first saying that it doesn't run, then looking for the flag. So either
// it is seen here that the cell is over, or there that it is claimed: then it asks here
// whether a termination is on its way (leave).
type watch struct {
	*inspector
	realm  int    // the kernel's execution context
	status string // the object of realm.js

	mu     sync.Mutex
	cell   uint32        // that is stopped, or was last
	left   bool          // it may not be terminated any more
	coming bool          // it has been told that a termination comes, and waits for that
	tries  int           // terminations that were sent
	done   chan struct{} // closed when the termination that was sent has been; nil for none
}

const (
	// claimPatience is what a claimed cell gets to end by a command to stop it.
	claimPatience = 40 * time.Millisecond
	// again is how long after one termination the next may follow.
	again = 120 * time.Millisecond
	// asks is how often, every askAgain, a cell may not have begun until the callback of an
	// earlier cell that it waits for is terminated.
	asks = 6
	// lost is when a termination has happened of which nothing was heard.
	lost = time.Second
	// grace is what the answer to a termination gets that has happened before the main
	// thread asked.
	grace = 20 * time.Millisecond
)

// interfaceAt is what Node says of its debugging interface.
type interfaceAt struct {
	URL   string
	Realm int // the kernel's execution context
}

// newWatch connects to it.
func newWatch(at interfaceAt) (*watch, error) {
	ctx, cancel := context.WithTimeout(context.Background(), inspectorWithin)
	defer cancel()
	i, err := connectInspector(ctx, at.URL)
	if err != nil {
		return nil, err
	}
	w := &watch{inspector: i, realm: at.Realm}
	// Node waits for the end of this connection before it ends.
	err = w.ask(ctx, "NodeRuntime.notifyWhenWaitingForDisconnect", map[string]any{"enabled": true}, nil)
	var status struct{ Result struct{ ObjectID string } }
	if err == nil {
		err = w.ask(ctx, "Runtime.evaluate", map[string]any{"expression": "status", "contextId": at.Realm}, &status)
	}
	if err == nil && status.Result.ObjectID == "" {
		err = errors.New("node's debugging interface doesn't know the kernel's realm")
	}
	if err != nil {
		w.close()
		return nil, err
	}
	w.status = status.Result.ObjectID
	return w, nil
}

// stop terminates what the main thread computes for a cell, or what keeps the cell from
// beginning, until over is closed. blocked tells that the main thread waits in a call of
// the system; the end of that call must not let it go on.
func (w *watch) stop(cell uint32, over <-chan struct{}, blocked func() bool) {
	w.mu.Lock()
	w.cell, w.left, w.coming, w.tries = cell, false, false, 0
	w.mu.Unlock()
	flag := fmt.Sprintf("stop%d", cell)
	defer w.post("Runtime.removeBinding", map[string]any{"name": flag})
	wait := func(d time.Duration) bool {
		select {
		case <-time.After(d):
			return true
		case <-over:
			return false
		}
	}
	waits := 0
	var probe <-chan reply
	for {
		if probe == nil {
			w.post("Runtime.addBinding", map[string]any{"name": flag, "executionContextId": w.realm})
			probe = w.post("Runtime.getProperties", map[string]any{"objectId": w.status, "ownProperties": true})
		}
		pause := askAgain
		select {
		case r := <-probe:
			probe = nil
			running, newest := statusOf(r)
			switch {
			case running == cell:
				if !wait(claimPatience) {
					return
				}
				w.terminate(cell, over)
				pause = again
			case newest >= cell || running != 0:
				waits = 0
			default:
				if waits++; waits > asks {
					waits = 0
					w.terminate(cell, over)
				}
			}
		case <-time.After(claimPatience):
			if blocked() {
				w.terminate(cell, over)
			}
		case <-over:
			return
		}
		if w.awaited() {
			w.terminate(cell, over)
			pause = again
		}
		if !wait(pause) {
			return
		}
	}
}

// statusOf decodes the properties of the status: the cell whose code runs, or 0, and the
// newest that has begun.
func statusOf(r reply) (running, newest uint32) {
	var properties struct {
		Result []struct {
			Name  string
			Value struct{ Value json.RawMessage }
		}
	}
	if r.err != nil || json.Unmarshal(r.result, &properties) != nil {
		return 0, 0
	}
	for _, p := range properties.Result {
		var n uint32
		if json.Unmarshal(p.Value.Value, &n) != nil {
			continue
		}
		switch p.Name {
		case "running":
			running = n
		case "newest":
			newest = n
		}
	}
	return running, newest
}

// terminate terminates what the main thread runs, unless that has left the cell, and
// returns when it has happened.
func (w *watch) terminate(cell uint32, over <-chan struct{}) {
	w.mu.Lock()
	if w.left {
		w.mu.Unlock()
		return
	}
	w.tries++
	tries, done := w.tries, make(chan struct{})
	w.done = done
	w.mu.Unlock()
	answer := w.post("Runtime.terminateExecution", nil)
	// It may have been heard and not done, where the cell has the main thread wait for a
	// debugger.
	w.post("Runtime.runIfWaitingForDebugger", nil)
	if tries > 2 {
		for _, method := range []string{"Debugger.enable", "Debugger.resume", "Debugger.disable"} {
			w.post(method, nil)
		}
	}
	select {
	case <-answer:
	case <-time.After(lost):
	case <-over:
	}
	w.mu.Lock()
	w.done = nil
	w.mu.Unlock()
	close(done)
}

func (w *watch) awaited() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.coming && !w.left
}

// leave answers the main thread, which has seen that a cell is claimed and wants to leave
// it: whether it has to wait for a termination. absorbed tells that one has come.
func (w *watch) leave(cell uint32, absorbed bool) (coming bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cell != cell {
		return false // a cell that ended long ago
	}
	if done := w.done; done != nil && !absorbed {
		w.mu.Unlock()
		select {
		case <-done:
		case <-time.After(grace):
		}
		w.mu.Lock()
		w.coming = w.done != nil
	}
	w.left = absorbed || !w.coming
	return !w.left
}
