package host

import (
	"runtime"
	"strings"
)

// What lies below a cell's frames on the stack is the kernel's, and no concern of cells:
// runtime.Caller and Callers end with the cell, also where it is evaluated.

// below are the functions of this package by which a cell is run.
var below = []string{"host.(*Cell).run", "host.(*builder).call"}

// cellPCs are the return addresses of the calling cell's frames, from the caller of
// package live's function on, and the one below them, 0 for none.
func cellPCs() (pcs []uintptr, under uintptr) {
	pcs = callers(5)
	for i, pc := range pcs {
		name := nameOf(pc)
		for _, b := range below {
			if !strings.Contains(name, b) {
				continue
			}
			for i > 0 && strings.HasPrefix(nameOf(pcs[i-1]), "reflect.") {
				i--
			}
			return pcs[:i], pc
		}
	}
	return pcs, 0
}

func nameOf(pc uintptr) string {
	if f := runtime.FuncForPC(pc - 1); f != nil {
		return f.Name()
	}
	return ""
}

// Caller is runtime.Caller. The last is the cell, by its line.
func (cellHost) Caller(skip int) (pc uintptr, file string, line int, ok bool) {
	pcs, under := cellPCs()
	if len(pcs) > 0 {
		for frames := runtime.CallersFrames(pcs); ; skip-- {
			f, more := frames.Next()
			if skip == 0 {
				return f.PC, f.File, f.Line, true
			}
			if !more {
				break
			}
		}
		skip--
	}
	if c := ofGoroutine(); c != nil && c.program != "" && under != 0 && skip == 0 {
		return under, c.program, c.line, true
	}
	return 0, "", 0, false
}

// Callers is runtime.Callers.
func (cellHost) Callers(skip int, to []uintptr) int {
	pcs, _ := cellPCs()
	// The first is runtime.Callers itself there, and its caller the second.
	return copy(to, pcs[min(len(pcs), max(0, skip-1)):])
}
