// Package live is what cells are compiled against: it runs them, stops them, catches
// their panics, and shows their values. It is built with the toolchain of the image into
// the worker, and each cell's plugin uses the worker's.
//
// A cell's goroutines carry a profiler's label, which the runtime hands on to the
// goroutines that they start; by it Check knows whose code runs. A goroutine that does
// not end when its cell is stopped is left behind: it can't be killed, and ends at the
// next Check that it comes to.
//
// The worker sets Send before the first cell runs. Nothing here starts a goroutine but
// those that cells ask for.
package live
