package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/cellard/cellard/client"
	"github.com/cellard/cellard/protocol/api"
)

// AGENT is an address as firecracker:///srv/vm1/v.sock?port=52.
func connect(ctx context.Context) *client.Client {
	c, err := client.New(os.Getenv("AGENT"), client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	if err := c.WaitReady(ctx); err != nil {
		log.Fatal(err)
	}
	return c
}

func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := client.New(os.Getenv("AGENT"), client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	if err := c.WaitReady(ctx); err != nil {
		log.Fatal(err)
	}
	x, err := c.Run(ctx, api.RunRequest{Code: "print('hello')\n6 * 7"})
	if err != nil {
		log.Fatal(err)
	}
	var value string
	if err := json.Unmarshal(x.Results[0].Data["text/plain"], &value); err != nil {
		log.Fatal(err)
	}
	fmt.Print(x.Status, "\n", x.Stdout, value, "\n")
	// Output:
	// ok
	// hello
	// 42
}

// A cell that fails is no error; what the agent refuses is an *api.Error.
func ExampleClient_Run_errors() {
	ctx := context.Background()
	c := connect(ctx)
	defer c.Close()

	limit := int64(500)
	x, err := c.Run(ctx, api.RunRequest{Code: "while True: pass", TimeoutMs: &limit})
	fmt.Println(x.Status, x.State, err)

	_, err = c.Run(ctx, api.RunRequest{Code: "1", Context: "never-made"})
	var refusal *api.Error
	if errors.As(err, &refusal) {
		fmt.Println(refusal.Code, refusal.Status)
	}
	// Output:
	// timeout kept <nil>
	// not_found 404
}

func ExampleClient_Stream() {
	ctx := context.Background()
	c := connect(ctx)
	defer c.Close()

	s, err := c.Stream(ctx, api.RunRequest{Code: "for i in range(3): print(i)\ni * 14"})
	if err != nil {
		log.Fatal(err)
	}
	for ev, err := range s.Events() {
		if err != nil {
			log.Fatal(err)
		}
		switch ev.K {
		case api.KindStdout:
			fmt.Print(ev.Text)
		case api.KindResult:
			fmt.Printf("%s\n", ev.Data["text/plain"])
		case api.KindExecution:
			fmt.Println(ev.Execution.Status)
		}
	}
	// Output:
	// 0
	// 1
	// 2
	// "28"
	// ok
}

// A host that was started anew goes on with a cell by its id.
func ExampleClient_Attach() {
	ctx := context.Background()
	c := connect(ctx)
	defer c.Close()

	now, stay := int64(0), false
	x, err := c.Run(ctx, api.RunRequest{Code: "print('done')", WaitMs: &now, InterruptOnDisconnect: &stay})
	if err != nil {
		log.Fatal(err)
	}
	s, err := c.Attach(ctx, x.ID, 0)
	if err != nil {
		log.Fatal(err)
	}
	if x, err = s.Wait(); err != nil {
		log.Fatal(err)
	}
	fmt.Print(x.Status, " ", x.Stdout)
	// Output:
	// ok done
}

// What is too large for an answer is read from the guest, and checked against its hash.
func ExampleClient_Result() {
	ctx := context.Background()
	c := connect(ctx)
	defer c.Close()

	x, err := c.Run(ctx, api.RunRequest{Code: "'x' * 100_000"})
	if err != nil {
		log.Fatal(err)
	}
	f, err := c.Result(ctx, x.ContextID, x.Results[0].Refs["text/plain"])
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	n, err := io.Copy(io.Discard, f)
	fmt.Println(f.MIME, n, err)
	// Output:
	// text/plain 100002 <nil>
}
