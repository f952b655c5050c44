package zmtp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// Options are how Dial connects. The zero value works.
type Options struct {
	// Identity is the routing id that a ROUTER knows the connection by, up to 255
	// bytes, the first of them not zero. Empty: the peer makes one up.
	Identity []byte
	// HandshakeTimeout bounds connecting and the handshake, besides the context's
	// deadline. 0: 10 s.
	HandshakeTimeout time.Duration
	// WriteTimeout bounds one Send. A peer that takes nothing for that long is
	// given up. 0: 10 s.
	WriteTimeout time.Duration
	// MaxFrame and MaxMessage are the largest frame and the largest message that
	// are received, in bytes. 0: 2 GiB.
	MaxFrame, MaxMessage int64
	// MaxFrames is how many frames a received message may have. 0: 1024.
	MaxFrames int
	// Inline is how many bytes of a received message are held in memory; a frame
	// that would go over it is spilled. 0: 1 MiB.
	Inline int
	// Spill makes the file that a message's large frames go to: open for reading
	// and writing, empty, already unlinked. nil: one in os.TempDir.
	Spill func() (*os.File, error)
}

const (
	defaultTimeout   = 10 * time.Second
	defaultMax       = 2 << 30
	defaultMaxFrames = 1024
	defaultInline    = 1 << 20

	// joinLimit is the size up to which a message is copied together, which is
	// cheaper than a writev(2) of many pieces.
	joinLimit = 16 << 10

	maxUnixPath = 107 // sockaddr_un on Linux, without its terminating zero
)

// Conn is a connection to one peer. Send, Subscribe and Close can be called from
// any goroutine, Recv from one at a time.
type Conn struct {
	nc       net.Conn
	typ      Type
	peer     []byte // the peer's identity; empty: it gave none
	commands bool   // the peer speaks ZMTP 3.1: it takes SUBSCRIBE as a command
	d        decoder
	recvErr  error // why receiving ended; the receiver's alone

	timeout time.Duration
	mu      sync.Mutex // guards what follows, and writes
	sendErr error      // why sending ended: part of a message may have gone out
	buf     []byte
}

// Dial connects to a peer at a path (network "unix") or a host:port ("tcp") and
// shakes hands. It does not wait for the peer to appear: an address where no one
// listens is an error at once. ctx bounds Dial alone. A peer that doesn't keep to
// the protocol or isn't a socket that t can talk to is a *ProtocolError.
func Dial(ctx context.Context, network, address string, t Type, o Options) (*Conn, error) {
	c, err := dial(ctx, network, address, t, o)
	if err != nil {
		return nil, fmt.Errorf("zmtp: connect %s to %s %s: %w", t, network, address, err)
	}
	return c, nil
}

func dial(ctx context.Context, network, address string, t Type, o Options) (*Conn, error) {
	switch {
	case network != "unix" && network != "tcp":
		return nil, errors.New(`unknown network, want "unix" or "tcp"`)
	case network == "unix" && len(address) > maxUnixPath:
		return nil, fmt.Errorf("the path has %d bytes and a socket's can have %d: use a shorter directory", len(address), maxUnixPath)
	case t.peers() == nil || t.binds():
		return nil, errors.New("unknown socket type, want Dealer, Sub or Req")
	case len(o.Identity) > maxIdentity || len(o.Identity) > 0 && o.Identity[0] == 0:
		return nil, fmt.Errorf("an identity has up to %d bytes and doesn't begin with a zero", maxIdentity)
	}
	timeout := or(o.HandshakeTimeout, defaultTimeout)
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var dialer net.Dialer
	nc, err := dialer.DialContext(bounded, network, address)
	if err != nil {
		return nil, err
	}
	c := newConn(nc, t, o)
	// Not a deadline on the socket: that would have to be lifted afterwards, and
	// would not see ctx cancelled.
	stop := context.AfterFunc(bounded, func() { nc.Close() })
	err = c.handshake(o.Identity)
	if !stop() {
		err = fmt.Errorf("the peer did not finish the handshake within %v: %w", timeout, bounded.Err())
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
	}
	if err != nil {
		nc.Close()
		return nil, err
	}
	return c, nil
}

func newConn(nc net.Conn, t Type, o Options) *Conn {
	c := &Conn{
		nc:      nc,
		typ:     t,
		timeout: or(o.WriteTimeout, defaultTimeout),
		d: decoder{
			r:          bufio.NewReaderSize(nc, readBuffer),
			maxFrame:   or(o.MaxFrame, defaultMax),
			maxMessage: or(o.MaxMessage, defaultMax),
			maxFrames:  or(o.MaxFrames, defaultMaxFrames),
			inline:     int64(or(o.Inline, defaultInline)),
			spill:      o.Spill,
		},
	}
	if c.d.spill == nil {
		c.d.spill = tempFile
	}
	return c
}

func or[T int | int64 | time.Duration](v, otherwise T) T {
	if v > 0 {
		return v
	}
	return otherwise
}

// Subscribe asks the publisher for the messages whose first frame begins with
// prefix; an empty one asks for all. That Subscribe returned doesn't mean that
// the publisher has heard it: what it publishes meanwhile is not sent.
func (c *Conn) Subscribe(prefix []byte) error {
	if c.typ != Sub {
		return fmt.Errorf("zmtp: a %s can't subscribe", c.typ)
	}
	var err error
	if c.commands {
		err = c.writeCommand(cmdSubscribe, prefix)
	} else {
		// Before 3.1 a subscription was a message.
		err = c.write([][]byte{append([]byte{1}, prefix...)}, 0)
	}
	if err != nil {
		return fmt.Errorf("zmtp: subscribe: %w", err)
	}
	return nil
}

// Send sends one message. It returns once the operating system has taken all of
// it, which doesn't mean that the peer has. After an error the connection is of no
// more use, since part of the message may be on its way: every later Send gives
// the same error. A Req puts the empty frame of its envelope before the message.
func (c *Conn) Send(frames ...[]byte) error {
	switch {
	case c.typ == Sub:
		return errors.New("zmtp: a SUB can't send")
	case len(frames) == 0:
		return errors.New("zmtp: a message has at least one frame")
	case c.typ == Req:
		frames = append([][]byte{nil}, frames...)
	}
	if err := c.write(frames, 0); err != nil {
		return fmt.Errorf("zmtp: send: %w", err)
	}
	return nil
}

func (c *Conn) writeCommand(name string, data []byte) error {
	return c.write([][]byte{appendCommand(nil, name, data)}, flagCommand)
}

// write sends frames with one system call, or a few if they are large.
func (c *Conn) write(frames [][]byte, flags byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sendErr != nil {
		return c.sendErr
	}
	c.sendErr = c.nc.SetWriteDeadline(time.Now().Add(c.timeout))
	if c.sendErr != nil {
		return c.sendErr
	}
	total := len(frames) * maxHeader
	for _, f := range frames {
		total += len(f)
	}
	b := c.buf[:0]
	if total <= joinLimit {
		for i, f := range frames {
			b = append(appendHeader(b, frameFlags(flags, i, frames), len(f)), f...)
		}
		_, c.sendErr = c.nc.Write(b)
	} else {
		pieces := make(net.Buffers, 0, 2*len(frames))
		b = append(b, make([]byte, len(frames)*maxHeader)...)[:0] // never moves below
		for i, f := range frames {
			n := len(b)
			b = appendHeader(b, frameFlags(flags, i, frames), len(f))
			pieces = append(pieces, b[n:])
			if len(f) > 0 {
				pieces = append(pieces, f)
			}
		}
		_, c.sendErr = pieces.WriteTo(c.nc)
	}
	if cap(b) <= joinLimit {
		c.buf = b
	}
	return c.sendErr
}

func frameFlags(flags byte, i int, frames [][]byte) byte {
	if i < len(frames)-1 {
		flags |= flagMore
	}
	return flags
}

// Recv waits for the next message. The caller closes its frames.
//
// At the peer's orderly end it gives io.EOF; in the middle of something it wraps
// io.ErrUnexpectedEOF, after Close net.ErrClosed. A *ProtocolError says that the
// peer sent something malformed or over a limit. All of these are for good: every
// later Recv gives the same. A *SpillError alone is not, it costs one message.
//
// PING is answered within Recv; ERROR ends the connection; other commands are
// skipped. A Req takes the empty frame of its envelope off.
func (c *Conn) Recv() ([]*Frame, error) {
	if c.recvErr != nil {
		return nil, c.recvErr
	}
	frames, err := c.recv()
	var lost *SpillError
	if err == nil || errors.As(err, &lost) {
		return frames, err
	}
	var malformed *ProtocolError
	if err != io.EOF && !errors.As(err, &malformed) {
		err = fmt.Errorf("zmtp: receive: %w", err)
	}
	c.recvErr = err
	return nil, err
}

func (c *Conn) recv() ([]*Frame, error) {
	for {
		frames, command, err := c.d.next()
		if err != nil {
			return nil, err
		}
		if frames == nil {
			if frames, err = c.command(command); err != nil {
				return nil, err
			}
			if frames == nil {
				continue
			}
		}
		if c.typ == Req {
			if len(frames) < 2 || frames[0].Len() > 0 {
				closeFrames(frames)
				return nil, protocolErrorf("malformed reply: it doesn't begin with an empty frame")
			}
			frames = frames[1:]
		}
		return frames, nil
	}
}

// command acts on a command that came between messages. A publisher gets
// subscriptions as messages, as they were before ZMTP 3.1.
func (c *Conn) command(body []byte) ([]*Frame, error) {
	name, data, err := parseCommand(body)
	if err != nil {
		return nil, err
	}
	switch name {
	case cmdPing:
		// Two bytes of TTL, then up to 16 of context that PONG returns.
		if len(data) < 2 || len(data) > 2+16 {
			return nil, protocolErrorf("malformed PING: %d bytes", len(data))
		}
		if err := c.writeCommand(cmdPong, data[2:]); err != nil {
			return nil, fmt.Errorf("answer PING: %w", err)
		}
	case cmdError:
		return nil, protocolErrorf("the peer ended the connection: %.255q", errorReason(data))
	case cmdSubscribe, cmdCancel:
		if c.typ == Pub {
			subscribe := byte(0)
			if name == cmdSubscribe {
				subscribe = 1
			}
			return []*Frame{NewFrame(append([]byte{subscribe}, data...))}, nil
		}
	}
	return nil, nil
}

// Close closes the connection. Recv and Send that are under way end with
// net.ErrClosed. It can be called twice.
func (c *Conn) Close() error {
	if err := c.nc.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("zmtp: close: %w", err)
	}
	return nil
}
