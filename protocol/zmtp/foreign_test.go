package zmtp

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"
)

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

// recvStrings receives a message and reads its frames, wherever they lie.
func recvStrings(t testing.TB, c *Conn) []string {
	t.Helper()
	timer := time.AfterFunc(patience, func() { c.Close() })
	defer timer.Stop()
	frames, err := c.Recv()
	if err != nil {
		t.Fatal(err)
	}
	return readAll(t, frames)
}

func readAll(t testing.TB, frames []*Frame) []string {
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

// listenZMQ4 binds a socket of zmq4 to a new Unix socket.
func listenZMQ4(t testing.TB, s zmq4.Socket) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "s")
	if err := s.Listen("ipc://" + path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return path
}

func TestZMQ4Router(t *testing.T) {
	router := zmq4.NewRouter(testContext(t))
	path := listenZMQ4(t, router)
	c := mustDial(t, "unix", path, Dealer, Options{Identity: []byte("me")})
	if err := c.Send([]byte("a"), nil, []byte("c")); err != nil {
		t.Fatal(err)
	}
	m, err := router.Recv()
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Frames) != 4 || string(m.Frames[0]) != "me" || string(m.Frames[3]) != "c" {
		t.Fatalf("router got %q", m.Frames)
	}
	if err := router.SendMulti(m); err != nil {
		t.Fatal(err)
	}
	if got := recvStrings(t, c); len(got) != 3 || got[0] != "a" || got[1] != "" || got[2] != "c" {
		t.Fatalf("dealer got %q", got)
	}
	router.Close()
	if _, err := c.Recv(); !errors.Is(err, io.EOF) {
		t.Fatalf("after the peer's end: %v", err)
	}
}
