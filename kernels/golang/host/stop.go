package host

import (
	"os"
	"runtime"

	"github.com/cellard/cellard/kernels/golang/live"
)

// Check ends the goroutine if its cell was stopped.
func (cellHost) Check() {
	if c := ofGoroutine(); c != nil && c.stopped.Load() {
		panic(live.Stop{})
	}
}

// Began counts a goroutine that the calling cell starts.
func (cellHost) Began() any {
	c := ofGoroutine()
	if c != nil {
		c.alive.Add(1)
	}
	return c
}

// Ended is the end of a goroutine. A panic ends the cell, or is told in its name when it
// is over.
func (h cellHost) Ended(token, r any) {
	c, _ := token.(*Cell)
	if c != nil {
		defer c.leave()
	}
	if _, stopped := r.(live.Stop); r == nil || stopped {
		return
	}
	if c == nil {
		panic(r)
	}
	f := describe(r)
	if c.over.Load() {
		c.late(h.send, "stderr", "panic in a goroutine: "+f.Value+"\n")
		return
	}
	c.Stop()
	c.end(func() { c.failure = f })
}

// adopted makes a function the calling goroutine's cell's.
func adopted(f func()) func() {
	c := ofGoroutine()
	if c == nil {
		return f
	}
	return func() {
		unlooked()
		c.adopt()
		defer live.Guard(c)
		live.Check()
		f()
	}
}

// Exit is os.Exit: it ends the cell, and no deferred call runs.
func (cellHost) Exit(code int) {
	c := ofGoroutine()
	if c == nil {
		os.Exit(code)
	}
	c.Stop()
	c.end(func() { c.exit = &code })
	// As after os.Exit, nothing of this goroutine's runs again.
	<-make(chan struct{})
}

// maxFrames is how many frames of a panic are looked at.
const maxFrames = 4096

func callers(skip int) []uintptr {
	pcs := make([]uintptr, maxFrames)
	return pcs[:runtime.Callers(skip, pcs)]
}
