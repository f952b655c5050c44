package zmtp

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"
)

func TestZMQ4Router(t *testing.T) {
	router := zmq4.NewRouter(testContext(t))
	c := mustDial(t, "unix", listenZMQ4(t, router), Dealer, Options{Identity: []byte("me")})
	if c.commands {
		t.Error("zmq4 speaks ZMTP 3.0")
	}
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
	wantStrings(t, recvStrings(t, c), "a", "", "c")
	router.Close()
	for range 2 {
		if _, err := recv(c); err != io.EOF {
			t.Fatalf("after the peer's end: %v", err)
		}
	}
}

func TestZMQ4Pub(t *testing.T) {
	pub := zmq4.NewPub(testContext(t))
	c := mustDial(t, "unix", listenZMQ4(t, pub), Sub, Options{})
	if err := c.Subscribe([]byte("a")); err != nil {
		t.Fatal(err)
	}
	for begin := time.Now(); len(pub.(zmq4.Topics).Topics()) == 0; time.Sleep(time.Millisecond) {
		if time.Since(begin) > patience {
			t.Fatal("zmq4 did not see the subscription")
		}
	}
	for _, topic := range []string{"b", "a1", "a2"} {
		if err := pub.SendMulti(zmq4.NewMsgFrom([]byte(topic), []byte("x"))); err != nil {
			t.Fatal(err)
		}
	}
	wantStrings(t, recvStrings(t, c), "a1", "x")
	wantStrings(t, recvStrings(t, c), "a2", "x")
	if err := c.Send([]byte("x")); err == nil {
		t.Error("a SUB could send")
	}
}

func TestZMQ4Rep(t *testing.T) {
	rep := zmq4.NewRep(testContext(t))
	c := mustDial(t, "unix", listenZMQ4(t, rep), Req, Options{})
	for i := range 3 {
		text := strconv.Itoa(i)
		if err := c.Send([]byte("ping"), []byte(text)); err != nil {
			t.Fatal(err)
		}
		m, err := rep.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if err := rep.SendMulti(m); err != nil {
			t.Fatal(err)
		}
		wantStrings(t, recvStrings(t, c), "ping", text)
	}
}

// TestPyZMQ talks with libzmq: small and large messages each way, over both
// transports.
func TestPyZMQ(t *testing.T) {
	large := strings.Repeat("0123456789abcdef", 3<<20/16)
	for _, kind := range []string{"ROUTER", "REP"} {
		for _, address := range []string{"ipc://" + socketPath(t), "tcp://127.0.0.1:*"} {
			t.Run(kind+" "+address[:3], func(t *testing.T) {
				network, address, _ := startPeer(t, "echo", kind, address)
				typ := Dealer
				if kind == "REP" {
					typ = Req
				}
				c := mustDial(t, network, address, typ, Options{Identity: []byte("me")})
				if !c.commands {
					t.Error("libzmq speaks ZMTP 3.1")
				}
				for _, m := range [][]string{
					{"hello"}, {""}, {"a", "", "b"}, {large}, {"x", large, "y", large[:1<<20], large[:255], large[:256]},
				} {
					var frames [][]byte
					for _, f := range m {
						frames = append(frames, []byte(f))
					}
					if err := c.Send(frames...); err != nil {
						t.Fatal(err)
					}
					wantStrings(t, recvStrings(t, c), m...)
				}
			})
		}
	}
}

// TestPyZMQPub leaves a publisher waiting with much more than sockets hold.
func TestPyZMQPub(t *testing.T) {
	const count, size = 20_000, 1000
	network, address, lines := startPeer(t, "pub", "ipc://"+socketPath(t), strconv.Itoa(count), strconv.Itoa(size))
	c := mustDial(t, network, address, Sub, Options{})
	if err := c.Subscribe([]byte("a")); err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("x", size)
	for i := range count {
		wantStrings(t, recvStrings(t, c), fmt.Sprintf("a%d", i), text)
	}
	c.Close()
	if got := readLine(t, lines); got != "gone" {
		t.Errorf("the publisher says %q", got)
	}
}

// TestPyZMQHeartbeat: libzmq's heartbeats close a connection that doesn't answer
// PING within ten of them.
func TestPyZMQHeartbeat(t *testing.T) {
	network, address, _ := startPeer(t, "echo", "ROUTER", "ipc://"+socketPath(t), "20")
	c := mustDial(t, network, address, Dealer, Options{})
	pings := 0
	for pings < 30 {
		frames, command, err := c.d.next()
		if err != nil {
			t.Fatalf("after %d PINGs: %v", pings, err)
		}
		if frames != nil {
			t.Fatalf("got a message")
		}
		if _, err := c.command(command); err != nil {
			t.Fatal(err)
		}
		pings++
	}
	if err := c.Send([]byte("still there")); err != nil {
		t.Fatal(err)
	}
	wantStrings(t, recvStrings(t, c), "still there")
}

// TestSendWhole: messages from several goroutines arrive whole and unmixed.
func TestSendWhole(t *testing.T) {
	const senders, each = 8, 200
	network, address, _ := startPeer(t, "echo", "ROUTER", "ipc://"+socketPath(t))
	c := mustDial(t, network, address, Dealer, Options{})
	var wg sync.WaitGroup
	for i := range senders {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for j := range each {
				id := []byte(fmt.Sprintf("%d/%d", i, j))
				body := make([]byte, j*500) // joined, and from some 16 KiB on vectored
				if err := c.Send(id, body, id); err != nil {
					t.Error(err)
					return
				}
			}
		}()
	}
	next := make([]int, senders)
	for range senders * each {
		got := recvStrings(t, c)
		var i, j int
		if len(got) != 3 || got[0] != got[2] {
			t.Fatalf("a mixed message: %.100q", got)
		}
		fmt.Sscanf(got[0], "%d/%d", &i, &j)
		if j != next[i] || len(got[1]) != j*500 {
			t.Fatalf("%s with %d bytes came where %d/%d should", got[0], len(got[1]), i, next[i])
		}
		next[i]++
	}
	wg.Wait()
}

func TestNobodyListens(t *testing.T) {
	if _, err := Dial(testContext(t), "unix", socketPath(t), Dealer, Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if _, err := Dial(testContext(t), "tcp", "127.0.0.1:1", Dealer, Options{}); err == nil {
		t.Error("no error")
	}
}
