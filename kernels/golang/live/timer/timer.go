// Package timer has the twin of time.AfterFunc for cells: the runtime starts its
// goroutine, which would be no cell's.
package timer

import "time"

// Adopt makes a function one of the calling goroutine's cell. The worker sets it.
var Adopt = func(f func()) func() { return f }

// AfterFunc is time.AfterFunc's twin.
func AfterFunc(d time.Duration, f func()) *time.Timer { return time.AfterFunc(d, Adopt(f)) }
