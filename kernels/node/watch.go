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
//
// One that is sent without having read that, since the main thread doesn't answer, can
// reach it late, when the cell has ended without a flag. Then the main thread is told to
// ask (settle).
type watch struct {
	at interfaceAt

	mu         sync.Mutex
	*inspector        // another where a cell has broken it: see renew
	status     string // the object of realm.js, as that knows it
	closed     bool
	cell       uint32 // that is stopped, or was last
	left       bool   // it may not be terminated any more
	coming     bool   // it has been told that a termination comes, and waits for that
	sent       *reply // to the termination that is on its way, or was last; nil for none
}

const (
	// claimPatience is what a claimed cell gets to end by a command to stop it.
	claimPatience = 40 * time.Millisecond
	// again is how long after one termination the next may follow.
	again = 120 * time.Millisecond
	// asks is how often, every askAgain, a cell may not have begun until the callback of an
	// earlier cell that it waits for is terminated.
	asks = 6
	// paused is when a main thread that was terminated waits for a debugger, perhaps.
	paused = 300 * time.Millisecond
	// lost is when a termination of which nothing was heard is sent again.
	lost = time.Second
	// settleWithin bounds the wait for one that comes after the cell.
	settleWithin = 5 * time.Second
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
	w := &watch{at: at}
	var err error
	w.inspector, w.status, err = attach(ctx, at)
	return w, err
}

// attach connects to the interface, and finds the status.
func attach(ctx context.Context, at interfaceAt) (_ *inspector, status string, err error) {
	i, err := connectInspector(ctx, at.URL)
	if err != nil {
		return nil, "", err
	}
	// Node waits for the end of this connection before it ends.
	err = i.ask(ctx, "NodeRuntime.notifyWhenWaitingForDisconnect", map[string]any{"enabled": true}, nil)
	var found struct{ Result struct{ ObjectID string } }
	if err == nil {
		err = i.ask(ctx, "Runtime.evaluate", map[string]any{"expression": "status", "contextId": at.Realm}, &found)
	}
	if err == nil && found.Result.ObjectID == "" {
		err = errors.New("node's debugging interface doesn't know the kernel's realm")
	}
	if err != nil {
		i.close()
		return nil, "", err
	}
	return i, found.Result.ObjectID, nil
}

// renew connects again where the connection has ended: a cell can write to its descriptor.
func (w *watch) renew() {
	ctx, cancel := context.WithTimeout(context.Background(), lost)
	defer cancel()
	i, status, err := attach(ctx, w.at)
	if err != nil {
		return // Node has ended, or is asked again
	}
	w.mu.Lock()
	old := i
	if !w.closed {
		old, w.inspector, w.status = w.inspector, i, status
	}
	w.mu.Unlock()
	old.close()
}

// close ends the connection, and waits for all that belongs to it.
func (w *watch) close() {
	w.mu.Lock()
	w.closed = true
	i := w.inspector
	w.mu.Unlock()
	i.close()
}

// stop terminates what the main thread computes for a cell, or what keeps the cell from
// beginning, until over is closed. blocked tells that the main thread waits in a call of
// the system; the end of that call must not let it go on. ask has the main thread ask
// whether it may leave the cell, once more.
func (w *watch) stop(cell uint32, over <-chan struct{}, blocked func() bool, ask func()) {
	w.mu.Lock()
	w.cell, w.left, w.coming, w.sent = cell, false, false, nil
	w.mu.Unlock()
	flag := fmt.Sprintf("stop%d", cell)
	defer func() { w.post("Runtime.removeBinding", map[string]any{"name": flag}) }()
	defer w.settle(ask)
	wait := func(d time.Duration) bool {
		select {
		case <-time.After(d):
			return true
		case <-over:
			return false
		}
	}
	waits := 0
	var claim, probe *reply
	for {
		if w.ended() {
			probe = nil
			w.renew()
		}
		if probe == nil {
			claim = w.post("Runtime.addBinding", map[string]any{"name": flag, "executionContextId": w.at.Realm})
			probe = w.post("Runtime.getProperties", map[string]any{"objectId": w.status, "ownProperties": true})
		}
		pause := askAgain
		select {
		case <-probe.come:
			running, newest := statusOf(probe)
			// There is no room for an answer where the stack is exhausted. What exhausts it runs.
			full := probe.err != nil && claim.has() && claim.err == nil && !w.ended()
			probe = nil
			switch {
			case running == cell || full:
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
func statusOf(r *reply) (running, newest uint32) {
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
	// Where one is on its way another is refused, unless that was lost.
	answer := w.post("Runtime.terminateExecution", nil)
	if w.sent == nil || w.sent.has() {
		w.sent = answer
	}
	answer = w.sent
	w.mu.Unlock()
	// It may have been heard and not done, where the cell has the main thread wait for a
	// debugger.
	w.post("Runtime.runIfWaitingForDebugger", nil)
	select {
	case <-answer.come:
		return
	case <-over:
		return
	case <-time.After(paused):
	}
	for _, method := range []string{"Debugger.enable", "Debugger.resume", "Debugger.disable"} {
		w.post(method, nil)
	}
	select {
	case <-answer.come:
	case <-over:
	case <-time.After(lost - paused):
	}
}

// settle waits for a termination that was sent for a cell which has ended by itself: it
// must not hit what comes next.
func (w *watch) settle(ask func()) {
	unsettled := func() *reply {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.left || w.sent == nil || w.sent.has() {
			return nil
		}
		return w.sent
	}
	for begin := time.Now(); ; {
		answer := unsettled()
		if answer == nil {
			return
		}
		ask()
		select {
		case <-answer.come:
		case <-time.After(askAgain):
			switch since := time.Since(begin); {
			case since > settleWithin:
				return
			case since > lost && w.awaited(): // not before: the second could hit what comes next
				w.post("Runtime.terminateExecution", nil)
			}
		}
	}
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
	w.coming = false
	if sent := w.sent; sent != nil && !absorbed {
		w.mu.Unlock()
		select {
		case <-sent.come:
		case <-time.After(grace):
		}
		w.mu.Lock()
		w.coming = !sent.has()
	}
	w.left = !w.coming
	return w.coming
}
