package fakekernel

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
)

const (
	more    = 1
	long    = 2
	command = 4
)

// A socket is a bound ZeroMQ socket.
type socket struct {
	start   string // how the kernel starts: see the Start values
	typ     string
	handle  func(*conn, [][]byte) // gets each message, in the connection's goroutine
	greeted func(*conn)           // if set, is told of each connection

	mu    sync.Mutex
	conns map[*conn]bool
	count int
}

type conn struct {
	nc       net.Conn
	r        *bufio.Reader
	identity string

	mu       sync.Mutex // for whole messages
	prefixes []string   // the subscriptions; the socket's mu
}

func (s *socket) listen(network, address string) error {
	l, err := net.Listen(network, address)
	if err != nil {
		return err
	}
	s.conns = make(map[*conn]bool)
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			go s.serve(&conn{nc: nc, r: bufio.NewReader(nc)})
		}
	}()
	return nil
}

func (s *socket) serve(c *conn) {
	defer c.nc.Close()
	if !handshakes(s.start) {
		if s.start == StartGarbageGreeting {
			c.nc.Write(bytes.Repeat([]byte("\x00\xfeSSH-2.0-nonsense\r\n"), 10))
		}
		io.Copy(io.Discard, c.nc)
		return
	}
	if c.handshake(s.typ) != nil {
		return
	}
	s.mu.Lock()
	s.count++
	if c.identity == "" {
		c.identity = fmt.Sprintf("\x00%d", s.count)
	}
	s.conns[c] = true
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
	}()
	if s.greeted != nil {
		s.greeted(c)
	}
	for {
		frames, err := c.read()
		if err != nil {
			return
		}
		if frames != nil {
			s.handle(c, frames)
		}
	}
}

// byIdentity finds the connection of a client, or nil.
func (s *socket) byIdentity(identity string) *conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		if c.identity == identity {
			return c
		}
	}
	return nil
}

// subscribed lists the connections that want a topic.
func (s *socket) subscribed(topic []byte) []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*conn
	for c := range s.conns {
		for _, p := range c.prefixes {
			if bytes.HasPrefix(topic, []byte(p)) {
				list = append(list, c)
				break
			}
		}
	}
	return list
}

func (s *socket) subscribe(c *conn, prefix string) {
	s.mu.Lock()
	c.prefixes = append(c.prefixes, prefix)
	s.mu.Unlock()
}

func (s *socket) closeConns() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.nc.Close()
	}
}

func (c *conn) handshake(typ string) error {
	greeting := make([]byte, 64)
	greeting[0], greeting[9] = 0xFF, 0x7F
	greeting[10], greeting[11] = 3, 1
	copy(greeting[12:], "NULL")
	if _, err := c.nc.Write(greeting); err != nil {
		return err
	}
	if _, err := io.ReadFull(c.r, greeting); err != nil {
		return err
	}
	if greeting[0] != 0xFF || greeting[9] != 0x7F || greeting[10] != 3 || string(greeting[12:17]) != "NULL\x00" {
		return fmt.Errorf("greeting % x", greeting)
	}
	ready := "\x05READY\x0bSocket-Type" + string(binary.BigEndian.AppendUint32(nil, uint32(len(typ)))) + typ
	if err := c.write(header(command, uint64(len(ready))), []byte(ready)); err != nil {
		return err
	}
	flags, body, err := c.readFrame()
	if err != nil {
		return err
	}
	if flags&command == 0 || !bytes.HasPrefix(body, []byte("\x05READY")) {
		return fmt.Errorf("not READY: %q", body)
	}
	c.identity = string(property(body[6:], "Identity"))
	return nil
}

// property finds a value in READY's metadata.
func property(b []byte, name string) []byte {
	for len(b) > 0 {
		n := int(b[0])
		if len(b) < 1+n+4 {
			return nil
		}
		key := string(b[1 : 1+n])
		b = b[1+n:]
		size := binary.BigEndian.Uint32(b)
		b = b[4:]
		if uint64(size) > uint64(len(b)) {
			return nil
		}
		if key == name {
			return b[:size]
		}
		b = b[size:]
	}
	return nil
}

// read returns a message, or nil after a command; SUBSCRIBE comes as the message
// of old.
func (c *conn) read() ([][]byte, error) {
	var frames [][]byte
	for {
		flags, body, err := c.readFrame()
		if err != nil {
			return nil, err
		}
		if flags&command != 0 {
			switch {
			case bytes.HasPrefix(body, []byte("\x09SUBSCRIBE")):
				return [][]byte{append([]byte{1}, body[10:]...)}, nil
			case bytes.HasPrefix(body, []byte("\x04PING")) && len(body) >= 7:
				pong := "\x04PONG" + string(body[7:])
				return nil, c.write(header(command, uint64(len(pong))), []byte(pong))
			}
			return nil, nil
		}
		frames = append(frames, body)
		if flags&more == 0 {
			return frames, nil
		}
	}
}

func (c *conn) readFrame() (flags byte, body []byte, err error) {
	if flags, err = c.r.ReadByte(); err != nil {
		return 0, nil, err
	}
	size := make([]byte, 8)
	if flags&long != 0 {
		_, err = io.ReadFull(c.r, size)
	} else {
		_, err = io.ReadFull(c.r, size[7:])
	}
	if err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint64(size)
	if n > 1<<30 { // the agent is no stranger, a mistake in it is possible
		return 0, nil, fmt.Errorf("a frame of %d bytes", n)
	}
	body = make([]byte, n)
	_, err = io.ReadFull(c.r, body)
	return flags, body, err
}

// header is that of a frame of any size, also of one that doesn't exist.
func header(flags byte, size uint64) []byte {
	if size <= 255 {
		return []byte{flags, byte(size)}
	}
	return binary.BigEndian.AppendUint64([]byte{flags | long}, size)
}

// marshal puts a message on the wire.
func marshal(frames [][]byte) []byte {
	var b []byte
	for i, f := range frames {
		flags := byte(more)
		if i == len(frames)-1 {
			flags = 0
		}
		b = append(append(b, header(flags, uint64(len(f)))...), f...)
	}
	return b
}

// write writes raw bytes that no other message gets between.
func (c *conn) write(pieces ...[]byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range pieces {
		if _, err := c.nc.Write(p); err != nil {
			return err
		}
	}
	return nil
}
