package zmtp

import (
	"bufio"
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// zmq4 v0.17.0 leaves this one behind when a PUB is closed.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/go-zeromq/zmq4.(*pubMWriter).run"))
}

// patience bounds what a test waits for; nothing is said about how long it takes.
const patience = 60 * time.Second

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func mustDial(t testing.TB, network, address string, typ Type, o Options) *Conn {
	t.Helper()
	c, err := Dial(testContext(t), network, address, typ, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// recv receives with an end to its patience.
func recv(c *Conn) ([]*Frame, error) {
	timer := time.AfterFunc(patience, func() { c.Close() })
	defer timer.Stop()
	return c.Recv()
}

// recvStrings receives a message and reads its frames, wherever they lie.
func recvStrings(t testing.TB, c *Conn) []string {
	t.Helper()
	frames, err := recv(c)
	if err != nil {
		t.Fatal(err)
	}
	return readFrames(t, frames)
}

func readFrames(t testing.TB, frames []*Frame) []string {
	t.Helper()
	var out []string
	for _, f := range frames {
		b, err := io.ReadAll(io.NewSectionReader(f.ReaderAt(), 0, f.Len()))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(b))
		f.Close()
	}
	return out
}

func wantStrings(t testing.TB, got []string, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %d frames, want %d", len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("frame %d: got %.40q (%d bytes), want %.40q (%d bytes)", i, got[i], len(got[i]), want[i], len(want[i]))
		}
	}
}

// socketPath is a path for a Unix socket; t.TempDir's can be too long for one.
func socketPath(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "zmtp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

// listenZMQ4 binds a socket of zmq4 to a new Unix socket.
func listenZMQ4(t testing.TB, s zmq4.Socket) (path string) {
	t.Helper()
	path = socketPath(t)
	if err := s.Listen("ipc://" + path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return path
}

// python is an interpreter that has pyzmq.
func python(t testing.TB) string {
	t.Helper()
	p := os.Getenv("CELLARD_TEST_PYTHON")
	if p == "" {
		t.Fatal("set CELLARD_TEST_PYTHON to a python that has pyzmq: python3 -m venv V && V/bin/pip install pyzmq")
	}
	return p
}

// startPeer runs peer.py and returns its endpoint and the lines that it prints.
func startPeer(t testing.TB, args ...string) (network, address string, lines *bufio.Reader) {
	t.Helper()
	cmd := exec.Command(python(t), append([]string{filepath.Join("testdata", "peer.py")}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(patience, func() { cmd.Process.Kill() })
	t.Cleanup(func() {
		timer.Stop()
		cmd.Process.Kill()
		cmd.Wait()
	})
	lines = bufio.NewReader(out)
	network, address, _ = strings.Cut(readLine(t, lines), "://")
	if network == "ipc" {
		network = "unix"
	}
	return network, address, lines
}

func readLine(t testing.TB, lines *bufio.Reader) string {
	t.Helper()
	line, err := lines.ReadString('\n')
	if err != nil {
		t.Fatalf("the peer's output ended: %v", err)
	}
	return strings.TrimSpace(line)
}

// listenRaw runs peer on the first connection to a new Unix socket. The
// connection is closed when peer returns, or when the test ends.
func listenRaw(t testing.TB, peer func(net.Conn)) (path string) {
	t.Helper()
	path = socketPath(t)
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	conns := make(chan net.Conn, 1)
	go func() {
		defer close(done)
		nc, err := l.Accept()
		if err != nil {
			return
		}
		conns <- nc
		peer(nc)
		nc.Close()
	}()
	t.Cleanup(func() {
		l.Close()
		select {
		case nc := <-conns:
			nc.Close()
		case <-done:
		}
		<-done
	})
	return path
}

func goodGreeting() []byte {
	return greeting{major: 3, minor: 1, mechanism: "NULL"}.append(nil)
}

// frame marshals a frame the way a peer would.
func frame(flags byte, body string) []byte {
	return append(appendHeader(nil, flags, len(body)), body...)
}

func ready(socketType string) []byte {
	return frame(flagCommand, string(appendCommand(nil, "READY",
		appendProperty(appendProperty(nil, "Socket-Type", []byte(socketType)), "Identity", nil))))
}

// greet does a peer's part of the handshake with a Dealer or a Req.
func greet(nc net.Conn, t Type) {
	nc.Write(goodGreeting())
	nc.Write(ready("ROUTER"))
	io.ReadFull(nc, make([]byte, len(goodGreeting())+len(ready(string(t)))))
}

// dialRaw connects a Dealer to a peer that goes on with what it is told.
func dialRaw(t testing.TB, o Options, peer func(net.Conn)) *Conn {
	t.Helper()
	return mustDial(t, "unix", listenRaw(t, func(nc net.Conn) { greet(nc, Dealer); peer(nc) }), Dealer, o)
}
