package jupyter

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// fakeKernel is the kernel's side of the five sockets, in the test's hands: it
// sends what no real kernel would. It speaks ZMTP 3.0 from its text, and uses
// nothing of protocol/zmtp.
type fakeKernel struct {
	t      testing.TB
	ci     ConnectionInfo
	signer *Signer
	conns  map[Channel]*fakeConn
	count  atomic.Int64
}

type fakeConn struct {
	net.Conn
	r     *bufio.Reader
	mu    sync.Mutex // one message at a time
	ready string     // the client's READY
}

// fakeTypes are the socket types of a kernel.
var fakeTypes = map[Channel]string{Shell: "ROUTER", IOPub: "PUB", Stdin: "ROUTER", Control: "ROUTER", Heartbeat: "REP"}

// startFake binds the sockets and connects a client to them.
func startFake(t testing.TB, o ClientOptions) (*fakeKernel, *Client) {
	t.Helper()
	ci := newIPC(t)
	k := &fakeKernel{t: t, ci: ci, signer: mustSigner(t, "", ci.Key), conns: map[Channel]*fakeConn{}}
	type accepted struct {
		channel Channel
		conn    *fakeConn
		err     error
	}
	results := make(chan accepted, len(channels))
	for _, channel := range channels {
		l, err := net.Listen(ci.Address(channel))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			conn, err := acceptFake(l, fakeTypes[channel])
			results <- accepted{channel, conn, err}
		}()
	}
	c, err := Dial(testContext(t), ci, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	for range channels {
		a := <-results
		if a.err != nil {
			t.Fatalf("%s: %v", a.channel, a.err)
		}
		k.conns[a.channel] = a.conn
		t.Cleanup(func() { a.conn.Close() })
	}
	if got := k.recv(IOPub); len(got) != 1 || got[0] != "\x01" { // 3.0's form of SUBSCRIBE
		t.Fatalf("iopub got %q instead of a subscription", got)
	}
	return k, c
}

func acceptFake(l net.Listener, typ string) (*fakeConn, error) {
	nc, err := l.Accept()
	if err != nil {
		return nil, err
	}
	greeting := make([]byte, 64)
	copy(greeting, "\xff\x00\x00\x00\x00\x00\x00\x00\x00\x7f\x03\x00NULL")
	property := func(name, value string) string {
		return string(append([]byte{byte(len(name))}, name...)) + string(binary.BigEndian.AppendUint32(nil, uint32(len(value)))) + value
	}
	ready := "\x05READY" + property("Socket-Type", typ) + property("Identity", "")
	if _, err := nc.Write(append(greeting, append([]byte{4, byte(len(ready))}, ready...)...)); err != nil {
		return nil, err
	}
	c := &fakeConn{Conn: nc, r: bufio.NewReader(nc)}
	if _, err := io.ReadFull(c.r, greeting); err != nil {
		return nil, err
	}
	flags, body, err := c.frame()
	c.ready = body
	if err == nil && flags != 4 {
		err = fmt.Errorf("flags %x instead of a command", flags)
	}
	return c, err
}

// identity is what a ROUTER would know the client by.
func (c *fakeConn) identity() string {
	_, after, _ := strings.Cut(c.ready, "\x08Identity")
	if len(after) < 4 {
		return ""
	}
	length := binary.BigEndian.Uint32([]byte(after))
	return after[4:][:min(int(length), len(after)-4)]
}

func (c *fakeConn) frame() (flags byte, body string, err error) {
	if flags, err = c.r.ReadByte(); err != nil {
		return 0, "", err
	}
	length := make([]byte, 8)
	n := 7
	if flags&2 != 0 {
		n = 0
	}
	if _, err := io.ReadFull(c.r, length[n:]); err != nil {
		return 0, "", err
	}
	b := make([]byte, binary.BigEndian.Uint64(length))
	_, err = io.ReadFull(c.r, b)
	return flags &^ 2, string(b), err
}

// message receives one message, as text.
func (c *fakeConn) message() ([]string, error) {
	var parts []string
	for {
		flags, body, err := c.frame()
		if err != nil {
			return nil, err
		}
		if parts = append(parts, body); flags&1 == 0 {
			return parts, nil
		}
	}
}

func (k *fakeKernel) recv(channel Channel) []string {
	k.t.Helper()
	parts, err := k.conns[channel].message()
	if err != nil {
		k.t.Fatalf("the fake kernel's %s: %v", channel, err)
	}
	return parts
}

// request receives a client's request.
func (k *fakeKernel) request(channel Channel) (*Message, error) {
	parts, err := k.conns[channel].message()
	if err != nil {
		return nil, err
	}
	return ParseMessage(channel, newFrames(parts...), k.signer)
}

// send sends frames as they are, and gives up silently when the client has gone.
func (k *fakeKernel) send(channel Channel, parts ...string) error {
	var b []byte
	for i, p := range parts {
		flags := byte(2)
		if i < len(parts)-1 {
			flags |= 1
		}
		b = append(binary.BigEndian.AppendUint64(append(b, flags), uint64(len(p))), p...)
	}
	c := k.conns[channel]
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.Write(b)
	return err
}

// message makes the frames of a signed message whose text is content.
func (k *fakeKernel) message(parent, msgType, content string) []string {
	header := fmt.Sprintf(`{"msg_id":"fake_%d","msg_type":%q,"session":"fake"}`, k.count.Add(1), msgType)
	parts := []string{header, fmt.Sprintf(`{"msg_id":%q}`, parent), "{}", content}
	var signed [][]byte
	for _, p := range parts {
		signed = append(signed, []byte(p))
	}
	return append([]string{"topic", delimiter, string(k.signer.Sign(signed...))}, parts...)
}

// stream makes a stream message of so many bytes of text.
func (k *fakeKernel) stream(size int) []string {
	return k.message("p", "stream", `{"name":"stdout","text":"`+strings.Repeat("x", size)+`"}`)
}

// next is the client's next message.
func next(t testing.TB, c *Client) *Message {
	t.Helper()
	select {
	case m, ok := <-c.Messages():
		if !ok {
			t.Fatalf("the client ended: %v", c.Err())
		}
		return m
	case <-testContext(t).Done():
		t.Fatal("no message came")
		return nil
	}
}
