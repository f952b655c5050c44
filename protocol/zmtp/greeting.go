package zmtp

import (
	"bytes"
	"fmt"
)

// A greeting is 64 bytes (spec 37, "Connection Greeting"):
//
//	signature  0xFF, 8 bytes of padding, 0x7F
//	version    major, minor
//	mechanism  20 bytes, padded with zeros
//	as-server  0 or 1
//	filler     31 bytes
//
// Nothing is said about padding and filler: libzmq puts a length that ZMTP 1
// reads into the padding.
const (
	greetingSize  = 64
	greetingProbe = 11 // up to and with the major version: enough to turn a stranger away

	offMajor     = 10
	offMinor     = 11
	offMechanism = 12
	offAsServer  = 32
	offFiller    = 33
)

const mechanismNull = "NULL"

type greeting struct {
	major, minor byte
	mechanism    string
	asServer     bool
}

func (g greeting) append(b []byte) []byte {
	var buf [greetingSize]byte
	buf[0] = 0xFF
	buf[9] = 0x7F
	buf[offMajor] = g.major
	buf[offMinor] = g.minor
	copy(buf[offMechanism:offAsServer], g.mechanism)
	if g.asServer {
		buf[offAsServer] = 1
	}
	return append(b, buf[:]...)
}

// probeGreeting checks the first greetingProbe bytes. A peer that doesn't speak
// ZMTP 3 may never send 64 of them.
func probeGreeting(b []byte) error {
	if b[0] != 0xFF || b[9]&0x01 == 0 {
		return protocolErrorf("the peer does not speak ZMTP: it began with % x", b[:10])
	}
	if b[9] != 0x7F {
		return protocolErrorf("malformed greeting: its signature ends with %#02x", b[9])
	}
	if b[offMajor] < 3 {
		return protocolErrorf("the peer speaks ZMTP %d, want 3.0 or newer", b[offMajor])
	}
	return nil
}

func parseGreeting(b []byte) (greeting, error) {
	if len(b) != greetingSize {
		return greeting{}, protocolErrorf("malformed greeting: %d bytes, want %d", len(b), greetingSize)
	}
	if err := probeGreeting(b); err != nil {
		return greeting{}, err
	}
	name, rest, _ := bytes.Cut(b[offMechanism:offAsServer], []byte{0})
	if len(name) == 0 || len(bytes.Trim(rest, "\x00")) > 0 {
		return greeting{}, protocolErrorf("malformed greeting: mechanism % x", b[offMechanism:offAsServer])
	}
	if b[offAsServer] > 1 {
		return greeting{}, protocolErrorf("malformed greeting: as-server is %d", b[offAsServer])
	}
	return greeting{
		major:     b[offMajor],
		minor:     b[offMinor],
		mechanism: string(name),
		asServer:  b[offAsServer] == 1,
	}, nil
}

// ProtocolError says that the peer sent what the protocol doesn't allow or what
// is over a limit. The connection is of no more use then.
type ProtocolError struct {
	Reason string // what was wrong; the peer's own words in it are quoted and cut
}

func (e *ProtocolError) Error() string { return "zmtp: " + e.Reason }

func protocolErrorf(format string, args ...any) error {
	return &ProtocolError{Reason: fmt.Sprintf(format, args...)}
}
