package server

import (
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// scrape asks for the metrics and reads them as Prometheus would: name and labels to
// value.
func (a *agent) scrape() map[string]float64 {
	a.t.Helper()
	b, h := a.call(200, "GET", "/metrics", "")
	if !strings.HasPrefix(h.Get("Content-Type"), "text/plain; version=0.0.4") {
		a.t.Errorf("type %s", h.Get("Content-Type"))
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(b))
	if err != nil {
		a.t.Fatalf("Prometheus can't read it: %v\n%s", err, b)
	}
	values := map[string]float64{}
	for name, f := range families {
		for _, m := range f.GetMetric() {
			id := name
			for _, l := range m.GetLabel() {
				id += " " + l.GetName() + "=" + l.GetValue()
			}
			values[id] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return values
}

func TestMetrics(t *testing.T) {
	m := newManager(t)
	m.script = echo
	a := serveUnix(t, Options{Manager: m, Version: `v1"\`, MaxConnections: 7})
	v := a.scrape()
	for _, name := range []string{"process_resident_memory_bytes", "process_open_fds", "process_max_fds", "process_start_time_seconds", "go_goroutines", "cellard_uptime_seconds"} {
		if v[name] <= 0 {
			t.Errorf("%s is %v", name, v[name])
		}
	}
	if v["cellard_connections listener=unix"] < 1 || v["cellard_connections_max listener=unix"] != 7 || v["cellard_connections_accepted_total listener=unix"] < 1 {
		t.Errorf("connections: %v", v)
	}
	found := false
	for name := range v {
		found = found || strings.HasPrefix(name, "cellard_build_info ") && strings.Contains(name, `version=v1"\`)
	}
	if !found {
		t.Errorf("no version in %v", v)
	}

	// The routes are patterns: no path that a client makes up is a series of its own.
	body := `{"code":"1"}`
	answer, _ := a.call(200, "POST", "/v1/interpreter:run", body)
	refusals := 0
	for _, path := range []string{"/nothing", "/v1/a-secret", "/v1/executions/no-such", "/v1/executions/none-either"} {
		b, _ := a.call(404, "GET", path, "")
		refusals += len(b)
	}
	before := v
	v = a.scrape()
	for name, want := range map[string]float64{
		"cellard_http_requests_total route=POST /v1/interpreter:run code=200": 1,
		"cellard_http_requests_total route=none code=404":                     2,
		"cellard_http_requests_total route=GET /v1/executions/{id} code=404":  2,
		"cellard_http_requests_total route=GET /metrics code=200":             1, // it counts itself when it is answered
		"cellard_http_request_bytes_total":                                    float64(len(body)),
	} {
		if v[name] != want {
			t.Errorf("%s is %v, want %v", name, v[name], want)
		}
	}
	if sent := v["cellard_http_response_bytes_total"]; sent <= float64(len(answer)+refusals) {
		t.Errorf("%v bytes sent, %d and the metrics were", sent, len(answer)+refusals)
	}
	if v["cellard_http_response_bytes_total"] <= before["cellard_http_response_bytes_total"] {
		t.Error("no bytes were sent")
	}
	for name := range v {
		if strings.Contains(name, "secret") || strings.Contains(name, "no-such") {
			t.Errorf("a path is in the label %s", name)
		}
	}
}
