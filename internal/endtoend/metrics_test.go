package endtoend

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/cellard/cellard/internal/fixture"
	"github.com/cellard/cellard/internal/pythons"
	"github.com/cellard/cellard/protocol/api"
)

// figures are what Prometheus's own parser reads of the agent's metrics: name and
// labels' values to the value; of a histogram its _count and _sum.
type figures map[string]float64

func (a *agent) figures() figures {
	a.t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	ans := a.call("GET", "/metrics", nil)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(ans.body))
	if err != nil {
		a.t.Fatalf("Prometheus can't read it: %v\n%s", err, ans.body)
	}
	v := figures{}
	for name, f := range families {
		for _, m := range f.GetMetric() {
			labels := ""
			for _, l := range m.GetLabel() {
				labels += " " + l.GetValue()
			}
			if f.GetType() == dto.MetricType_HISTOGRAM {
				v[name+"_count"+labels] = float64(m.GetHistogram().GetSampleCount())
				v[name+"_sum"+labels] = m.GetHistogram().GetSampleSum()
				continue
			}
			v[name+labels] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return v
}

// lack tells what is not as it should be.
func (v figures) lack(want figures) error {
	var errs []error
	for name, n := range want {
		if got, ok := v[name]; !ok || got < n-1e-6 || got > n+1e-6 {
			errs = append(errs, fmt.Errorf("%s is %v, want %v", name, got, n))
		}
	}
	sort.Slice(errs, func(i, j int) bool { return errs[i].Error() < errs[j].Error() })
	return errors.Join(errs...)
}

// What the metrics say is what was run.
func TestMetricsTellWhatRan(t *testing.T) {
	// A kernelspec whose names are a stranger's: they must make no series of their own.
	spec := filepath.Join(fixture.Dir(t, 0o755), "kernels", "strangers-own")
	if err := os.MkdirAll(spec, 0o755); err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(object{"argv": []string{pythons.Newest(t), "-m", "ipykernel_launcher", "-f", "{connection_file}"},
		"display_name": "x", "language": "stranger's\n\"language\""})
	if err := os.WriteFile(filepath.Join(spec, "kernel.json"), text, 0o644); err != nil {
		t.Fatal(err)
	}
	a := start(t, config{env: []string{"JUPYTER_PATH=" + filepath.Dir(filepath.Dir(spec))}, args: []string{"--store-quota", "300KiB"}})
	var ran []*api.Execution
	code := 0
	run := func(status api.Status, o object) {
		t.Helper()
		x := a.run(o)
		if x.Status != status {
			t.Fatalf("%v: %s", o, show(x))
		}
		ran = append(ran, x)
		code += len(o["code"].(string))
	}
	run("ok", object{"code": "print('x' * 1000)"})
	run("error", object{"code": "import sys; sys.stderr.write('é' * 10); 1/0"})
	run("timeout", object{"code": "while True: pass", "timeoutMs": 300})
	for i := range 3 { // refs of 150 kB and more in 300 KiB: each pushes out the one before
		run("ok", object{"code": fmt.Sprintf("from IPython.display import display; display({'text/plain': '%d' * 160_000}, raw=True)", i)})
	}
	run("lost", object{"code": "import os; os._exit(3)"})
	run("ok", object{"code": "1"})
	run("ok", object{"code": "true", "language": "bash"})
	run("ok", object{"code": "1", "language": "strangers-own"})
	a.get("POST", "/v1/interpreter/contexts/python:restart", nil, new(api.Context))
	a.remove("bash")
	a.refused(400, api.CodeInvalidRequest, "POST", "/v1/interpreter:run", object{"code": "1", "timeoutMs": "x"})

	want := figures{
		"cellard_executions_total python ok":              5,
		"cellard_executions_total python error":           1,
		"cellard_executions_total python timeout":         1,
		"cellard_executions_total python lost":            1,
		"cellard_executions_total bash ok":                1,
		"cellard_executions_total other ok":               1,
		"cellard_execution_states_total kept":             9,
		"cellard_execution_states_total lost":             1,
		"cellard_execution_states_total restored":         0,
		"cellard_execution_duration_seconds_count python": 8,
		"cellard_execution_queue_seconds_count python":    8,
		"cellard_execution_duration_seconds_count other":  1,
		"cellard_executions_running":                      0,
		"cellard_executions_kept":                         10,
		"cellard_kernel_starts_total python ok":           3,
		"cellard_kernel_starts_total bash ok":             1,
		"cellard_kernel_starts_total other ok":            1,
		"cellard_kernel_start_seconds_count python":       3,
		"cellard_kernel_restarts_total python":            2,
		"cellard_kernel_restarts_total java":              0,
		"cellard_kernel_restarts_total other":             0,
		"cellard_connections_refused_total unix peer":     0,
		"cellard_connections_refused_total unix limit":    0,
		"cellard_kernel_deaths_total exit":                1,
		"cellard_kernel_deaths_total restart":             1,
		"cellard_kernel_deaths_total deleted":             1,
		"cellard_kernel_deaths_total oom":                 0,
		"cellard_kernels python":                          1,
		"cellard_kernels other":                           1,
		"cellard_contexts idle":                           2,
		"cellard_contexts busy":                           0,
		"cellard_output_bytes_total stdout":               1001,
		"cellard_output_bytes_total stderr":               20,
		"cellard_code_bytes_total":                        float64(code),
		"cellard_store_quota_bytes":                       300 << 10,
		"cellard_store_files":                             1,
		"cellard_store_written_files_total":               3,
		"cellard_store_evicted_files_total":               2,
		"cellard_store_bytes":                             160_000,
		"cellard_store_written_bytes_total":               480_000,
		"cellard_store_evicted_bytes_total":               320_000,
		"cellard_connections_max unix":                    256,

		"cellard_http_requests_total POST /v1/interpreter:run 200":                   float64(len(ran)),
		"cellard_http_requests_total POST /v1/interpreter:run 400":                   1,
		"cellard_http_requests_total POST /v1/interpreter/contexts/{id}:restart 200": 1,
	}
	var queued, took, cpu int64
	for _, x := range ran {
		if x.Language == "python" {
			queued, took = queued+x.QueuedMs, took+x.DurationMs
			if x.Usage != nil && x.Usage.CPUMs != nil {
				cpu += *x.Usage.CPUMs
			}
		}
	}
	want["cellard_execution_queue_seconds_sum python"] = float64(queued) / 1000
	want["cellard_execution_duration_seconds_sum python"] = float64(took) / 1000
	want["cellard_execution_cpu_seconds_total python"] = float64(cpu) / 1000
	v := a.figures()
	if err := v.lack(want); err != nil {
		t.Error(err)
	}
	for name := range v {
		if strings.Contains(name, "stranger") {
			t.Errorf("a stranger's name is in %q", name)
		}
	}
	for _, name := range []string{"process_resident_memory_bytes", "process_cpu_seconds_total", "process_open_fds", "go_goroutines", "cellard_http_request_bytes_total", "cellard_http_response_bytes_total"} {
		if v[name] <= 0 {
			t.Errorf("%s is %v", name, v[name])
		}
	}

	// While a cell runs, and one waits.
	var x api.Execution
	a.get("POST", "/v1/interpreter:run", object{"code": "import time; time.sleep(600)", "timeoutMs": 0, "waitMs": 0, "interruptOnDisconnect": false}, &x)
	a.get("POST", "/v1/interpreter:run", object{"code": "1", "waitMs": 0}, new(api.Execution))
	a.eventually("the metrics tell of the cells that run and wait", func() error {
		return a.figures().lack(figures{"cellard_executions_running": 2, "cellard_contexts busy": 1, "cellard_idle_seconds": 0})
	})
	a.get("POST", "/v1/interpreter/contexts/python:interrupt", nil, new(object))
	a.over(x.ID)
	if err := a.figures().lack(figures{"cellard_executions_total python interrupted": 1}); err != nil {
		t.Error(err)
	}
}
