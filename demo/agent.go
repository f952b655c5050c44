package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/cellard/cellard/client"
	"github.com/cellard/cellard/protocol/api"
)

// agent is a running cellard serve, and a client of it.
type agent struct {
	dir    string
	cmd    *exec.Cmd
	log    *bytes.Buffer
	ended  chan error // how the process ended
	client *client.Client
}

// start starts the agent with a workspace of its own, and returns once it serves.
func start(ctx context.Context, binary, python string) (*agent, error) {
	dir, err := os.MkdirTemp("", "cellard-demo-")
	if err != nil {
		return nil, err
	}
	socket := filepath.Join(dir, "agent.sock")
	a := &agent{dir: dir, log: &bytes.Buffer{}, ended: make(chan error, 1)}
	if a.client, err = client.New("unix://"+socket, client.Options{}); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
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
	ready, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		a.ended <- a.cmd.Wait()
		cancel()
	}()
	if err := a.client.WaitReady(ready); err != nil {
		return nil, errors.Join(err, a.stop())
	}
	return a, nil
}

// stop ends the agent and removes what it had. It is an error if the agent does not
// end well.
func (a *agent) stop() error {
	a.client.Close()
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

// greet says who is there.
func (a *agent) greet(ctx context.Context, p *printer) error {
	h, err := a.client.Health(ctx)
	if err != nil {
		return err
	}
	c, err := a.client.CreateContext(ctx, api.ContextRequest{ID: "penguins", Language: "python"})
	if err != nil {
		return err
	}
	p.bold("cellard %s", h.Version)
	p.dim("%s, context %s: %s", strings.Join(a.cmd.Args[1:4], " "), c.ID, strings.TrimSpace(c.Kernel.Name+" "+c.Kernel.Version))
	return nil
}
