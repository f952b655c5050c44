package client_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cellard/cellard/client"
	"github.com/cellard/cellard/internal/pythons"
	"github.com/cellard/cellard/internal/testagent"
)

// patience bounds what would else hang; it is no measure of speed.
const patience = 2 * time.Minute

// real is the agent that the tests and examples share.
var real *testagent.Agent

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (code int) {
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	dir, err := os.MkdirTemp("", "cellard-client-")
	if err != nil {
		return fail(err)
	}
	defer os.RemoveAll(dir)
	python, err := pythons.FindNewest()
	if err != nil {
		return fail(err)
	}
	binary, err := testagent.Build(dir)
	if err != nil {
		return fail(err)
	}
	if real, err = testagent.Start(binary, python, "--ping", "200ms"); err != nil {
		return fail(err)
	}
	// What the examples call.
	_ = os.Setenv("AGENT", real.Firecracker)
	code = m.Run()
	if err := real.Stop(); err != nil {
		code = fail(err)
	}
	if err := goleak.Find(); err != nil && code == 0 {
		code = fail(err)
	}
	return code
}

func newClient(t *testing.T, address string, o client.Options) *client.Client {
	t.Helper()
	c, err := client.New(address, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}
