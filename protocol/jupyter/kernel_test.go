package jupyter

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testTimeout keeps a broken test from hanging; nothing is measured by it.
const testTimeout = 2 * time.Minute

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

// python is the interpreter that has the kernels and the foreign peers of the tests.
func python(t testing.TB) string {
	t.Helper()
	p := os.Getenv("CELLARD_TEST_PYTHON")
	if p == "" {
		t.Fatal("set CELLARD_TEST_PYTHON to a python3 with ipykernel, jupyter_client and pyzmq")
	}
	return p
}

// kernel is a real ipykernel process.
type kernel struct {
	ci  ConnectionInfo
	cmd *exec.Cmd
	log bytes.Buffer
}

// startIPykernel starts an ipykernel, which ends with the test.
func startIPykernel(t testing.TB, ci ConnectionInfo) *kernel {
	t.Helper()
	file := filepath.Join(t.TempDir(), "connection.json")
	if err := ci.WriteFile(file); err != nil {
		t.Fatal(err)
	}
	k := &kernel{ci: ci, cmd: exec.Command(python(t), "-m", "ipykernel_launcher", "-f", file)}
	k.cmd.Env = append(os.Environ(), "IPYTHONDIR="+t.TempDir(), "PYTHONWARNINGS=ignore")
	k.cmd.Stdout, k.cmd.Stderr = &k.log, &k.log
	if err := k.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		k.cmd.Process.Kill()
		k.cmd.Wait()
		if t.Failed() {
			t.Logf("the kernel's own output:\n%s", k.log.String())
		}
	})
	return k
}

// socketDir is a directory whose path is short enough for sockets in it.
func socketDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "jupyter")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func newIPC(t testing.TB) ConnectionInfo {
	t.Helper()
	ci, err := NewIPC(socketDir(t))
	if err != nil {
		t.Fatal(err)
	}
	return ci
}

// dialReady connects to a kernel and waits for it.
func dialReady(t testing.TB, ci ConnectionInfo, o ClientOptions) (*Client, KernelInfo) {
	t.Helper()
	ctx := testContext(t)
	c, err := Dial(ctx, ci, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	info, err := c.Ready(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return c, info
}

// cell is what a cell's messages said, by type; the content of each decoded.
type cell struct {
	stdout strings.Builder
	types  []string
	reply  ExecuteReply
}

// run runs a cell until its reply and idle have come. onMessage, if there is one,
// sees every message of the cell first.
func run(t testing.TB, c *Client, code string, onMessage func(*Message)) *cell {
	t.Helper()
	m := c.NewMessage("execute_request", ExecuteRequest{Code: code, StoreHistory: true, AllowStdin: true})
	if err := c.Send(Shell, m); err != nil {
		t.Fatal(err)
	}
	var got cell
	timeout := time.After(testTimeout)
	for replied, idle := false, false; !replied || !idle; {
		select {
		case msg, ok := <-c.Messages():
			if !ok {
				t.Fatalf("the client ended under the cell: %v", c.Err())
			}
			if msg.Parent.MsgID != m.Header.MsgID {
				msg.Close()
				continue
			}
			if onMessage != nil {
				onMessage(msg)
			}
			got.types = append(got.types, msg.Header.MsgType)
			switch msg.Header.MsgType {
			case "execute_reply":
				replied = true
				decode(t, msg, &got.reply)
			case "status":
				var s Status
				decode(t, msg, &s)
				idle = s.ExecutionState == StateIdle
			case "stream":
				ms, err := msg.Content.Members()
				if err != nil {
					t.Fatal(err)
				}
				text, err := ms.Get("text").Unquote(1 << 30)
				if err != nil {
					t.Fatal(err)
				}
				got.stdout.WriteString(text)
			}
			msg.Close()
		case <-timeout:
			t.Fatalf("the cell did not end; so far %q", got.types)
		}
	}
	return &got
}

func decode(t testing.TB, m *Message, p any) {
	t.Helper()
	if err := m.Content.Decode(p, 1<<20); err != nil {
		t.Fatalf("%s: %v", m.Header.MsgType, err)
	}
}

func TestIPykernel(t *testing.T) {
	for _, transport := range []string{TransportIPC, TransportTCP} {
		t.Run(transport, func(t *testing.T) {
			var ci ConnectionInfo
			if transport == TransportIPC {
				ci = newIPC(t)
			} else {
				var release func()
				var err error
				if ci, release, err = NewTCP(); err != nil {
					t.Fatal(err)
				}
				release()
			}
			k := startIPykernel(t, ci)
			c, info := dialReady(t, ci, ClientOptions{})
			if info.Implementation != "ipython" || info.LanguageInfo.Name != "python" {
				t.Errorf("kernel info = %+v", info)
			}
			if err := c.Beat(testContext(t)); err != nil {
				t.Error(err)
			}
			if got := run(t, c, "x = 20\nprint(x + 1)", nil); got.stdout.String() != "21\n" || got.reply.Status != StatusOK {
				t.Errorf("print: %q, %+v", got.stdout.String(), got.reply)
			}
			got := run(t, c, "input('name? ')", func(m *Message) {
				if m.Header.MsgType != "input_request" {
					return
				}
				var ask InputRequest
				decode(t, m, &ask)
				if m.Channel != Stdin || ask.Prompt != "name? " || ask.Password {
					t.Errorf("%s: %+v", m.Channel, ask)
				}
				answer := c.NewMessage("input_reply", InputReply{Value: "Ada"})
				answer.Parent = &m.Header
				if err := c.Send(Stdin, answer); err != nil {
					t.Error(err)
				}
			})
			if got.reply.Status != StatusOK {
				t.Errorf("input: %+v", got.reply)
			}
			if got := run(t, c, "1/0", nil); got.reply.EName != "ZeroDivisionError" || len(got.reply.Traceback) == 0 {
				t.Errorf("error: %+v", got.reply)
			}
			if c.Stats() != (Stats{}) {
				t.Errorf("stats of an honest kernel: %+v", c.Stats())
			}

			k.cmd.Process.Kill()
			for m := range c.Messages() {
				m.Close()
			}
			if c.Err() == nil {
				t.Error("no reason why the client ended")
			}
			if err := c.Beat(testContext(t)); err == nil {
				t.Error("a dead kernel's heart beats")
			}
		})
	}
}
