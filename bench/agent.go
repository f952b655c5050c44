package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/cellard/cellard/protocol/api"
)

// agent is a running cellard serve and one connection to it.
type agent struct {
	dir    string
	socket string
	cmd    *exec.Cmd
	log    bytes.Buffer
	client http.Client
}

// startAgent starts an agent with a workspace of its own, and what is added to its environment;
// stop ends it.
func (e *env) startAgent(vars ...string) (*agent, error) {
	dir, err := os.MkdirTemp(e.dir, "agent-")
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, err
	}
	socket := filepath.Join(dir, "s")
	a := &agent{dir: dir, socket: socket, client: unixClient(socket)}
	a.cmd = exec.Command(e.binary, "serve", "--listen", "unix://"+socket, "--workspace", dir,
		"--runtime-dir", filepath.Join(dir, "run"), "--python", e.python)
	a.cmd.Stderr = &a.log
	a.cmd.Env = append(os.Environ(), vars...)
	if err := a.cmd.Start(); err != nil {
		return nil, err
	}
	if err := untilServed(e.ctx, &a.client); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, a.stop())
	}
	return a, nil
}

func unixClient(socket string) http.Client {
	return http.Client{Transport: &http.Transport{
		ReadBufferSize: 64 << 10,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", socket)
		},
	}}
}

// untilServed asks for health until it is answered, as fast as it may come.
func untilServed(ctx context.Context, c *http.Client) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, "GET", "http://agent/v1/health", nil)
		if err != nil {
			return err
		}
		res, err := c.Do(req)
		if err == nil {
			_, err = io.Copy(io.Discard, res.Body)
			res.Body.Close()
			if err == nil && res.StatusCode == http.StatusOK {
				return nil
			}
			err = fmt.Errorf("health: %s", res.Status)
		}
		if ctx.Err() != nil {
			return err
		}
		time.Sleep(100 * time.Microsecond)
	}
}

// stop ends the agent and returns its log.
func (a *agent) stop() string {
	a.client.CloseIdleConnections()
	_ = a.cmd.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(30*time.Second, func() { _ = a.cmd.Process.Kill() })
	defer kill.Stop()
	_ = a.cmd.Wait()
	return a.log.String()
}

// post makes a request; the caller closes the answer's body.
func (a *agent) post(ctx context.Context, path string, body any) (*http.Response, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, "POST", "http://agent"+path, bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	res, err := a.client.Do(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		defer res.Body.Close()
		b, _ := io.ReadAll(io.LimitReader(res.Body, 1000))
		return nil, fmt.Errorf("%s: %s: %s", path, res.Status, b)
	}
	return res, nil
}

// ready starts the kernel of the default context.
func (a *agent) ready(ctx context.Context) error {
	x, _, err := a.run(ctx, "pass")
	if err == nil && x.Status != api.StatusOK {
		err = fmt.Errorf("the first cell: %s", x.Status)
	}
	return err
}

// run runs a cell and returns its Execution and the milliseconds until it was here.
func (a *agent) run(ctx context.Context, code string) (x api.Execution, took float64, err error) {
	begin := time.Now()
	res, err := a.post(ctx, "/v1/interpreter:run", map[string]any{"code": code, "timeoutMs": 0})
	if err != nil {
		return x, 0, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return x, 0, err
	}
	took = sinceMs(begin)
	return x, took, json.Unmarshal(b, &x)
}

// stalled runs a cell as a stream that is not read for a while, and counts the
// results that are told in it.
func (a *agent) stalled(ctx context.Context, code string, stall time.Duration) (x *api.Execution, results int, err error) {
	res, err := a.post(ctx, "/v1/interpreter:run", map[string]any{"code": code, "timeoutMs": 0, "stream": true})
	if err != nil {
		return nil, 0, err
	}
	defer res.Body.Close()
	time.Sleep(stall)
	lines := bufio.NewReaderSize(res.Body, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return nil, 0, fmt.Errorf("the stream ended without an Execution: %w", err)
		}
		var ev api.Event
		if err := json.Unmarshal(line, &ev); err != nil {
			return nil, 0, err
		}
		switch ev.K {
		case api.KindResult:
			results++
		case api.KindExecution:
			return ev.Execution, results, nil
		case api.KindFailure:
			return nil, 0, ev.Failure
		}
	}
}

func sinceMs(t time.Time) float64 { return float64(time.Since(t)) / 1e6 }

// memory reads a field of /proc/PID/status in bytes: VmRSS, or VmHWM, the peak.
func memory(pid int, field string) (int64, error) {
	v, err := statusField("/proc/"+strconv.Itoa(pid)+"/status", field)
	return v << 10, err
}

// switches counts how often the threads of a process went to sleep or were made to:
// each is a wake-up.
func switches(pid int) (int64, error) {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil {
		return 0, err
	}
	var sum int64
	for _, t := range tasks {
		for _, f := range []string{"voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"} {
			v, err := statusField(t, f)
			if err != nil {
				return 0, err
			}
			sum += v
		}
	}
	return sum, nil
}

func statusField(file, field string) (int64, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, field+":"); ok {
			return strconv.ParseInt(strings.Fields(v)[0], 10, 64)
		}
	}
	return 0, fmt.Errorf("%s has no %s", file, field)
}
