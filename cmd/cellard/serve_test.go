package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cellard/cellard/internal/fixture"
	"github.com/cellard/cellard/internal/pythons"
	"github.com/cellard/cellard/protocol/api"
)

// served is a running cellard serve.
type served struct {
	t     *testing.T
	c     *exec.Cmd
	log   *fixture.Buffer
	ended chan error
}

func startServe(t *testing.T, env []string, args ...string) *served {
	t.Helper()
	return startServed(t, cellard(t, env, append([]string{"serve"}, args...)...))
}

// startServed starts the command of an agent, which ends with the test.
func startServed(t *testing.T, c *exec.Cmd) *served {
	t.Helper()
	s := &served{t: t, c: c, log: &fixture.Buffer{}, ended: make(chan error, 1)}
	c.Stderr = s.log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { s.ended <- c.Wait() }()
	t.Cleanup(func() {
		_ = c.Process.Kill()
		if t.Failed() {
			t.Logf("its log:\n%s", s.log)
		}
	})
	return s
}

// logged waits for a line of the log and returns the first group.
func (s *served) logged(pattern string) string {
	s.t.Helper()
	re := regexp.MustCompile(pattern)
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if m := re.FindStringSubmatch(s.log.String()); m != nil {
			return m[len(m)-1]
		}
	}
	s.t.Fatalf("no %q in its log", pattern)
	return ""
}

// end waits for its end.
func (s *served) end() (code int) {
	s.t.Helper()
	select {
	case <-s.ended:
		return s.c.ProcessState.ExitCode()
	case <-time.After(patience):
		s.t.Fatal("it does not end")
		return -1
	}
}

func (s *served) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.c.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// get asks for a path; the address is a socket's path, or a host and port.
func get(address, path, token string) (int, string, error) {
	network := "tcp"
	if strings.HasPrefix(address, "/") {
		network = "unix"
	}
	tr := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}}
	req, err := http.NewRequest("GET", "http://agent"+path, nil)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := (&http.Client{Transport: tr, Timeout: patience}).Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// dirs are a workspace and a runtime directory that cells of another user can enter.
func dirs(t *testing.T) (workspace, run string, args []string) {
	t.Helper()
	workspace, run = fixture.Dir(t, 0o777), fixture.Dir(t, 0o711)
	return workspace, run, []string{"--workspace", workspace, "--runtime-dir", run}
}

func TestServeAndStop(t *testing.T) {
	// An agent leaves ignored what was ignored at its start, as under nohup.
	hups := make(chan os.Signal, 1)
	signal.Notify(hups, syscall.SIGHUP)
	defer signal.Stop(hups)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		_, run, args := dirs(t)
		socket := filepath.Join(run, "s")
		s := startServe(t, []string{"CELLARD_LISTEN=unix://" + socket + ", tcp://127.0.0.1:0"}, args...)
		port := s.logged(`address=tcp://127.0.0.1:(\d+)`)
		status, body, err := get(socket, "/v1/health", "")
		if err != nil || status != 200 || !strings.Contains(body, `"status":"ok"`) {
			t.Errorf("health: %d %s %v", status, body, err)
		}
		// The token is where the log says, for nobody else to read.
		file := s.logged(`a token was made.*file=(\S+)`)
		fi, err := os.Stat(file)
		if err != nil || fi.Mode() != 0o600 || file != filepath.Join(run, "token-"+port) {
			t.Errorf("token file %s: %v %v", file, fi, err)
		}
		token, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(s.log.String(), strings.TrimSpace(string(token))) {
			t.Error("the token is in the log")
		}
		if status, _, err := get("127.0.0.1:"+port, "/v1/health", ""); status != 401 {
			t.Errorf("without the token: %d %v", status, err)
		}
		if status, _, err := get("127.0.0.1:"+port, "/v1/health", strings.TrimSpace(string(token))); status != 200 {
			t.Errorf("with the token: %d %v", status, err)
		}
		s.signal(sig)
		if code := s.end(); code != 0 {
			t.Errorf("%v: ended with %d", sig, code)
		}
		left, err := filepath.Glob(filepath.Join(run, "*"))
		if err != nil || len(left) != 0 {
			t.Errorf("left in the runtime directory: %v %v", left, err)
		}
	}
}

func TestServeToken(t *testing.T) {
	_, run, args := dirs(t)
	file := filepath.Join(run, "secret")
	if err := os.WriteFile(file, []byte("from-file\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	args = append(args, "--listen", "tcp://127.0.0.1:0")
	for _, c := range []struct {
		env, args []string
		token     string
	}{
		{[]string{"CELLARD_TOKEN=from-variable"}, nil, "from-variable"},
		{[]string{"CELLARD_TOKEN=from-variable"}, []string{"--token-file", file}, "from-file"},
		{[]string{"CELLARD_TOKEN_FILE=" + file}, nil, "from-file"},
	} {
		s := startServe(t, c.env, append(args[:len(args):len(args)], c.args...)...)
		port := s.logged(`address=tcp://127.0.0.1:(\d+)`)
		if status, _, err := get("127.0.0.1:"+port, "/v1/health", c.token); status != 200 {
			t.Errorf("%v: %d %v", c, status, err)
		}
		if c.token == "from-file" {
			s.logged("others can read the token file")
		}
		s.signal(syscall.SIGTERM)
		s.end()
		if _, err := os.Stat(file); err != nil {
			t.Errorf("a token file that was given is not the agent's to remove: %v", err)
		}
	}
	if err := os.WriteFile(file, []byte(" \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startServe(t, nil, append(args, "--token-file", file)...)
	if code := s.end(); code != exitUsage || !strings.Contains(s.log.String(), "a token is one line") {
		t.Errorf("an empty token: %d", code)
	}
}

func TestServeCannotStart(t *testing.T) {
	workspace, run, args := dirs(t)
	socket := filepath.Join(run, "s")
	s := startServe(t, nil, append(args, "--listen", "unix://"+socket)...)
	s.logged("address=unix")
	other := filepath.Join(fixture.Dir(t, 0o777), "workspace")
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{"--listen unix://" + socket + " --workspace " + other, "in use: another agent answers", exitAgent},
		{"--listen unix://" + run + "/none/s --workspace " + other, "make the directory", exitAgent},
		{"--listen unix://" + socket + "2 --workspace " + workspace, "another agent", exitAgent},
		{"--listen tcp://0.0.0.0:0 --workspace " + other, "--tcp-any", exitUsage},
		{"--listen tcp://127.0.0.1:99999 --workspace " + other, "invalid port", exitUsage},
		{"--listen tcp://localhost --workspace " + other, "want HOST:PORT", exitUsage},
		{"--listen tcp://example.org:1 --workspace " + other, "no IP address", exitUsage},
		{"--listen vsock://52 --workspace " + other, "want a port and no CID", exitUsage},
		{"--listen unix://s --workspace " + other, "want an absolute path", exitUsage},
		{"--listen unix:///" + strings.Repeat("s", 200) + " --workspace " + other, "107 at most", exitUsage},
		{"--listen nonsense --workspace " + other, "no such kind of address", exitUsage},
		{"--listen unix://" + socket + "2 --workspace " + other + " --user no-such-account", "no-such-account", exitUsage},
		{"--listen unix://" + socket + "2 --workspace /dev/null", "no directory; name one by --workspace", exitUsage},
		{"--listen unix://" + socket + "2 --runtime-dir /dev/null", "runtime directory: ", exitUsage},
		{"--listen unix://" + socket + "2 --token-file /none --workspace " + other, "token file: ", exitUsage},
		{"--log-format prose", "want text or json", exitUsage},
	} {
		code, _, stderr := output(t, nil, append([]string{"serve", "--runtime-dir", run}, strings.Fields(c.args)...)...)
		if code != c.code || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: code %d, %s", c.args, code, stderr)
		}
	}
	// The first is none the worse for it.
	if status, _, err := get(socket, "/v1/health", ""); status != 200 {
		t.Errorf("%d %v", status, err)
	}
	s.signal(syscall.SIGTERM)
	if code := s.end(); code != 0 {
		t.Errorf("ended with %d", code)
	}
	if left, err := filepath.Glob(filepath.Join(run, "*")); err != nil || len(left) > 0 {
		t.Errorf("left in the runtime directory: %v %v", left, err)
	}
}

// An agent whose cells have its own uid says that this is no boundary.
func TestServeWarns(t *testing.T) {
	_, run, args := dirs(t)
	args = append(args, "--listen", "unix://"+filepath.Join(run, "s"))
	const warning = "cells run as the agent's own user"
	s := startServe(t, nil, append(args, "--user", "root")...)
	s.logged("address=")
	if os.Getuid() == 0 && !strings.Contains(s.log.String(), warning) {
		t.Error("no warning")
	}
	s.signal(syscall.SIGTERM)
	s.end()
	s = startServe(t, nil, args...)
	s.logged("address=")
	if got := strings.Contains(s.log.String(), warning); got != (os.Getuid() != 0) {
		t.Errorf("warned: %v", got)
	}
	s.signal(syscall.SIGTERM)
	s.end()
}

// A cell that runs when the agent is stopped ends as lost, and its stream is whole; a
// second signal doesn't wait for a cell that won't end.
func TestStopWithRunningCell(t *testing.T) {
	python := pythons.Newest(t)
	for _, c := range []struct {
		code    string
		signals int
	}{
		{"print('in', flush=True)\nimport time\ntime.sleep(1000)", 1},
		{"print('in', flush=True)\nwhile True:\n  try:\n    while True: pass\n  except BaseException: pass", 2},
	} {
		_, run, args := dirs(t)
		socket := filepath.Join(run, "s")
		s := startServe(t, nil, append(args, "--python", python, "--listen", "unix://"+socket, "--shutdown-grace", "1h")...)
		s.logged("address=unix")
		conn, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(patience))
		body, err := json.Marshal(api.RunRequest{Code: c.code, Stream: true})
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequest("POST", "http://agent/v1/interpreter:run", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if err := req.Write(conn); err != nil {
			t.Fatal(err)
		}
		var answer bytes.Buffer
		in := make([]byte, 4096)
		for !strings.Contains(answer.String(), `"text":"in\n"`) {
			n, err := conn.Read(in)
			if err != nil {
				t.Fatalf("%v after %s", err, &answer)
			}
			answer.Write(in[:n])
		}
		for range c.signals {
			s.signal(syscall.SIGTERM)
			s.logged("stopping")
		}
		if _, err := io.Copy(&answer, conn); err != nil {
			t.Error(err)
		}
		conn.Close()
		if code := s.end(); code != 0 {
			t.Errorf("ended with %d", code)
		}
		if a := answer.String(); !strings.Contains(a, `"k":"execution"`) || !strings.Contains(a, `"reason":"shutdown"`) || !strings.HasSuffix(a, "\r\n0\r\n\r\n") {
			t.Errorf("stream of %d signals: %s", c.signals, a)
		}
	}
}
