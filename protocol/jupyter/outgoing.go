package jupyter

import (
	"encoding/json"
	"fmt"
)

// dateFormat is how headers say the time (ISO 8601, in UTC).
const dateFormat = "2006-01-02T15:04:05.000000Z07:00"

// Outgoing is a message to be sent. Its Header.MsgID is what the answers will name
// as their parent.
type Outgoing struct {
	Header   Header
	Parent   *Header // of an answer, as input_reply is one
	Metadata any     // nil: {}
	Content  any     // nil: {}
	Buffers  [][]byte
}

// Encode returns the message's frames, the delimiter first, signed.
func (m *Outgoing) Encode(s *Signer) ([][]byte, error) {
	frames := make([][]byte, 2, 6+len(m.Buffers))
	parts := [...]any{m.Header, m.Parent, m.Metadata, m.Content}
	for i, part := range parts {
		b := []byte("{}")
		if p, ok := part.(*Header); part != nil && !(ok && p == nil) {
			var err error
			if b, err = json.Marshal(part); err != nil {
				return nil, fmt.Errorf("jupyter: encode %s of a %s: %w",
					[...]string{"header", "parent header", "metadata", "content"}[i], m.Header.MsgType, err)
			}
		}
		frames = append(frames, b)
	}
	frames[0], frames[1] = []byte(delimiter), s.Sign(frames[2:]...)
	return append(frames, m.Buffers...), nil
}
