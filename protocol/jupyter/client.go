package jupyter

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/cellard/cellard/protocol/zmtp"
)

// ClientOptions are how Dial connects. The zero value works.
type ClientOptions struct {
	// Session names the client in the headers of its messages. Empty: 32 random
	// hexadecimal digits.
	Session string
	// Username goes into the headers too. Empty: "cellard".
	Username string
	// QueueBytes bounds the memory of the messages that were received and not yet
	// closed; those on the way, one a channel, come on top. What lies in files is
	// bounded with it, at 64 times as much and one open file for each 64 KiB. 0: 8 MiB.
	QueueBytes int64
	// MaxMessage is the largest message that is taken, in bytes: a larger one ends
	// the client. 0: zmtp's 2 GiB.
	MaxMessage int64
	// Inline is how many bytes of a message are held in memory; what is over goes to
	// a file that Spill makes. 0 and nil: zmtp's defaults.
	Inline int
	Spill  func() (*os.File, error)
	// HandshakeTimeout bounds connecting to a channel that is bound. 0: 30 s, for a
	// kernel that starts on a busy machine.
	HandshakeTimeout time.Duration
}

const (
	defaultQueue     = 8 << 20
	defaultHandshake = 30 * time.Second

	// overhead is what a message is counted for besides its frames: its own
	// structures, and a few words for each frame.
	overhead      = 1 << 10
	frameOverhead = 128
	// spillOverhead and spillShare count what lies in a file: a descriptor, and
	// disk.
	spillOverhead = 64 << 10
	spillShare    = 64

	// lastWords is how long the other channels may go on when one has ended: if the
	// kernel died, what it had sent is read to its end within milliseconds.
	lastWords = 2 * time.Second
)

// Client is the connection to one kernel process: its five channels. It never
// reconnects; when the kernel is gone, what is left to do is Close. Its methods can
// be called from several goroutines.
type Client struct {
	session, username string
	signer            *Signer
	conns             map[Channel]*zmtp.Conn
	lastID            atomic.Int64

	messages chan *Message
	room     *semaphore.Weighted // bytes of QueueBytes that are free
	queue    int64

	ctx    context.Context // of the readers: done when Close is called
	cancel context.CancelFunc
	wg     sync.WaitGroup // the readers, and finish

	mu      sync.Mutex
	err     error         // why it ended, the first reason
	ending  chan struct{} // closed when err is set
	reading atomic.Int32  // readers that go on
	ended   chan struct{} // closed by the last of them

	beat  sync.Mutex // one at a time
	beats chan []byte

	stats stats
}

// Dial connects to the five channels of a kernel that is starting or runs. It waits
// for sockets that are not bound yet until ctx is done: cancel it when the kernel
// process ends. ctx bounds Dial alone.
func Dial(ctx context.Context, ci ConnectionInfo, o ClientOptions) (*Client, error) {
	if err := ci.check(); err != nil {
		return nil, err
	}
	signer, err := NewSigner(ci.SignatureScheme, ci.Key)
	if err != nil {
		return nil, err
	}
	if o.Session == "" {
		o.Session = randomHex()
	}
	if o.Username == "" {
		o.Username = "cellard"
	}
	if o.QueueBytes <= 0 {
		o.QueueBytes = defaultQueue
	}
	if o.HandshakeTimeout <= 0 {
		o.HandshakeTimeout = defaultHandshake
	}
	c := &Client{
		session:  o.Session,
		username: o.Username,
		signer:   signer,
		conns:    make(map[Channel]*zmtp.Conn),
		messages: make(chan *Message, o.QueueBytes/overhead+1), // room decides, never the channel
		room:     semaphore.NewWeighted(o.QueueBytes),
		queue:    o.QueueBytes,
		ending:   make(chan struct{}),
		ended:    make(chan struct{}),
		beats:    make(chan []byte),
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	if err := c.connect(ctx, ci, o); err != nil {
		c.cancel()
		c.closeConns()
		return nil, err
	}
	c.reading.Store(int32(len(c.conns)))
	c.wg.Add(len(c.conns) + 1)
	for channel, conn := range c.conns {
		go c.read(channel, conn)
	}
	go c.finish()
	return c, nil
}

func randomHex() string {
	var b [16]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// connect makes the connections, iopub's first, so that its subscription has the
// most time to be heard.
func (c *Client) connect(ctx context.Context, ci ConnectionInfo, o ClientOptions) error {
	zo := zmtp.Options{
		HandshakeTimeout: o.HandshakeTimeout,
		MaxFrame:         o.MaxMessage,
		MaxMessage:       o.MaxMessage,
		Inline:           o.Inline,
		Spill:            o.Spill,
	}
	// A kernel sends its input_request on stdin to the identity that the
	// execute_request on shell came from.
	identity := []byte(randomHex())
	for _, channel := range []Channel{IOPub, Shell, Stdin, Control, Heartbeat} {
		zo, typ := zo, zmtp.Dealer
		switch channel {
		case IOPub:
			typ = zmtp.Sub
		case Heartbeat:
			typ = zmtp.Req
		case Shell, Stdin:
			zo.Identity = identity
		}
		network, address := ci.Address(channel)
		conn, err := dialWait(ctx, network, address, typ, zo)
		if err != nil {
			return fmt.Errorf("jupyter: the kernel's %s channel: %w", channel, err)
		}
		c.conns[channel] = conn
	}
	if err := c.conns[IOPub].Subscribe(nil); err != nil {
		return fmt.Errorf("jupyter: the kernel's iopub channel: %w", err)
	}
	return nil
}

// dialWait is zmtp.Dial that waits for an address at which no one listens yet.
func dialWait(ctx context.Context, network, address string, typ zmtp.Type, o zmtp.Options) (*zmtp.Conn, error) {
	for delay := time.Millisecond; ; delay = min(2*delay, 20*time.Millisecond) {
		conn, err := zmtp.Dial(ctx, network, address, typ, o)
		if err == nil || !errors.Is(err, fs.ErrNotExist) &&
			!errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, syscall.EAGAIN) {
			return conn, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("gave up waiting for it: %w (%w)", context.Cause(ctx), err)
		case <-time.After(delay):
		}
	}
}

// Messages is what the kernel sends on shell, iopub, stdin and control. The order
// within a channel is the kernel's; between channels there is none. The receiver
// closes each message: until then it counts against QueueBytes, and when that is
// used up, nothing more is read from the kernel.
//
// The channel is closed after the last message when one of the kernel's channels
// has ended, which Err explains, and by Close.
func (c *Client) Messages() <-chan *Message { return c.messages }

// Err tells why the client ended, net.ErrClosed if by Close, and nil while it goes on.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// NewMessage makes a message with a message id of its own. Sending it again under
// that id would be refused by a kernel as a replay.
func (c *Client) NewMessage(msgType string, content any) *Outgoing {
	return &Outgoing{
		Header: Header{
			MsgID:    fmt.Sprintf("%s_%d", c.session, c.lastID.Add(1)),
			Session:  c.session,
			Username: c.username,
			Date:     time.Now().UTC().Format(dateFormat),
			MsgType:  msgType,
			Version:  ProtocolVersion,
		},
		Content: content,
	}
}

// Send sends a message on shell, stdin or control. That it gives no error doesn't
// mean that a kernel has got it; after an error the channel is of no more use, and
// part of the message may have gone out. Make its id known to who reads Messages
// before: the answer can be faster than Send's return.
func (c *Client) Send(channel Channel, m *Outgoing) error {
	if channel != Shell && channel != Stdin && channel != Control {
		return fmt.Errorf("jupyter: a %s can't be sent on %s", m.Header.MsgType, channel)
	}
	frames, err := m.Encode(c.signer)
	if err != nil {
		return err
	}
	if err := c.conns[channel].Send(frames...); err != nil {
		return fmt.Errorf("jupyter: send %s on %s: %w", m.Header.MsgType, channel, err)
	}
	return nil
}

// Close closes the channels, releases the messages that nobody received, and waits
// for the client's goroutines. It can be called twice.
func (c *Client) Close() error {
	c.end(fmt.Errorf("jupyter: the client was closed: %w", net.ErrClosed))
	c.cancel()
	err := c.closeConns()
	for m := range c.messages {
		m.Close()
	}
	c.wg.Wait()
	return err
}

func (c *Client) closeConns() error {
	var errs []error
	for _, conn := range c.conns {
		errs = append(errs, conn.Close())
	}
	return errors.Join(errs...)
}
