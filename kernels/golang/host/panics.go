package host

import (
	"fmt"
	"path"
	"runtime"
	"strconv"
	"strings"
)

// maxTrace is how many of the user's frames a traceback shows.
const maxTrace = 30

// describe describes a panic. It is called by the deferred function that recovered it,
// so that the frames of the panic are still there; below them are others, of what isn't
// compiled.
func describe(r any, below ...string) *Failure {
	f := &Failure{Name: "panic", Value: clip(unmark(panicText(r)), 64<<10)}
	f.Traceback = append(f.Traceback, "panic: "+f.Value)
	skipped := 0
	add := func(frame string) {
		if len(f.Traceback) > maxTrace {
			skipped++
		} else {
			f.Traceback = append(f.Traceback, frame)
		}
	}
	frames := runtime.CallersFrames(callers(3))
	for {
		fr, more := frames.Next()
		if file := path.Base(fr.File); strings.HasPrefix(file, "In[") {
			add(fmt.Sprintf("%s:%d  %s", file, fr.Line, function(fr.Function)))
		}
		if !more {
			break
		}
	}
	for _, frame := range below {
		add(frame)
	}
	if skipped > 0 {
		f.Traceback = append(f.Traceback, fmt.Sprintf("… %d more", skipped))
	}
	return f
}

// function is a function's name without the package of the cell.
func function(name string) string {
	if i := strings.LastIndex(name, "/"); i >= 0 && strings.HasPrefix(name, "cell/") {
		name = name[i+1:]
		if _, rest, ok := strings.Cut(name, "."); ok {
			name = rest
		}
	}
	name = unmark(unquoteSymbol(name))
	if i := strings.Index(name, "QRun"); i >= 0 {
		return "the cell" + strings.TrimPrefix(name[i:], "QRun")
	}
	if rest, ok := strings.CutPrefix(name, "QInit"); ok {
		return "init" + strings.TrimLeft(rest, "0123456789")
	}
	return name
}

// unquoteSymbol undoes the linker's escapes of letters.
func unquoteSymbol(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	b := []byte{}
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				b = append(b, byte(n))
				i += 2
				continue
			}
		}
		b = append(b, s[i])
	}
	return string(b)
}

// panicText is what the runtime prints of a panic's value.
func panicText(r any) (text string) {
	defer func() {
		if recover() != nil {
			text = fmt.Sprintf("%T, whose text can't be had: its method panics", r)
		}
	}()
	switch v := r.(type) {
	case runtime.Error:
		return v.Error()
	case error:
		return v.Error()
	case fmt.Stringer:
		return v.String()
	case string:
		return v
	}
	return fmt.Sprintf("%v", r)
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
