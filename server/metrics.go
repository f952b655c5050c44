package server

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/cellard/cellard/internal/metrics"
)

// metrics is GET /metrics: Prometheus's text format 0.0.4, of all that is in the
// Registry, the Manager's figures among it.
func (s *Server) metrics(c *call) error {
	var b bytes.Buffer
	if err := s.o.Metrics.Write(&b); err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", metrics.ContentType)
	_, _ = c.w.Write(b.Bytes())
	return nil
}

// counts are the server's own figures. A route is a pattern, never a path.
type counts struct {
	requests *metrics.Counter
	received *metrics.Counter
	sent     *metrics.Counter
	accepted *metrics.Counter
	refused  *metrics.Counter
}

// Why a connection was refused.
const (
	refusedPeer  = "peer"
	refusedLimit = "limit"
)

func (s *Server) newCounts(r *metrics.Registry) counts {
	type set = func(v float64, values ...string)
	r.Gauge("cellard_build_info", "The agent's version.", []string{"version", "go"}, func(set set) { set(1, s.o.Version, runtime.Version()) })
	r.Gauge("cellard_uptime_seconds", "Time since the agent's start.", nil, func(set set) { set(time.Since(s.started).Seconds()) })
	r.Gauge("cellard_connections", "Open connections.", []string{"listener"}, func(set set) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for g := range s.gates {
			set(float64(g.count()), g.l.kind())
		}
	})
	r.Gauge("cellard_connections_max", "The most connections that may be open.", []string{"listener"}, func(set set) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for g := range s.gates {
			set(float64(s.o.MaxConnections), g.l.kind())
		}
	})
	r.Gauge("go_goroutines", "Goroutines of the agent.", nil, func(set set) { set(float64(runtime.NumGoroutine())) })
	r.Gauge("process_start_time_seconds", "When the agent started, in Unix time.", nil, func(set set) { set(float64(s.started.UnixMilli()) / 1000) })
	r.Gauge("process_resident_memory_bytes", "Resident memory of the agent itself, without its kernels.", nil, func(set set) {
		if n, ok := residentBytes(); ok {
			set(float64(n))
		}
	})
	r.CounterFunc("process_cpu_seconds_total", "CPU time of the agent itself, without its kernels.", nil, func(set set) {
		var u syscall.Rusage
		if syscall.Getrusage(syscall.RUSAGE_SELF, &u) == nil {
			set(time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds())
		}
	})
	r.Gauge("process_open_fds", "Open file descriptors of the agent.", nil, func(set set) {
		if n, ok := openFiles(); ok {
			set(float64(n))
		}
	})
	r.Gauge("process_max_fds", "The most that it may have open.", nil, func(set set) {
		var l syscall.Rlimit
		if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) == nil {
			set(float64(l.Cur))
		}
	})
	return counts{
		requests: r.Counter("cellard_http_requests_total", "Requests that were answered, by their route and HTTP status.", "route", "code"),
		received: r.Counter("cellard_http_request_bytes_total", "Bytes of requests' bodies."),
		sent:     r.Counter("cellard_http_response_bytes_total", "Bytes of answers' bodies, what broke off included."),
		accepted: r.Counter("cellard_connections_accepted_total", "Connections that were let in.", "listener"),
		refused:  r.Counter("cellard_connections_refused_total", "Connections that were not: of a peer that may not call, or past the bound.", "listener", "reason"),
	}
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

// openFiles counts what /proc/self/fd lists, less the descriptor that lists it.
func openFiles() (int, bool) {
	d, err := os.Open("/proc/self/fd")
	if err != nil {
		return 0, false
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	return len(names) - 1, err == nil
}
