package live

import (
	"os"
	"runtime"
	"unsafe"
)

// stopSignal is the panic that ends a stopped cell's goroutines.
type stopSignal struct{}

func (stopSignal) Error() string { return "the cell was stopped" }

// maxStack is how deep, in bytes, a goroutine's calls may go: beyond the runtime's own
// bound the process dies, and all values with it.
const maxStack = 120 << 20

// stackHigh is where the calling goroutine's stack begins; 0 where that isn't known.
func stackHigh() uintptr

// Check ends the goroutine if its cell was stopped.
func Check() {
	if stopping.Load() != 0 {
		check()
	}
}

// Enter is Check for the begin of a function; it also ends endless recursion.
func Enter() {
	if stopping.Load() != 0 {
		check()
	}
	var here byte
	if high := stackHigh(); high-uintptr(unsafe.Pointer(&here)) > maxStack && high != 0 {
		overflow()
	}
}

//go:noinline
func check() {
	if c := ofGoroutine(); c != nil && c.stopped.Load() {
		panic(stopSignal{})
	}
}

//go:noinline
func overflow() {
	panic(stackOverflow{})
}

// stackOverflow is the panic of a recursion that went too deep.
type stackOverflow struct{}

func (stackOverflow) Error() string {
	return "stack overflow: calls nested deeper than 120 MB"
}

// Recovered stands around recover() in cells: a stop is not the user's to recover from.
func Recovered(r any) any {
	if s, ok := r.(stopSignal); ok {
		panic(s)
	}
	return r
}

// Guard is deferred by each goroutine that a cell starts, with what Began gave. A panic
// ends the cell, or is told in its name when it is over.
func Guard(c *Cell) {
	r := recover()
	if c != nil {
		defer c.leave()
	}
	if r == nil {
		return
	}
	if _, ok := r.(stopSignal); ok {
		return
	}
	if c == nil {
		panic(r)
	}
	f := failure(r)
	if c.over.Load() {
		c.late("stderr", "panic in a goroutine: "+f.Value+"\n")
		return
	}
	c.Stop()
	c.end(func() { c.failure = f })
}

// Exit is os.Exit's twin: it ends the cell, and no deferred call runs.
func Exit(code int) {
	c := ofGoroutine()
	if c == nil {
		os.Exit(code)
	}
	c.Stop()
	c.end(func() { c.exit = &code })
	// As after os.Exit, nothing of this goroutine's runs again.
	<-make(chan struct{})
}

// noFrames is how many frames of a panic are looked at.
const noFrames = 4096

func callers(skip int) []uintptr {
	pcs := make([]uintptr, noFrames)
	return pcs[:runtime.Callers(skip, pcs)]
}
