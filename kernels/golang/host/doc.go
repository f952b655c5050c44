// Package host runs cells, stops them, catches their panics, and shows their values, in
// the worker.
//
// A cell's goroutines carry a profiler's label, which the runtime hands on to the
// goroutines that they start; by it Check knows whose code runs. A goroutine that does
// not end when its cell is stopped is left behind: it can't be killed, and ends at the
// next Check that it comes to.
//
// A cell is a plugin's function, or a program that is evaluated by reflection on what
// earlier plugins have registered (Keep, Prepare): all of it is resolved before anything
// runs, so that what can't be evaluated is compiled instead.
//
// The worker calls Setup before the first cell runs. Nothing here starts a goroutine but
// for Run, whose goroutine is the cell's.
package host
