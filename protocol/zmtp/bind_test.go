package zmtp

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"
)

// bindEcho is a ROUTER, or a REP, that gives back what it gets.
func bindEcho(t *testing.T, network, address string, typ Type, o Options) *Socket {
	t.Helper()
	var s *Socket
	made := make(chan struct{})
	s, err := Bind(network, address, typ, o, func(peer []byte, frames []*Frame) {
		<-made
		var echo [][]byte
		for _, f := range frames {
			b, _ := f.Bytes()
			echo = append(echo, b)
			f.Close()
		}
		_ = s.SendTo(peer, echo...)
	})
	close(made)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func TestRouter(t *testing.T) {
	path := socketPath(t)
	s := bindEcho(t, "unix", path, Router, Options{})
	var clients sync.WaitGroup
	for i := range 5 {
		c := mustDial(t, "unix", path, Dealer, Options{Identity: []byte(fmt.Sprint("c", i))})
		clients.Add(1)
		go func() {
			defer clients.Done()
			for n := range 200 {
				text := fmt.Sprint(i, "-", n)
				if err := c.Send([]byte(text), nil); err != nil {
					t.Error(err)
					return
				}
				frames, err := c.Recv()
				if err != nil {
					t.Error(err)
					return
				}
				if b, _ := frames[0].Bytes(); len(frames) != 2 || string(b) != text {
					t.Errorf("got %q of %d frames, want %q", b, len(frames), text)
				}
			}
		}()
	}
	clients.Wait()
	// One without an identity, and a newer one of an identity that is there.
	anonymous := mustDial(t, "unix", path, Dealer, Options{})
	newer := mustDial(t, "unix", path, Dealer, Options{Identity: []byte("c0")})
	for _, c := range []*Conn{anonymous, newer} {
		if err := c.Send([]byte("x")); err != nil {
			t.Fatal(err)
		}
		wantStrings(t, recvStrings(t, c), "x")
	}
	if err := s.SendTo([]byte("c0"), []byte("for the newer")); err != nil {
		t.Fatal(err)
	}
	wantStrings(t, recvStrings(t, newer), "for the newer")
	if err := s.SendTo([]byte("nobody"), []byte("x")); !errors.Is(err, ErrNoPeer) {
		t.Errorf("to nobody: %v", err)
	}
	if !s.Connected([]byte("c1")) || s.Connected([]byte("nobody")) {
		t.Error("who is connected is told wrongly")
	}
}

func TestRep(t *testing.T) {
	path := socketPath(t)
	bindEcho(t, "unix", path, Rep, Options{})
	c := mustDial(t, "unix", path, Req, Options{})
	for range 3 {
		if err := c.Send([]byte("beat")); err != nil {
			t.Fatal(err)
		}
		wantStrings(t, recvStrings(t, c), "beat")
	}
}

// The other way round: zmq4 dials our sockets.
func TestZMQ4Dealer(t *testing.T) {
	path := socketPath(t)
	bindEcho(t, "unix", path, Router, Options{})
	d := zmq4.NewDealer(testContext(t), zmq4.WithID(zmq4.SocketIdentity("me")))
	defer d.Close()
	if err := d.Dial("ipc://" + path); err != nil {
		t.Fatal(err)
	}
	if err := d.SendMulti(zmq4.NewMsgFrom([]byte("a"), []byte("b"))); err != nil {
		t.Fatal(err)
	}
	m, err := d.Recv()
	if err != nil || len(m.Frames) != 2 || string(m.Frames[1]) != "b" {
		t.Errorf("got %q %v", m.Frames, err)
	}
}

// What isn't ZMTP, or too much of it, ends its connection and nothing else.
func TestHostileClients(t *testing.T) {
	path := socketPath(t)
	bindEcho(t, "unix", path, Router, Options{MaxMessage: 1 << 10, MaxFrame: 1 << 10, HandshakeTimeout: 200 * time.Millisecond})
	dealer := append(goodGreeting(), ready("DEALER")...)
	for name, sent := range map[string][]byte{
		"silence":      nil,
		"HTTP":         []byte("GET / HTTP/1.1\r\n\r\n"),
		"wrong peer":   append(goodGreeting(), ready("PUB")...),
		"half":         goodGreeting()[:20],
		"a huge frame": append(bytes.Clone(dealer), 2, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff),
		"over a limit": append(bytes.Clone(dealer), 2, 0, 0, 0, 0, 0, 0, 8, 0),
		"bad flags":    append(bytes.Clone(dealer), 0xf0, 0),
	} {
		nc, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = nc.Write(sent)
		_ = nc.SetReadDeadline(time.Now().Add(patience))
		for b := make([]byte, 256); err == nil; {
			_, err = nc.Read(b)
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: the connection is kept", name)
		}
		nc.Close()
	}
	c := mustDial(t, "unix", path, Dealer, Options{})
	if err := c.Send([]byte("x")); err != nil {
		t.Fatal(err)
	}
	wantStrings(t, recvStrings(t, c), "x")
}

// No more than maxConns are taken, and a place is free again when one goes.
func TestManyConnections(t *testing.T) {
	path := socketPath(t)
	bindEcho(t, "unix", path, Router, Options{})
	var all []*Conn
	for range maxConns {
		all = append(all, mustDial(t, "unix", path, Dealer, Options{}))
	}
	if c, err := Dial(testContext(t), "unix", path, Dealer, Options{}); err == nil {
		c.Close()
		t.Error("one too many was taken")
	}
	all[0].Close()
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		if c, err := Dial(testContext(t), "unix", path, Dealer, Options{}); err == nil {
			c.Close()
			return
		} else if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

func TestBindReplacesStaleSocket(t *testing.T) {
	path := socketPath(t)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	s := bindEcho(t, "unix", path, Router, Options{})
	s.Close()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Bind("unix", file, Router, Options{}, nil); err == nil {
		t.Error("a file was replaced")
	}
	for _, typ := range []Type{Dealer, Pub, "x"} {
		if _, err := Bind("unix", path, typ, Options{}, nil); err == nil {
			t.Errorf("could bind a %s", typ)
		}
	}
}

func publisher(t *testing.T, welcome func([]byte) [][]byte) (*Publisher, string) {
	t.Helper()
	path := socketPath(t)
	p, err := BindPublisher("unix", path, Options{}, welcome)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close(time.Second) })
	return p, path
}

func greeted(prefix []byte) [][]byte { return [][]byte{prefix, []byte("welcome")} }

func subscriberOf(t *testing.T, path string, prefixes ...string) *Conn {
	t.Helper()
	c := mustDial(t, "unix", path, Sub, Options{})
	for _, prefix := range prefixes {
		if err := c.Subscribe([]byte(prefix)); err != nil {
			t.Fatal(err)
		}
		wantStrings(t, recvStrings(t, c), prefix, "welcome")
	}
	return c
}

func TestPublish(t *testing.T) {
	p, path := publisher(t, greeted)
	a, all := subscriberOf(t, path, "a"), subscriberOf(t, path, "")
	p.Publish([]byte("b"), []byte("1"))
	p.Publish([]byte("ab"), bytes.Repeat([]byte("x"), 3*writeBytes))
	p.PublishNow([]byte("a"), []byte("2"))
	for _, want := range []string{"b", "ab", "a"} {
		if got := recvStrings(t, all); got[0] != want {
			t.Errorf("got %.20q, want %s", got, want)
		}
	}
	for _, want := range []string{"ab", "a"} {
		if got := recvStrings(t, a); got[0] != want {
			t.Errorf("got %.20q, want %s", got, want)
		}
	}
}

// zmq4 subscribes as it was before ZMTP 3.1: by a message.
func TestZMQ4Sub(t *testing.T) {
	p, path := publisher(t, greeted)
	sub := zmq4.NewSub(testContext(t))
	defer sub.Close()
	if err := sub.Dial("ipc://" + path); err != nil {
		t.Fatal(err)
	}
	if err := sub.SetOption(zmq4.OptionSubscribe, "a"); err != nil {
		t.Fatal(err)
	}
	if m, err := sub.Recv(); err != nil || string(m.Frames[1]) != "welcome" {
		t.Fatalf("got %q %v", m.Frames, err)
	}
	p.Publish([]byte("b"), []byte("x"))
	p.Publish([]byte("a"), []byte("x"))
	if m, err := sub.Recv(); err != nil || string(m.Frames[0]) != "a" {
		t.Errorf("got %q %v", m.Frames, err)
	}
}

// Publish waits for a reader that is slow, and drops nothing; what waits is bounded.
func TestPublishWaits(t *testing.T) {
	p, path := publisher(t, greeted)
	c := subscriberOf(t, path, "")
	const n, size = 3000, 10_000 // 30 MB
	published := make(chan struct{})
	go func() {
		defer close(published)
		for i := range n {
			p.Publish([]byte(fmt.Sprint(i)), make([]byte, size))
		}
	}()
	select {
	case <-published:
		t.Error("Publish doesn't wait")
	case <-time.After(200 * time.Millisecond):
	}
	p.mu.Lock()
	for s := range p.subs {
		if s.bytes > queueBytes+size+1000 {
			t.Errorf("%d bytes wait", s.bytes)
		}
	}
	p.mu.Unlock()
	for i := range n {
		if got := recvStrings(t, c); got[0] != fmt.Sprint(i) {
			t.Fatalf("got %s, want %d", got[0], i)
		}
	}
	<-published
}

// A subscriber that goes, is given up, or is there at the end, frees who waits for it.
func TestStuckSubscribers(t *testing.T) {
	for _, how := range []string{"goes", "dropped", "closed", "PublishNow"} {
		t.Run(how, func(t *testing.T) {
			p, path := publisher(t, greeted)
			c := subscriberOf(t, path, "")
			published := make(chan struct{})
			go func() {
				defer close(published)
				for range 1000 {
					p.Publish([]byte("x"), make([]byte, 10_000))
				}
			}()
			time.Sleep(100 * time.Millisecond)
			switch how {
			case "goes":
				c.Close()
			case "dropped":
				p.DropStuck(time.Hour) // not yet
				select {
				case <-published:
					t.Error("given up too early")
				case <-time.After(50 * time.Millisecond):
				}
				p.DropStuck(10 * time.Millisecond)
			case "closed":
				p.Close(50 * time.Millisecond)
			case "PublishNow":
				for range 1000 {
					p.PublishNow([]byte("x"), make([]byte, 10_000))
				}
			}
			select {
			case <-published:
			case <-time.After(patience):
				t.Fatal("Publish still waits")
			}
		})
	}
}

// What was published before Close comes.
func TestCloseLingers(t *testing.T) {
	p, path := publisher(t, greeted)
	c := subscriberOf(t, path, "")
	for range 90 {
		p.Publish([]byte("x"), make([]byte, 10_000))
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		p.Close(10 * time.Second)
	}()
	for range 90 {
		recvStrings(t, c)
	}
	<-closed
	if _, err := c.Recv(); err == nil {
		t.Error("the connection is still there")
	}
	p.Publish([]byte("x")) // nowhere, and at once
}

func TestUnsubscribe(t *testing.T) {
	p, path := publisher(t, greeted)
	c := subscriberOf(t, path, "a", "b")
	if err := c.writeCommand(cmdCancel, []byte("a")); err != nil {
		t.Fatal(err)
	}
	if err := c.Subscribe([]byte("c")); err != nil { // behind it
		t.Fatal(err)
	}
	wantStrings(t, recvStrings(t, c), "c", "welcome")
	p.Publish([]byte("a"))
	p.Publish([]byte("b"))
	wantStrings(t, recvStrings(t, c), "b")
}
