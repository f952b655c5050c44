// Command host is the least that a host's daemon does with an agent: it waits until the
// agent is ready, makes a context, runs cells in it, shows what they put out as it comes,
// keeps what is too large for an answer, and says how long the machine has been idle.
// docs/host.md goes through it.
//
//	host firecracker:///srv/vm1/v.sock?port=52 OUT_DIR 'x = 6 * 7' 'print(x)'
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"time"

	"github.com/cellard/cellard/client"
	"github.com/cellard/cellard/protocol/api"
)

func main() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "usage: host ADDRESS OUT_DIR CELL ...")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := host(ctx, os.Args[1], os.Args[2], os.Args[3:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "host:", err)
		os.Exit(1)
	}
}

// session is one user's context in one machine.
type session struct {
	agent *client.Client
	id    string
	dir   string    // for what is too large for an answer
	out   io.Writer // for the user
}

func host(ctx context.Context, address, dir string, cells []string, out io.Writer) (err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	agent, err := client.New(address, client.Options{Token: os.Getenv("CELLARD_TOKEN")})
	if err != nil {
		return err
	}
	defer agent.Close()

	// A machine that boots, or is restored from a snapshot, refuses connections at first.
	ready, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := agent.WaitReady(ready); err != nil {
		return err
	}
	c, err := agent.CreateContext(ctx, api.ContextRequest{Language: "python"})
	if err != nil {
		return fmt.Errorf("a context: %w", err)
	}
	defer func() { err = errors.Join(err, forget(ctx, agent, c.ID)) }()
	s := &session{agent: agent, id: c.ID, dir: dir, out: out}
	for i, code := range cells {
		// A key that the host keeps makes the cell run once, whatever breaks and whoever
		// asks again.
		if err := s.cell(ctx, code, fmt.Sprintf("%s-%d", c.ID, i)); err != nil {
			return err
		}
	}
	h, err := agent.Health(ctx)
	if err != nil {
		return err
	}
	// A host would pause the machine once this is long enough.
	fmt.Fprintf(out, "[%d cells run or wait; idle for %v]\n", h.Running, (time.Duration(h.IdleMs) * time.Millisecond).Round(time.Minute))
	return nil
}

// forget deletes a context, also where ctx has ended: the machine outlives this program.
func forget(ctx context.Context, agent *client.Client, id string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return agent.DeleteContext(ctx, id)
}

// cell runs a cell and shows its events. A cell that fails is no error of the host's.
func (s *session) cell(ctx context.Context, code, key string) error {
	interrupt := true // with a key the agent would let it go on if this program died
	stream, err := s.agent.Stream(ctx, api.RunRequest{Code: code, Context: s.id, IdempotencyKey: key, InterruptOnDisconnect: &interrupt})
	var refusal *api.Error
	if errors.As(err, &refusal) && refusal.Code == api.CodeBusy {
		return fmt.Errorf("come back later: %w", err)
	}
	if err != nil {
		return err
	}
	for ev, err := range stream.Events() {
		if err != nil {
			return err
		}
		switch ev.K {
		case api.KindStdout, api.KindStderr:
			fmt.Fprint(s.out, ev.Text)
		case api.KindResult:
			for mimeType, value := range ev.Data {
				fmt.Fprintf(s.out, "[%s: %s]\n", mimeType, value)
			}
			for mimeType, ref := range ev.Refs {
				if err := s.keep(ctx, mimeType, ref); err != nil {
					return err
				}
			}
		case api.KindExecution:
			s.ended(ev.Execution)
		}
	}
	return nil
}

// ended says what became of the cell, and of the user's variables.
func (s *session) ended(x *api.Execution) {
	fmt.Fprintf(s.out, "[%s, variables %s]\n", x.Status, x.State)
	if x.Error != nil {
		fmt.Fprintf(s.out, "[%s: %s]\n", x.Error.Name, x.Error.Value)
	}
	if x.State == api.StateLost && x.Lost != nil {
		fmt.Fprintf(s.out, "[the variables are gone: %s]\n", x.Lost.Message)
	}
}

// keep fetches the bytes of a ref, which Result checks against their hash. The file's
// name is the host's own choice: that in the ref comes from the guest.
func (s *session) keep(ctx context.Context, mimeType string, ref api.Ref) error {
	from, err := s.agent.Result(ctx, s.id, ref)
	if err != nil {
		return err
	}
	defer from.Close()
	file := filepath.Join(s.dir, ref.SHA256[:16]+filepath.Ext(path.Base(ref.Path)))
	to, err := os.Create(file)
	if err != nil {
		return err
	}
	defer to.Close()
	n, err := io.Copy(to, from)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "[%s, %d bytes: %s]\n", mimeType, n, file)
	return to.Close()
}
