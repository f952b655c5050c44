package zmtp

import (
	"encoding/binary"
	"slices"
	"strings"
)

// Commands of spec 37 that mean something here. Others are ignored.
const (
	cmdReady     = "READY"
	cmdError     = "ERROR"
	cmdPing      = "PING"
	cmdPong      = "PONG"
	cmdSubscribe = "SUBSCRIBE"
	cmdCancel    = "CANCEL"
)

const (
	propSocketType = "Socket-Type"
	propIdentity   = "Identity"

	maxIdentity = 255
)

// A command's body is its name, preceded by one byte of length, and its data.
func appendCommand(b []byte, name string, data []byte) []byte {
	b = append(b, byte(len(name)))
	b = append(b, name...)
	return append(b, data...)
}

func parseCommand(body []byte) (name string, data []byte, err error) {
	if len(body) == 0 {
		return "", nil, protocolErrorf("malformed command: it is empty")
	}
	n := int(body[0])
	if n == 0 || n > len(body)-1 {
		return "", nil, protocolErrorf("malformed command: a name of %d bytes in %d", n, len(body)-1)
	}
	return string(body[1 : 1+n]), body[1+n:], nil
}

// A property is one entry of READY's metadata: the name preceded by one byte of
// length, the value by four. Names are compared without regard to case.
type property struct {
	name  string
	value []byte
}

func appendProperty(b []byte, name string, value []byte) []byte {
	b = append(b, byte(len(name)))
	b = append(b, name...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(value)))
	return append(b, value...)
}

func parseMetadata(b []byte) ([]property, error) {
	var props []property
	for len(b) > 0 {
		n := int(b[0])
		if n == 0 || len(b) < 1+n+4 {
			return nil, protocolErrorf("malformed metadata: a name of %d bytes in the last %d", n, len(b))
		}
		name := string(b[1 : 1+n])
		if strings.ContainsFunc(name, func(r rune) bool { return !isNameChar(r) }) {
			return nil, protocolErrorf("malformed metadata: a property is named %q", name)
		}
		b = b[1+n:]
		size := binary.BigEndian.Uint32(b)
		b = b[4:]
		if uint64(size) > uint64(len(b)) {
			return nil, protocolErrorf("malformed metadata: %s has %d bytes in the last %d", name, size, len(b))
		}
		if slices.ContainsFunc(props, func(p property) bool { return strings.EqualFold(p.name, name) }) {
			return nil, protocolErrorf("malformed metadata: %s comes twice", name)
		}
		props = append(props, property{name: name, value: b[:size:size]})
		b = b[size:]
	}
	return props, nil
}

func isNameChar(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-_.+", r)
}

func lookup(props []property, name string) (value []byte, ok bool) {
	for _, p := range props {
		if strings.EqualFold(p.name, name) {
			return p.value, true
		}
	}
	return nil, false
}

// errorReason is what a peer gives with ERROR: a text of up to 255 bytes.
func errorReason(data []byte) string {
	if len(data) == 0 || int(data[0]) != len(data)-1 {
		return "no reason that could be read"
	}
	return string(data[1:])
}
