package kernel_test

import (
	"context"
	"testing"

	"github.com/cellard/cellard/protocol/jupyter"
	"github.com/cellard/cellard/protocol/jupyter/kernel"
)

// BenchmarkCell is the round trip of a cell that does nothing, from the request to its
// reply and idle: what the protocol costs.
func BenchmarkCell(b *testing.B) {
	ci, err := jupyter.NewIPC(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- kernel.Serve(ctx, ci, &toy{}, kernel.Options{}) }()
	defer func() { cancel(); <-ended }()
	var c *jupyter.Client
	for c == nil {
		c, _ = jupyter.Dial(b.Context(), ci, jupyter.ClientOptions{})
	}
	defer c.Close()
	if _, err := c.Ready(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		m := c.NewMessage("execute_request", jupyter.ExecuteRequest{Code: "pass"})
		if err := c.Send(jupyter.Shell, m); err != nil {
			b.Fatal(err)
		}
		for left := 2; left > 0; {
			r := <-c.Messages()
			if r.Parent.MsgID == m.Header.MsgID {
				var s jupyter.Status
				if r.Header.MsgType == "execute_reply" || r.Content.Decode(&s, 1<<20) == nil && s.ExecutionState == "idle" {
					left--
				}
			}
			r.Close()
		}
	}
}
