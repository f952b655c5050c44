package jupyter

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/cellard/cellard/protocol/zmtp"
)

// Channel is one of a kernel's five sockets.
type Channel string

// The channels.
const (
	Shell     Channel = "shell"
	IOPub     Channel = "iopub"
	Stdin     Channel = "stdin"
	Control   Channel = "control"
	Heartbeat Channel = "heartbeat"
)

// MaxHeader is the largest header, parent header, metadata or identity frame that
// is taken, in bytes. Real ones have some hundred.
const MaxHeader = 1 << 20

// ProtocolVersion is the version of the messaging protocol that messages of this
// package say they follow. No behaviour of a kernel is taken from the version that
// it declares: ipykernel 7 says 5.3 and does what 5.4 and 5.5 say.
const ProtocolVersion = "5.3"

// delimiter ends the identities of a message on the wire.
const delimiter = "<IDS|MSG>"

// ErrMalformed is wrapped by the errors of messages that don't keep to the wire
// protocol.
var ErrMalformed = errors.New("jupyter: malformed message")

// Header is a message's header, or that of the request it answers.
type Header struct {
	MsgID    string `json:"msg_id"`
	Session  string `json:"session"`
	Username string `json:"username"`
	Date     string `json:"date"` // ISO 8601
	MsgType  string `json:"msg_type"`
	Version  string `json:"version"`
}

// Message is a message that a kernel sent.
type Message struct {
	Channel Channel
	// Identities are the routing prefix; on iopub the topic.
	Identities [][]byte
	Header     Header
	// Parent is the header of the request that caused the message. It is zero
	// where there is none: a kernel's starting status, iopub_welcome.
	Parent   Header
	Metadata json.RawMessage
	Content  Value
	// Buffers are the raw data after the content. They are not signed.
	Buffers []*zmtp.Frame

	frames  []*zmtp.Frame
	release func()
}

// Close gives back what the message holds: its spilled frames and its room in the
// client's queue. Content and Buffers are of no use after it. It can be called
// twice, but not at the same time.
func (m *Message) Close() {
	for _, f := range m.frames {
		f.Close()
	}
	m.frames = nil
	if m.release != nil {
		m.release()
		m.release = nil
	}
}

// ParseMessage takes a message from its frames as they were received: identities,
// the delimiter, the signature, header, parent header, metadata, content, buffers
// (the spec's section "The Wire Protocol"). It checks the length, then the
// signature, then whether that came before, and only then reads JSON. The content
// is not looked at. The message owns the frames if there is no error.
func ParseMessage(channel Channel, frames []*zmtp.Frame, signer *Signer) (*Message, error) {
	m := &Message{Channel: channel, frames: frames}
	i := 0
	for ; ; i++ {
		if i == len(frames) {
			return nil, fmt.Errorf("%w: no %s among %d frames", ErrMalformed, delimiter, len(frames))
		}
		b, err := headerBytes(frames[i])
		if err != nil {
			return nil, err
		}
		if string(b) == delimiter {
			break
		}
		m.Identities = append(m.Identities, b)
	}
	rest := frames[i+1:]
	if len(rest) < 5 {
		return nil, fmt.Errorf("%w: %d frames after the delimiter, there must be 5 or more", ErrMalformed, len(rest))
	}
	signature, err := headerBytes(rest[0])
	if err != nil {
		return nil, err
	}
	var parts [3][]byte // header, parent header, metadata
	for i := range parts {
		if parts[i], err = headerBytes(rest[1+i]); err != nil {
			return nil, err
		}
	}
	if err := signer.Verify(signature, rest[1:5]); err != nil {
		return nil, err
	}
	if m.Header, err = parseHeader(parts[0]); err != nil {
		return nil, fmt.Errorf("%w: header: %w", ErrMalformed, err)
	}
	if m.Header.MsgType == "" {
		return nil, fmt.Errorf("%w: header without msg_type", ErrMalformed)
	}
	if m.Parent, err = parseHeader(parts[1]); err != nil {
		return nil, fmt.Errorf("%w: parent header: %w", ErrMalformed, err)
	}
	if m.Metadata, err = NewValue(parts[2]).raw(MaxHeader); err != nil {
		return nil, fmt.Errorf("%w: metadata: %w", ErrMalformed, err)
	}
	m.Content = frameValue(rest[4])
	if len(rest) > 5 {
		m.Buffers = rest[5:]
	}
	return m, nil
}

// headerBytes are the bytes of a frame that may not be large. It can be spilled
// all the same, if identities before it were large.
func headerBytes(f *zmtp.Frame) ([]byte, error) {
	if f.Len() > MaxHeader {
		return nil, fmt.Errorf("%w: a frame of %d bytes before the content, the limit is %d", ErrMalformed, f.Len(), MaxHeader)
	}
	if b, ok := f.Bytes(); ok {
		return b, nil
	}
	b := make([]byte, f.Len())
	if _, err := io.ReadFull(io.NewSectionReader(f.ReaderAt(), 0, f.Len()), b); err != nil {
		return nil, fmt.Errorf("jupyter: read a spilled frame: %w", err)
	}
	return b, nil
}

// parseHeader reads a header. A message without a parent has {} there, or what a
// kernel's language makes of nothing: null, or R's empty list. A field of another
// type than a string is left empty.
func parseHeader(b []byte) (Header, error) {
	var h Header
	v := NewValue(b)
	switch v.first() {
	case 'n', '[':
		_, err := v.raw(MaxHeader)
		return h, err
	}
	err := v.members(func(key []byte, value Value) error {
		var field *string
		switch string(key) {
		case "msg_id":
			field = &h.MsgID
		case "session":
			field = &h.Session
		case "username":
			field = &h.Username
		case "date":
			field = &h.Date
		case "msg_type":
			field = &h.MsgType
		case "version":
			field = &h.Version
		default:
			return nil
		}
		if !value.IsString() {
			return nil
		}
		var err error
		*field, err = value.Unquote(MaxHeader)
		return err
	})
	return h, err
}
