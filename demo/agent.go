package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/cellard/cellard/protocol/api"
)

// agent is a running cellard serve, and a client of it.
type agent struct {
	dir    string
	cmd    *exec.Cmd
	log    *bytes.Buffer
	ended  chan error
	client http.Client
}

// start starts the agent with a workspace of its own, and returns once it serves.
func start(ctx context.Context, binary, python string) (*agent, error) {
	dir, err := os.MkdirTemp("", "cellard-demo-")
	if err != nil {
		return nil, err
	}
	socket := filepath.Join(dir, "agent.sock")
	a := &agent{dir: dir, log: &bytes.Buffer{}, ended: make(chan error, 1)}
	a.client.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}}
	// Cells of an agent that root runs are another user's, who has to get here.
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	a.cmd = exec.Command(binary, "serve", "--listen", "unix://"+socket, "--workspace", dir,
		"--runtime-dir", filepath.Join(dir, "run"), "--python", python)
	a.cmd.Stderr = a.log
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C is the demo's: it stops the agent itself
	if err := a.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: make build makes it", err), os.RemoveAll(dir))
	}
	go func() { a.ended <- a.cmd.Wait() }()
	for {
		err := a.call(ctx, "GET", "/v1/health", nil, &api.Health{})
		if err == nil {
			return a, nil
		}
		select {
		case end := <-a.ended:
			a.ended <- end
			err = fmt.Errorf("the agent ended: %v", end)
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
			continue
		}
		return nil, errors.Join(err, a.stop())
	}
}

// stop ends the agent and removes what it had. It is an error if the agent does not
// end well.
func (a *agent) stop() error {
	a.client.CloseIdleConnections()
	_ = a.cmd.Process.Signal(syscall.SIGTERM)
	var err error
	select {
	case err = <-a.ended:
	case <-time.After(30 * time.Second):
		_ = a.cmd.Process.Kill()
		err = fmt.Errorf("it did not stop: %w", <-a.ended)
	}
	if err != nil {
		err = fmt.Errorf("the agent: %w\n%s", err, a.log)
	}
	return errors.Join(err, os.RemoveAll(a.dir))
}

// call makes one request and decodes the answer's JSON. A refusal is the
// *api.Error that the agent gave.
func (a *agent) call(ctx context.Context, method, path string, body, answer any) error {
	var r io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		r = bytes.NewReader(b)
	}
	b, _, err := a.fetch(ctx, method, path, r)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, answer); err != nil {
		return fmt.Errorf("%s %s: %w: %.200s", method, path, err, b)
	}
	return nil
}

func (a *agent) fetch(ctx context.Context, method, path string, body io.Reader) ([]byte, http.Header, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://agent"+path, body)
	if err != nil {
		return nil, nil, err
	}
	res, err := a.client.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, nil, err
	}
	if res.StatusCode != http.StatusOK {
		var e api.ErrorBody
		if json.Unmarshal(b, &e) == nil && e.Error != nil {
			return nil, nil, e.Error
		}
		return nil, nil, fmt.Errorf("%s %s: %s: %.200s", method, path, res.Status, b)
	}
	return b, res.Header, nil
}

// greet says who is there.
func (a *agent) greet(ctx context.Context, p *printer) error {
	var h api.Health
	if err := a.call(ctx, "GET", "/v1/health", nil, &h); err != nil {
		return err
	}
	var c api.Context
	if err := a.call(ctx, "POST", "/v1/interpreter/contexts", api.ContextRequest{ID: "penguins", Language: "python"}, &c); err != nil {
		return err
	}
	p.bold("cellard %s", h.Version)
	p.dim("%s, context %s: %s", strings.Join(a.cmd.Args[1:4], " "), c.ID, strings.TrimSpace(c.Kernel.Name+" "+c.Kernel.Version))
	return nil
}
