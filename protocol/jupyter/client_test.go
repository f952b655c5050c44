package jupyter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cellard/cellard/protocol/zmtp"
)

// TestDropped: what a kernel may not send is counted, and costs itself alone.
func TestDropped(t *testing.T) {
	k, c := startFake(t, ClientOptions{})
	good := k.message("p", "status", `{"execution_state":"busy"}`)
	forged := k.message("p", "status", `{"execution_state":"idle"}`)
	forged[len(forged)-1] += " "
	unsigned := k.message("p", "status", `{}`)
	unsigned[2] = ""
	for _, parts := range [][]string{
		good, forged, unsigned, good, // a replay
		{"not a message"}, {""}, {delimiter, ""},
		k.message("p", "", `{}`), // no type
		append([]string{strings.Repeat("i", MaxHeader+1)}, good...),
		k.message("p", "stream", `no JSON, which shows only when it is read`),
		k.message("p", "last", `{}`),
	} {
		if err := k.send(IOPub, parts...); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"status", "stream", "last"} {
		m := next(t, c)
		if m.Header.MsgType != want || m.Channel != IOPub || m.Parent.MsgID != "p" {
			t.Errorf("%+v, want %s", m, want)
		}
		m.Close()
	}
	if got, want := c.Stats(), (Stats{BadSignatures: 2, Replays: 1, Malformed: 5}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if c.Err() != nil {
		t.Error(c.Err())
	}
}

// TestChannels: requests arrive where they should, shell and stdin under one
// identity, and answers come back with the channel they came on.
func TestChannels(t *testing.T) {
	k, c := startFake(t, ClientOptions{Session: "s", Username: "u"})
	shell, stdin := k.conns[Shell].identity(), k.conns[Stdin].identity()
	if shell == "" || shell != stdin {
		t.Errorf("identities %q and %q", shell, stdin)
	}
	seen := map[string]bool{}
	for _, channel := range []Channel{Shell, Stdin, Control} {
		out := c.NewMessage("some_request", map[string]string{"on": string(channel)})
		if err := c.Send(channel, out); err != nil {
			t.Fatal(err)
		}
		m, err := k.request(channel)
		if err != nil {
			t.Fatal(err)
		}
		if m.Header != out.Header || m.Header.Session != "s" || m.Header.Username != "u" || seen[m.Header.MsgID] {
			t.Errorf("%s got %+v", channel, m.Header)
		}
		if _, err := time.Parse(time.RFC3339Nano, m.Header.Date); err != nil {
			t.Error(err)
		}
		seen[m.Header.MsgID] = true
		if err := k.send(channel, k.message(m.Header.MsgID, "some_reply", "{}")[1:]...); err != nil {
			t.Fatal(err)
		}
		reply := next(t, c)
		if reply.Channel != channel || reply.Parent.MsgID != m.Header.MsgID {
			t.Errorf("the reply to %s on %s: %+v", m.Header.MsgID, channel, reply)
		}
		reply.Close()
	}
	for _, channel := range []Channel{IOPub, Heartbeat, "other"} {
		if err := c.Send(channel, c.NewMessage("x", nil)); err == nil {
			t.Errorf("sent on %s", channel)
		}
	}
}

// TestChannelEnds: when any channel ends, what came before on all of them is
// delivered, then Messages is closed, and Err names the channel.
func TestChannelEnds(t *testing.T) {
	for _, channel := range channels {
		t.Run(string(channel), func(t *testing.T) {
			t.Parallel()
			k, c := startFake(t, ClientOptions{})
			for i := range 100 {
				for _, ch := range []Channel{IOPub, Shell} {
					if err := k.send(ch, k.message(fmt.Sprint(i), "x", "{}")...); err != nil {
						t.Fatal(err)
					}
				}
			}
			if channel != Heartbeat { // its reader then waits for somebody who asks
				if err := k.send(Heartbeat, "", "nobody asked"); err != nil {
					t.Fatal(err)
				}
			}
			k.conns[channel].Close()
			counts := map[Channel]int{}
			for m := range c.Messages() {
				if m.Parent.MsgID != fmt.Sprint(counts[m.Channel]) {
					t.Fatalf("%s: message %s after %d", m.Channel, m.Parent.MsgID, counts[m.Channel])
				}
				counts[m.Channel]++
				m.Close()
			}
			if counts[IOPub] != 100 || counts[Shell] != 100 {
				t.Errorf("delivered: %v", counts)
			}
			if err := c.Err(); !errors.Is(err, io.EOF) || !strings.Contains(err.Error(), string(channel)) {
				t.Errorf("the reason: %v", err)
			}
			// The others were closed.
			for _, ch := range []Channel{IOPub, Shell} {
				if _, _, err := k.conns[ch].frame(); err == nil {
					t.Errorf("%s goes on", ch)
				}
			}
			if err := c.Beat(testContext(t)); err == nil {
				t.Error("the heart beats")
			}
			c.Close()
			if err := c.Err(); !errors.Is(err, io.EOF) {
				t.Errorf("the reason after Close: %v", err)
			}
		})
	}
}

// TestBrokenFraming ends the client: the stream can't be trusted any more.
func TestBrokenFraming(t *testing.T) {
	k, c := startFake(t, ClientOptions{MaxMessage: 1 << 20})
	if _, err := k.conns[IOPub].Write([]byte("\x02\x7f\xff\xff\xff\xff\xff\xff\xff")); err != nil {
		t.Fatal(err)
	}
	for m := range c.Messages() {
		m.Close()
	}
	var broken *zmtp.ProtocolError
	if err := c.Err(); !errors.As(err, &broken) || !strings.Contains(err.Error(), "iopub") {
		t.Errorf("the reason: %v", err)
	}
}

// TestClose: with the queue full, readers waiting for room and nobody receiving,
// Close returns, and leaves nothing (goleak looks after it).
func TestClose(t *testing.T) {
	k, c := startFake(t, ClientOptions{QueueBytes: 200_000})
	flood := make(chan struct{})
	go func() {
		defer close(flood)
		for k.send(IOPub, k.stream(50_000)...) == nil {
		}
	}()
	held := next(t, c)
	if err := k.send(Heartbeat, "", "nobody asked"); err != nil {
		t.Fatal(err)
	}
	for len(c.Messages()) < 2 { // testContext's end would close the socket
		runtime.Gosched()
	}
	for range 2 {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	<-flood
	if _, ok := <-c.Messages(); ok {
		t.Error("a message after Close")
	}
	if !errors.Is(c.Err(), net.ErrClosed) {
		t.Error(c.Err())
	}
	if err := c.Send(Shell, c.NewMessage("x", nil)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("sent after Close: %v", err)
	}
	if err := c.Beat(testContext(t)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a beat after Close: %v", err)
	}
	held.Close()
}

// TestReady loses the first replies' iopub messages, as a PUB socket does that
// hasn't heard the subscription.
func TestReady(t *testing.T) {
	k, c := startFake(t, ClientOptions{})
	go func() {
		for i := 0; ; i++ {
			m, err := k.request(Shell)
			if err != nil { // the test is over
				return
			}
			if m.Header.MsgType != "kernel_info_request" {
				t.Errorf("request %+v", m.Header)
			}
			k.send(Shell, k.message("another", "kernel_info_reply", `{"status":"ok","implementation":"wrong"}`)...)
			k.send(Shell, k.message(m.Header.MsgID, "kernel_info_reply", `{"implementation":"fake","implementation_version":null,"language_info":{"name":"f"}}`)...)
			if i >= 3 {
				k.send(IOPub, k.message(m.Header.MsgID, "status", `{"execution_state":"busy"}`)...)
			}
		}
	}()
	info, err := c.Ready(testContext(t))
	if err != nil || info.Implementation != "fake" || info.LanguageInfo.Name != "f" {
		t.Errorf("%+v, %v", info, err)
	}
}

func TestReadyFails(t *testing.T) {
	soon := func() context.Context {
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}
	// answer answers the first request.
	answer := func(k *fakeKernel, content string) {
		if m, err := k.request(Shell); err == nil {
			k.send(Shell, k.message(m.Header.MsgID, "kernel_info_reply", content)...)
		}
	}
	k, c := startFake(t, ClientOptions{})
	if _, err := c.Ready(soon()); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no answer") {
		t.Errorf("a silent kernel: %v", err)
	}
	go k.conns[IOPub].Close()
	if _, err := c.Ready(testContext(t)); !errors.Is(err, io.EOF) {
		t.Errorf("a dying kernel: %v", err)
	}

	k, c = startFake(t, ClientOptions{})
	go answer(k, `{"status":"ok"}`)
	if _, err := c.Ready(soon()); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "iopub") {
		t.Errorf("a kernel without iopub: %v", err)
	}

	k, c = startFake(t, ClientOptions{})
	go answer(k, `{"status":"error","ename":"Sorry","evalue":"no"}`)
	if _, err := c.Ready(testContext(t)); err == nil || !strings.Contains(err.Error(), "Sorry") {
		t.Errorf("an error: %v", err)
	}

	k, c = startFake(t, ClientOptions{})
	go answer(k, `{"status":`)
	if _, err := c.Ready(testContext(t)); err == nil || !strings.Contains(err.Error(), "kernel_info_reply") {
		t.Errorf("no JSON: %v", err)
	}
}

// TestBeat: an answer that came too late isn't taken for the next one's.
func TestBeat(t *testing.T) {
	k, c := startFake(t, ClientOptions{})
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := c.Beat(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("no answer: %v", err)
	}
	first := k.recv(Heartbeat)
	beat := make(chan error)
	go func() { beat <- c.Beat(testContext(t)) }()
	second := k.recv(Heartbeat)
	for _, parts := range [][]string{first, {"", "something", "else"}} {
		if err := k.send(Heartbeat, parts...); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case err := <-beat:
		t.Fatalf("a late answer counted: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	if err := k.send(Heartbeat, second...); err != nil {
		t.Fatal(err)
	}
	if err := <-beat; err != nil {
		t.Error(err)
	}
}

// TestDialWaits for sockets that are bound later, and stops when told.
func TestDialWaits(t *testing.T) {
	ci := newIPC(t)
	ctx, cancel := context.WithCancelCause(context.Background())
	dead := errors.New("the kernel exited")
	time.AfterFunc(50*time.Millisecond, func() { cancel(dead) })
	_, err := Dial(ctx, ci, ClientOptions{})
	if !errors.Is(err, dead) || !strings.Contains(err.Error(), "iopub") {
		t.Errorf("nobody there: %v", err)
	}
	// What isn't a kernel is an error at once.
	l, err := net.Listen(ci.Address(IOPub))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		if conn, err := l.Accept(); err == nil {
			fmt.Fprint(conn, "HTTP/1.1 400 Bad Request\r\n\r\n")
			io.Copy(io.Discard, conn)
			conn.Close()
		}
	}()
	var broken *zmtp.ProtocolError
	if _, err := Dial(testContext(t), ci, ClientOptions{}); !errors.As(err, &broken) {
		t.Errorf("a web server: %v", err)
	}
}
