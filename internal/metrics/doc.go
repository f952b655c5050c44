// Package metrics counts what happens and writes it in Prometheus's text format 0.0.4.
//
// A Registry holds families, each made once, by Counter, Histogram, CounterFunc or
// Gauge, and written by Write. A family's series are told apart by the values of its
// labels. Those are to come from fixed sets; for the case that one does not, a family
// has a bound of maxSeries, past which the values of a series are all "other": what a
// stranger names must not cost the agent memory, nor Prometheus a series each.
//
// All may be used from any goroutine. A family's lock is a leaf: nothing is called
// under it but the functions of a Gauge or CounterFunc, which hold no lock of a
// Registry's.
package metrics
