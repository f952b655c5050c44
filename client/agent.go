package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cellard/cellard/protocol/api"
)

// Health asks how the agent is. Its Running and IdleMs are what a host goes by that
// pauses idle machines.
func (c *Client) Health(ctx context.Context) (api.Health, error) {
	var h api.Health
	err := c.call(ctx, request{method: "GET", path: "/v1/health"}, nil, &h)
	if err == nil {
		c.instance.Store(&h.InstanceID)
	}
	return h, err
}

// WaitReady asks for health until it is answered: a machine that was just started, or
// restored, refuses connections for a while. It ends with the last error when ctx does,
// and at once where the agent refuses the caller.
func (c *Client) WaitReady(ctx context.Context) error {
	for try := 0; ; try++ {
		// A connect that a guest took too early may hang for good: give up on it soon.
		once, cancel := context.WithTimeoutCause(ctx, 2*time.Second, ErrSilent)
		_, err := c.healthOnce(once)
		cancel()
		var refusal *api.Error
		if err == nil || errors.As(err, &refusal) && refusal.Code == api.CodeUnauthorized {
			return err
		}
		if ctx.Err() != nil || c.pause(ctx, min(try, 4)) != nil {
			return fmt.Errorf("the agent at %s is not ready: %w", c.address, err)
		}
	}
}

// sameInstance tells whether the agent is still the one that was asked before.
func (c *Client) sameInstance(ctx context.Context) (bool, error) {
	h, err := c.healthOnce(ctx)
	if err != nil {
		return false, err
	}
	before := c.instance.Swap(&h.InstanceID)
	return before != nil && *before == h.InstanceID, nil
}

func (c *Client) healthOnce(ctx context.Context) (h api.Health, err error) {
	a, err := c.sendOnce(ctx, request{method: "GET", path: "/v1/health", timeout: c.o.AnswerTimeout})
	if err != nil {
		return h, err
	}
	defer a.Close()
	err = json.NewDecoder(io.LimitReader(a, maxRefusal)).Decode(&h)
	return h, err
}

// Languages tells which languages the agent's machine can run.
func (c *Client) Languages(ctx context.Context) ([]api.Language, error) {
	var l api.LanguageList
	// A look for interpreters may take a while.
	err := c.call(ctx, request{method: "GET", path: "/v1/languages", timeout: c.o.StartTimeout}, nil, &l)
	return l.Data, err
}

// Metrics is the agent's /metrics: Prometheus's text.
func (c *Client) Metrics(ctx context.Context) (string, error) {
	b, err := c.fetch(ctx, request{method: "GET", path: "/metrics", again: true, timeout: c.o.AnswerTimeout})
	return string(b), err
}
