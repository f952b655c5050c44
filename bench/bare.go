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

	"github.com/cellard/cellard/kernels"
	"github.com/cellard/cellard/protocol/jupyter"
)

// bare is the kernel that the agent would start, with nothing between it and the
// measurement but protocol/jupyter's client.
type bare struct {
	cmd    *exec.Cmd
	output bytes.Buffer
	client *jupyter.Client
}

// startBare starts the kernel of a language, and runs the cell that is given.
func (e *env) startBare(language, cell string) (*bare, error) {
	launch, err := kernels.New(kernels.Options{Python: e.python, Executable: e.binary}).Launch(e.ctx, language)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(e.dir, "k-")
	if err != nil {
		return nil, err
	}
	for name, data := range launch.Files {
		path := filepath.Join(dir, name)
		err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, data, 0o600))
		if err != nil {
			return nil, err
		}
	}
	ci, err := jupyter.NewIPC(dir)
	if err != nil {
		return nil, err
	}
	connection := filepath.Join(dir, "connection.json")
	if err := ci.WriteFile(connection); err != nil {
		return nil, err
	}
	argv := make([]string, len(launch.Argv))
	for i, a := range launch.Argv {
		argv[i] = strings.NewReplacer("{connection_file}", connection, "{dir}", dir).Replace(a)
	}
	b := &bare{cmd: exec.Command(argv[0], argv[1:]...)}
	if launch.Program != "" {
		b.cmd = &exec.Cmd{Path: launch.Program, Args: argv}
	}
	b.cmd.Dir = dir
	b.cmd.Env = append(os.Environ(), launch.Env...)
	b.cmd.Stdout, b.cmd.Stderr = &b.output, &b.output
	// In a session of its own, as the agent and jupyter_client start theirs: the scheduler
	// may share time out by sessions (autogroup).
	b.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := b.cmd.Start(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(e.ctx, time.Minute)
	defer cancel()
	if b.client, err = jupyter.Dial(ctx, ci, jupyter.ClientOptions{}); err == nil {
		_, err = b.client.Ready(ctx)
	}
	if err == nil {
		_, err = b.run(cell)
	}
	if err != nil {
		b.close()
		return nil, fmt.Errorf("a bare kernel: %w\n%s", err, b.output.String())
	}
	return b, nil
}

func (b *bare) close() {
	if b.client != nil {
		_ = b.client.Close()
	}
	_ = b.cmd.Process.Kill()
	_ = b.cmd.Wait()
}

// run runs a cell, throws away what it puts out, and returns when its reply and its
// idle have come.
func (b *bare) run(code string) (r kernelRun, err error) {
	begin := time.Now()
	m := b.client.NewMessage("execute_request", jupyter.ExecuteRequest{Code: code, StoreHistory: true})
	if err := b.client.Send(jupyter.Shell, m); err != nil {
		return r, err
	}
	replied, idle := false, false
	for !replied || !idle {
		msg, ok := <-b.client.Messages()
		if !ok {
			return r, fmt.Errorf("the kernel is gone: %w", b.client.Err())
		}
		if msg.Parent.MsgID == m.Header.MsgID {
			switch msg.Header.MsgType {
			case "execute_reply":
				var reply jupyter.ExecuteReply
				err = msg.Content.Decode(&reply, 1<<20)
				if err == nil && reply.Status != jupyter.StatusOK {
					err = fmt.Errorf("%s: %s", reply.EName, reply.EValue)
				}
				replied = true
			case "status":
				var s struct {
					State string `json:"execution_state"`
				}
				if msg.Content.Decode(&s, 1<<20) == nil && s.State == jupyter.StateIdle {
					idle = true
				}
			case "display_data":
				r.Displays++
			}
		}
		msg.Close()
		if err != nil {
			return r, err
		}
	}
	r.Ms = sinceMs(begin)
	return r, nil
}
