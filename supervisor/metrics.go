package supervisor

import (
	"time"

	"github.com/cellard/cellard/execution"
	"github.com/cellard/cellard/internal/metrics"
	"github.com/cellard/cellard/protocol/api"
)

// counts are the Manager's figures for /metrics. Their labels come from fixed sets: a
// context's id is a caller's to choose, and a kernelspec's name the image's, so the
// first is no label, and the second counts as "other".
type counts struct {
	language func(string) string // the label for a language

	executions *metrics.Counter
	states     *metrics.Counter
	queue      *metrics.Histogram
	duration   *metrics.Histogram
	cpu        *metrics.Counter
	code       *metrics.Counter
	output     *metrics.Counter
	starts     *metrics.Counter
	startTime  *metrics.Histogram
	restarts   *metrics.Counter
	deaths     *metrics.Counter
}

// seconds are the buckets of times: from a cell that does nothing to one that works for
// an hour.
var seconds = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600}

// refused is the status, beside the API's, of a cell that ended as a refusal: its kernel
// did not start, or ifGeneration did not hold any more.
const refused = "refused"

func (m *Manager) newCounts(r *metrics.Registry) *counts {
	c := &counts{
		language: func(name string) string {
			if m.catalogue.Known(name) {
				return name
			}
			return metrics.Other
		},
		executions: r.Counter("cellard_executions_total", "Cells that ended, by how.", "language", "status"),
		states:     r.Counter("cellard_execution_states_total", "Cells that ended, by what became of the context's variables.", "state"),
		queue:      r.Histogram("cellard_execution_queue_seconds", "Time from a request until its cell was sent to the kernel, the kernel's start included.", seconds, "language"),
		duration:   r.Histogram("cellard_execution_duration_seconds", "Time that a cell took in the kernel.", seconds, "language"),
		cpu:        r.Counter("cellard_execution_cpu_seconds_total", "CPU time that kernels and their children spent on cells.", "language"),
		code:       r.Counter("cellard_code_bytes_total", "Bytes of cells' code that were taken."),
		output:     r.Counter("cellard_output_bytes_total", "Bytes that cells wrote to their streams.", "stream"),
		starts:     r.Counter("cellard_kernel_starts_total", "Starts of kernels, by what came of them.", "language", "result"),
		startTime:  r.Histogram("cellard_kernel_start_seconds", "Time that the start of a kernel took, its install not included.", seconds, "language"),
		restarts:   r.Counter("cellard_kernel_restarts_total", "Kernels that were started in place of an earlier one of their context.", "language"),
		deaths:     r.Counter("cellard_kernel_deaths_total", "Kernels that ended, by why; restart, deleted and shutdown were asked for.", "reason"),
	}
	for _, s := range []api.State{api.StateKept, api.StateRestored, api.StateLost} {
		c.states.Add(0, string(s))
	}
	for _, language := range append(m.catalogue.Names(), metrics.Other) {
		c.restarts.Add(0, language) // a rate has no first one otherwise
	}
	for _, reason := range []api.LostReason{api.LostOOM, api.LostSignal, api.LostExit, api.LostUnresponsive, api.LostRestart, api.LostDeleted, api.LostShutdown} {
		c.deaths.Add(0, string(reason))
	}
	for _, s := range streamNames {
		c.output.Add(0, s)
	}
	m.gauges(r, c)
	return c
}

var streamNames = [2]string{execution.Stdout: "stdout", execution.Stderr: "stderr"}

// gauges are what is looked at when somebody asks.
func (m *Manager) gauges(r *metrics.Registry, c *counts) {
	type set = func(v float64, values ...string)
	r.Gauge("cellard_executions_running", "Cells that run or wait.", nil, func(set set) {
		n, _ := m.Health()
		set(float64(n))
	})
	r.Gauge("cellard_idle_seconds", "Time since the last cell ended; 0 while any runs or waits.", nil, func(set set) {
		_, idle := m.Health()
		set(idle.Seconds())
	})
	r.Gauge("cellard_executions_kept", "Cells that have ended and can still be asked for.", nil, func(set set) {
		m.mu.Lock()
		defer m.mu.Unlock()
		set(float64(len(m.ended)))
	})
	r.Gauge("cellard_executions_kept_bytes", "Memory that those take, about.", nil, func(set set) {
		m.mu.Lock()
		defer m.mu.Unlock()
		set(float64(m.bytes))
	})
	r.Gauge("cellard_contexts", "Contexts by the state of their kernel.", []string{"state"}, func(set set) {
		for _, s := range []api.ContextState{api.ContextStarting, api.ContextIdle, api.ContextBusy, api.ContextDead} {
			set(0, string(s))
		}
		for _, x := range m.Contexts() {
			set(1, string(x.State))
		}
	})
	r.Gauge("cellard_kernels", "Kernels that are alive.", []string{"language"}, func(set set) {
		for _, x := range m.Contexts() {
			alive := 0.0
			if x.ProcessID != 0 {
				alive = 1
			}
			set(alive, c.language(x.Language))
		}
	})
	r.CounterFunc("cellard_messages_unmatched_total", "Messages of kernels that named no cell, and were dropped.", nil, func(set set) {
		set(float64(m.unmatched.Load()))
	})
	r.Gauge("cellard_store_bytes", "Bytes of refs and overflow files, those being written included.", nil, func(set set) { set(float64(m.store.Stats().Used)) })
	r.Gauge("cellard_store_quota_bytes", "The most that they may be.", nil, func(set set) { set(float64(m.store.Stats().Quota)) })
	r.Gauge("cellard_store_files", "Refs and overflow files.", nil, func(set set) { set(float64(m.store.Stats().Files)) })
	r.CounterFunc("cellard_store_written_files_total", "Refs and overflow files that were made.", nil, func(set set) { set(float64(m.store.Stats().Written)) })
	r.CounterFunc("cellard_store_written_bytes_total", "Their bytes.", nil, func(set set) { set(float64(m.store.Stats().WrittenBytes)) })
	r.CounterFunc("cellard_store_evicted_files_total", "Refs and overflow files that were pushed out for room.", nil, func(set set) { set(float64(m.store.Stats().Evicted)) })
	r.CounterFunc("cellard_store_evicted_bytes_total", "Their bytes.", nil, func(set set) { set(float64(m.store.Stats().EvictedBytes)) })
}

// ended counts a cell; it is the Ending of each execution.
func (c *counts) ended(x api.Execution, ran bool, refusal *api.Error) {
	lang := c.language(x.Language)
	if refusal != nil {
		c.executions.Add(1, lang, refused)
		return
	}
	c.executions.Add(1, lang, string(x.Status))
	c.states.Add(1, string(x.State))
	if !ran {
		return
	}
	c.queue.Observe(float64(x.QueuedMs)/1000, lang)
	c.duration.Observe(float64(x.DurationMs)/1000, lang)
	if x.Usage != nil && x.Usage.CPUMs != nil {
		c.cpu.Add(float64(*x.Usage.CPUMs)/1000, lang)
	}
}

func (c *counts) wrote(stream, bytes int) { c.output.Add(float64(bytes), streamNames[stream]) }

// started counts a start that was waited for. again tells that the context had a kernel
// before.
func (c *counts) started(language string, took time.Duration, again, ok bool) {
	lang := c.language(language)
	if !ok {
		c.starts.Add(1, lang, "failed")
		return
	}
	c.starts.Add(1, lang, "ok")
	c.startTime.Observe(took.Seconds(), lang)
	if again {
		c.restarts.Add(1, lang)
	}
}
