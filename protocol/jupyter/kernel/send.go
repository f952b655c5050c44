package kernel

import (
	"crypto/rand"
	"errors"
	"time"

	"github.com/cellard/cellard/protocol/jupyter"
	"github.com/cellard/cellard/protocol/zmtp"
)

// dateFormat is ISO 8601 in UTC, as in the spec's "General Message Format".
const dateFormat = "2006-01-02T15:04:05.000000Z07:00"

// parse makes a message of frames. What doesn't hold is counted and dropped.
func (s *server) parse(channel jupyter.Channel, peer []byte, frames []*zmtp.Frame) (request, bool) {
	var size int64
	for _, f := range frames {
		size += f.Len()
	}
	m, err := jupyter.ParseMessage(channel, frames, s.signer)
	if err == nil {
		return request{m, peer, size}, true
	}
	switch {
	case errors.Is(err, jupyter.ErrSignature):
		s.stats.BadSignatures.Add(1)
	case errors.Is(err, jupyter.ErrReplay):
		s.stats.Replays.Add(1)
	default:
		s.stats.Malformed.Add(1)
	}
	s.log.Warn("dropped a message", "channel", channel, "error", err)
	for _, f := range frames {
		f.Close()
	}
	return request{}, false
}

// frames makes a message's frames.
func (s *server) frames(msgType string, parent *jupyter.Header, content any) [][]byte {
	return s.framesWith(msgType, parent, nil, content)
}

func (s *server) framesWith(msgType string, parent *jupyter.Header, metadata, content any) [][]byte {
	m := jupyter.Outgoing{
		Header: jupyter.Header{
			MsgID: rand.Text(), Session: s.session, Username: "kernel",
			Date: time.Now().UTC().Format(dateFormat), MsgType: msgType, Version: jupyter.ProtocolVersion,
		},
		Parent:   parent,
		Metadata: metadata,
		Content:  content,
	}
	frames, err := m.Encode(s.signer)
	if err != nil {
		// A Language's value that can't be JSON: the message is told of instead.
		s.log.Error("a message that can't be sent", "type", msgType, "error", err)
		m.Header.MsgType = "stream"
		m.Content = jupyter.Stream{Name: "stderr", Text: "an output was lost: " + err.Error() + "\n"}
		frames, _ = m.Encode(s.signer)
	}
	return frames
}

// reply answers a request on the socket that it came from.
func (s *server) reply(r request, msgType string, content any) {
	s.replyWith(r, msgType, nil, content)
}

func (s *server) replyWith(r request, msgType string, metadata, content any) {
	socket := s.shell
	if r.Channel == jupyter.Control {
		socket = s.control
	}
	frames := append(append([][]byte{}, r.Identities...), s.framesWith(msgType, &r.Header, metadata, content)...)
	if err := socket.SendTo(r.peer, frames...); err != nil {
		s.log.Warn("a reply could not be sent", "type", msgType, "error", err)
	}
}

// publish publishes what belongs to a request. With now it waits for no subscriber.
func (s *server) publish(parent *jupyter.Header, msgType string, content any, now bool) {
	frames := append([][]byte{[]byte("kernel." + s.session + "." + msgType)}, s.frames(msgType, parent, content)...)
	if now {
		s.iopub.PublishNow(frames...)
	} else {
		s.iopub.Publish(frames...)
	}
}

func (s *server) status(parent *jupyter.Header, state string, now bool) {
	s.publish(parent, "status", jupyter.Status{ExecutionState: state}, now)
}

// welcome is iopub_welcome, which tells a subscriber that it is heard from here on
// (Jupyter enhancement proposal 65).
func (s *server) welcome(prefix []byte) [][]byte {
	content := struct {
		Subscription string `json:"subscription"`
	}{string(prefix)}
	return append([][]byte{prefix}, s.frames("iopub_welcome", nil, content)...)
}
