package metrics_test

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/cellard/cellard/internal/metrics"
)

// read has Prometheus's own parser read what is written.
func read(t *testing.T, r *metrics.Registry) map[string]*dto.MetricFamily {
	t.Helper()
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatalf("%v in\n%s", err, &b)
	}
	return families
}

func TestParserReadsWhatIsWritten(t *testing.T) {
	r := &metrics.Registry{}
	c := r.Counter("c_total", "A \\ and\na line.", "a", "b")
	c.Add(2, `"quoted"`, "back\\slash")
	c.Add(0.5, `"quoted"`, "back\\slash")
	c.Add(0, "new\nline", "\xff")
	r.Counter("none_total", "Nothing yet.")
	r.Counter("unseen_total", "Without a series.", "a")
	r.Gauge("g", "Asked for.", []string{"a"}, func(set func(float64, ...string)) {
		set(-1.5, "x")
		set(math.Inf(1), "y")
		set(1, "z")
		set(1, "z") // adds up: a caller may count
	})
	h := r.Histogram("h_seconds", "Times.", []float64{0.1, 1, 10}, "a")
	for _, v := range []float64{0, 0.1, 0.11, 1, 5, 10, 11, math.NaN()} {
		h.Observe(v, "x")
	}
	f := read(t, r)
	if len(f) != 4 || f["unseen_total"] != nil {
		t.Errorf("families %v", f)
	}
	if help := f["c_total"].GetHelp(); help != "A \\ and\na line." {
		t.Errorf("help %q", help)
	}
	got := map[string]float64{}
	for _, name := range []string{"c_total", "none_total", "g"} {
		for _, m := range f[name].GetMetric() {
			id := name
			for _, l := range m.GetLabel() {
				id += "|" + l.GetValue()
			}
			got[id] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	for id, want := range map[string]float64{"c_total|\"quoted\"|back\\slash": 2.5, "c_total|new\nline|\uFFFD": 0, "none_total": 0, "g|x": -1.5, "g|y": math.Inf(1), "g|z": 2} {
		if v, ok := got[id]; !ok || v != want {
			t.Errorf("%q is %v, %v; want %v", id, v, ok, want)
		}
	}
	m := f["h_seconds"].GetMetric()[0].GetHistogram()
	var buckets []uint64
	for _, b := range m.GetBucket() {
		buckets = append(buckets, b.GetCumulativeCount())
	}
	if fmt.Sprint(buckets) != "[2 4 6 7]" || m.GetSampleCount() != 7 || math.Abs(m.GetSampleSum()-27.21) > 1e-9 {
		t.Errorf("%v, %d, %v", buckets, m.GetSampleCount(), m.GetSampleSum())
	}
}

func TestSeriesAreBounded(t *testing.T) {
	r := &metrics.Registry{}
	c := r.Counter("c_total", "Of a stranger's names.", "name")
	h := r.Histogram("h", "Of the same.", []float64{1}, "name")
	const names = 5000
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for n := i; n < names; n += 4 {
				c.Add(1, strings.Repeat("x", n%7)+fmt.Sprint(n))
				h.Observe(1, fmt.Sprint(n))
			}
		}()
	}
	wg.Wait()
	f := read(t, r)
	sum, other := 0.0, 0.0
	for _, m := range f["c_total"].GetMetric() {
		sum += m.GetCounter().GetValue()
		if m.GetLabel()[0].GetValue() == metrics.Other {
			other = m.GetCounter().GetValue()
		}
	}
	if n := len(f["c_total"].GetMetric()); n != 256 || sum != names || other != names-255 {
		t.Errorf("%d series, %v in all, %v of them other", n, sum, other)
	}
	if n := len(f["h"].GetMetric()); n != 256 {
		t.Errorf("%d histograms", n)
	}
}

// What is wrong in the code shows at once, not as lines that nobody can read.
func TestMisuseIsFound(t *testing.T) {
	r := &metrics.Registry{}
	c := r.Counter("c_total", "", "a")
	for name, f := range map[string]func(){
		"a name twice":   func() { r.Counter("c_total", "") },
		"a label missed": func() { c.Add(1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s goes through", name)
				}
			}()
			f()
		}()
	}
}
