package zmtp

import (
	"fmt"
	"io"
	"slices"
)

// Type is a socket type.
type Type string

// The socket types that a client of kernels needs, and those that it talks to.
const (
	Dealer Type = "DEALER"
	Sub    Type = "SUB"
	Req    Type = "REQ"
	Router Type = "ROUTER"
	Pub    Type = "PUB"
	Rep    Type = "REP"
)

// peers are the socket types that each may talk to (spec 37, "Socket-Type Property").
func (t Type) peers() []string {
	switch t {
	case Dealer:
		return []string{"ROUTER", "DEALER", "REP"}
	case Sub:
		return []string{"PUB", "XPUB"}
	case Req:
		return []string{"ROUTER", "REP"}
	case Router:
		return []string{"DEALER", "REQ", "ROUTER"}
	case Pub:
		return []string{"SUB", "XSUB"}
	case Rep:
		return []string{"REQ", "DEALER"}
	}
	return nil
}

// binds tells whether a socket of this type is one that Bind or BindPublisher makes.
func (t Type) binds() bool { return t == Router || t == Pub || t == Rep }

// handshake exchanges greetings and READY commands. Each side could send both at
// once; ours waits for the peer's greeting, so that one who isn't fit is told
// nothing more.
func (c *Conn) handshake(identity []byte) error {
	_, err := c.nc.Write(greeting{major: 3, minor: 1, mechanism: mechanismNull}.append(nil))
	if err != nil {
		return fmt.Errorf("send greeting: %w", err)
	}
	g, err := readGreeting(c.d.r)
	if err != nil {
		return fmt.Errorf("receive greeting: %w", err)
	}
	if g.mechanism != mechanismNull {
		return protocolErrorf("the peer wants the mechanism %q, and there is only %s", g.mechanism, mechanismNull)
	}
	c.commands = g.major > 3 || g.minor >= 1

	metadata := appendProperty(nil, propSocketType, []byte(c.typ))
	if c.typ != Sub && !c.typ.binds() {
		metadata = appendProperty(metadata, propIdentity, identity)
	}
	if err := c.writeCommand(cmdReady, metadata); err != nil {
		return fmt.Errorf("send READY: %w", err)
	}
	if err := c.expectReady(); err != nil {
		return fmt.Errorf("receive READY: %w", err)
	}
	return nil
}

func readGreeting(r io.Reader) (greeting, error) {
	var b [greetingSize]byte
	if _, err := io.ReadFull(r, b[:greetingProbe]); err != nil {
		return greeting{}, inFrame(err)
	}
	if err := probeGreeting(b[:]); err != nil {
		return greeting{}, err
	}
	if _, err := io.ReadFull(r, b[greetingProbe:]); err != nil {
		return greeting{}, inFrame(err)
	}
	return parseGreeting(b[:])
}

func (c *Conn) expectReady() error {
	// Not next: a message here would be read as far as its limits allow.
	h, err := c.d.header()
	if err != nil {
		return inFrame(err)
	}
	if h.flags&flagCommand == 0 {
		return protocolErrorf("the peer sent a message before READY")
	}
	body, err := c.d.command(h)
	if err != nil {
		return err
	}
	name, data, err := parseCommand(body)
	if err != nil {
		return err
	}
	switch name {
	case cmdReady:
	case cmdError:
		return protocolErrorf("the peer refused the connection: %.255q", errorReason(data))
	default:
		return protocolErrorf("the peer sent the command %.32q, want READY", name)
	}
	props, err := parseMetadata(data)
	if err != nil {
		return err
	}
	c.peer, _ = lookup(props, propIdentity)
	if len(c.peer) > maxIdentity || len(c.peer) > 0 && c.peer[0] == 0 {
		return protocolErrorf("the peer's identity has %d bytes or begins with a zero", len(c.peer))
	}
	peer, ok := lookup(props, propSocketType)
	if !ok {
		return protocolErrorf("the peer's READY has no %s", propSocketType)
	}
	if !slices.Contains(c.typ.peers(), string(peer)) {
		return protocolErrorf("the peer is a %.32q socket, which a %s can't talk to", peer, c.typ)
	}
	return nil
}
