package metrics

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
)

const (
	// maxSeries bounds the series of a family.
	maxSeries = 256
	// Other stands for all label values that have no series of their own.
	Other = "other"
)

// Registry holds families of metrics. Its zero value is ready.
type Registry struct {
	mu       sync.Mutex
	families []*family
}

// family is all series of one name.
type family struct {
	name, help, kind string
	labels           []string
	buckets          []float64                                   // of a histogram: upper bounds, rising, without the infinite one
	read             func(set func(v float64, values ...string)) // in place of series, where the value is asked for

	mu     sync.Mutex
	series map[string]*series
}

// series is what one set of label values came to.
type series struct {
	values []string
	value  float64  // a counter's, or a histogram's sum
	counts []uint64 // of a histogram: how many were in each bucket, the infinite one last
}

func (r *Registry) add(f *family) *family {
	f.series = map[string]*series{}
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.ContainsFunc(r.families, func(g *family) bool { return g.name == f.name }) {
		panic(fmt.Sprintf("metrics: %s is there already", f.name))
	}
	r.families = append(r.families, f)
	return f
}

// at is the series of values, which is made if need be. mu is held.
func (f *family) at(values []string) *series {
	if len(values) != len(f.labels) {
		panic(fmt.Sprintf("metrics: %s has labels %q, not %d values", f.name, f.labels, len(values)))
	}
	key := strings.Join(values, "\x00")
	s := f.series[key]
	if s == nil && len(values) > 0 && len(f.series) >= maxSeries-1 {
		values = slices.Repeat([]string{Other}, len(values))
		key = strings.Join(values, "\x00")
		s = f.series[key]
	}
	if s == nil {
		s = &series{values: slices.Clone(values)}
		if f.kind == "histogram" {
			s.counts = make([]uint64, len(f.buckets)+1)
		}
		f.series[key] = s
	}
	return s
}

// Counter only rises.
type Counter struct{ f *family }

// Counter makes a family of counters. By the rules of the format its name ends in _total.
func (r *Registry) Counter(name, help string, labels ...string) *Counter {
	c := &Counter{r.add(&family{name: name, help: help, kind: "counter", labels: labels})}
	if len(labels) == 0 {
		c.Add(0)
	}
	return c
}

// Add adds n, which is not below 0, to the series of the label values. Adding 0 makes a
// series that is not there: one that is first seen at 1 has no rate.
func (c *Counter) Add(n float64, values ...string) {
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	c.f.at(values).value += n
}

// Histogram counts how large what was observed is.
type Histogram struct{ f *family }

// Histogram makes a family of histograms with the upper bounds of its buckets, rising;
// the infinite one is added.
func (r *Registry) Histogram(name, help string, buckets []float64, labels ...string) *Histogram {
	return &Histogram{r.add(&family{name: name, help: help, kind: "histogram", labels: labels, buckets: buckets})}
}

// Observe counts v in the series of the label values. NaN is left out: it would make the
// sum one for ever.
func (h *Histogram) Observe(v float64, values ...string) {
	if math.IsNaN(v) {
		return
	}
	h.f.mu.Lock()
	defer h.f.mu.Unlock()
	s := h.f.at(values)
	s.value += v
	i, _ := slices.BinarySearch(h.f.buckets, v) // the first bound that is not below v
	s.counts[i]++
}

// Gauge makes a family whose values are asked for whenever it is written: read calls set
// once for each series.
func (r *Registry) Gauge(name, help string, labels []string, read func(set func(v float64, values ...string))) {
	r.add(&family{name: name, help: help, kind: "gauge", labels: labels, read: read})
}

// CounterFunc is Gauge of what only rises.
func (r *Registry) CounterFunc(name, help string, labels []string, read func(set func(v float64, values ...string))) {
	r.add(&family{name: name, help: help, kind: "counter", labels: labels, read: read})
}
