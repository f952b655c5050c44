package node

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/cellard/cellard/mime"
	"github.com/cellard/cellard/protocol/jupyter/kernel"
)

// A frame is what Node sends: the length of the payload, a kind, a cell's id, all
// little-endian, then the payload.
type frame struct {
	kind    byte
	cell    uint32
	payload []byte
}

// The kinds of frames. After those with a question Node's thread waits for an answer.
const (
	kindUp      = 'u' // the debugging interface is there
	kindHello   = 'h'
	kindStdout  = 'o'
	kindStderr  = 'e'
	kindResult  = 'r'
	kindDisplay = 'd'
	kindClear   = 'c'
	kindDone    = 'x'
	kindAnswer  = 'a' // to a complete, inspect or isComplete
	kindRead    = 'q' // of stdin; answered by a command
	kindBarrier = 'b' // a question: is what came before handed on?
	kindFile    = 'f' // a question: show a file
	kindInput   = 'i' // a question to the user
	kindLeave   = 'l' // a question: is a termination on its way?
)

const (
	headBytes = 9
	// maxFrame bounds a payload. channel.js sends none that is larger.
	maxFrame = 128 << 20
	// maxJoined is about how much text is joined into one message.
	maxJoined = 256 << 10
	// chunk is how much room a payload is given before it has come.
	chunk = 64 << 10
)

// readFrame reads one frame. Memory grows as the payload comes, not as its length says.
func readFrame(r *bufio.Reader) (frame, error) {
	var head [headBytes]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return frame{}, err
	}
	f := frame{kind: head[4], cell: binary.LittleEndian.Uint32(head[5:])}
	size := int(binary.LittleEndian.Uint32(head[:4]))
	if size > maxFrame {
		return frame{}, fmt.Errorf("a frame of %d bytes, and %d is the limit", size, maxFrame)
	}
	for len(f.payload) < size {
		have := len(f.payload)
		n := min(size-have, max(chunk, have))
		grown := make([]byte, have+n)
		copy(grown, f.payload)
		if _, err := io.ReadFull(r, grown[have:]); err != nil {
			return frame{}, unexpected(err)
		}
		f.payload = grown
	}
	return f, nil
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// joinText appends to a frame of text those of the same cell and stream that have come
// with it, so that many small writes are one message and none waits for another.
func joinText(r *bufio.Reader, f *frame) {
	for len(f.payload) < maxJoined && r.Buffered() >= headBytes {
		head, err := r.Peek(headBytes)
		if err != nil || head[4] != f.kind || binary.LittleEndian.Uint32(head[5:]) != f.cell {
			return
		}
		size := int(binary.LittleEndian.Uint32(head[:4]))
		if r.Buffered()-headBytes < size {
			return
		}
		_, _ = r.Discard(headBytes)
		part, _ := r.Peek(size)
		f.payload = append(f.payload, part...)
		_, _ = r.Discard(size)
	}
}

// shown is the payload of a result, a display, a file and a clear.
type shown struct {
	Data     map[string]json.RawMessage `json:"data"`
	Metadata map[string]any             `json:"metadata"`
	ID       string                     `json:"id"`
	Update   bool                       `json:"update"`
	Path     string                     `json:"path"`
	Name     string                     `json:"name"`
	Wait     bool                       `json:"wait"`
	N        int64                      `json:"n"`
}

// maxTypes bounds the MIME types of one bundle.
const maxTypes = 256

// bundle checks the data: JSON types hold any value, all others text.
func (s *shown) bundle() (kernel.Bundle, error) {
	if len(s.Data) > maxTypes {
		return nil, fmt.Errorf("a bundle of %d types", len(s.Data))
	}
	b := make(kernel.Bundle, len(s.Data))
	for t, raw := range s.Data {
		if mime.IsJSON(t) {
			b[t] = raw
			continue
		}
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return nil, fmt.Errorf("%.80q is no text: %w", t, err)
		}
		b[t] = text
	}
	return b, nil
}

// question is the payload of an input, and of a read of stdin.
type question struct {
	Prompt   string `json:"prompt"`
	Password bool   `json:"password"`
	N        int64  `json:"n"`
}

// done is how a cell ended.
type done struct {
	Status string `json:"status"` // ok, error, interrupted, or typescript: see errNotPlain
	Error  *struct {
		Name      string   `json:"name"`
		Value     string   `json:"value"`
		Traceback []string `json:"traceback"`
	} `json:"error"`
}
