package server

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/cellard/cellard/protocol/api"
)

// metrics is GET /metrics: Prometheus's text format 0.0.4.
func (s *Server) metrics(c *call) error {
	var b bytes.Buffer
	gauge := func(name, help string, labelled ...string) {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name)
		for _, v := range labelled {
			fmt.Fprintf(&b, "%s%s\n", name, v)
		}
	}
	number := func(n float64) string { return " " + strconv.FormatFloat(n, 'g', -1, 64) }

	running, idle := s.o.Manager.Health()
	states := map[api.ContextState]int{api.ContextStarting: 0, api.ContextIdle: 0, api.ContextBusy: 0, api.ContextDead: 0}
	for _, x := range s.o.Manager.Contexts() {
		states[x.State]++
	}
	gauge("cellard_build_info", "The agent's version.", fmt.Sprintf("{version=%q,go=%q} 1", s.o.Version, runtime.Version()))
	gauge("cellard_executions_running", "Executions that run or wait.", number(float64(running)))
	gauge("cellard_idle_seconds", "Time since the last execution ended; 0 while any runs.", number(idle.Seconds()))
	var contexts []string
	for _, state := range []api.ContextState{api.ContextStarting, api.ContextIdle, api.ContextBusy, api.ContextDead} {
		contexts = append(contexts, fmt.Sprintf("{state=%q} %d", state, states[state]))
	}
	gauge("cellard_contexts", "Contexts by the state of their kernel.", contexts...)
	gauge("cellard_connections", "Open connections.", number(float64(s.connections())))
	gauge("cellard_uptime_seconds", "Time since the agent's start.", number(time.Since(s.started).Seconds()))
	gauge("cellard_goroutines", "Goroutines of the agent.", number(float64(runtime.NumGoroutine())))
	if n, ok := residentBytes(); ok {
		gauge("process_resident_memory_bytes", "Resident memory of the agent itself, without its kernels.", number(float64(n)))
	}
	c.w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = c.w.Write(b.Bytes())
	return nil
}

// residentBytes is the second figure of /proc/self/statm (proc(5)).
func residentBytes() (int64, bool) {
	b, err := os.ReadFile("/proc/self/statm")
	fields := strings.Fields(string(b))
	if err != nil || len(fields) < 2 {
		return 0, false
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize()), err == nil
}
