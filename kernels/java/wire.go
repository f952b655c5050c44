package java

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// The frames between the two sides: a length of four bytes, a type of one, then the
// fields. Integers are big-endian; a string is a length of four bytes and its UTF-8.
//
// To Java:
//
//	X  run: id, count (4 bytes), silent, allow input, code, cwd, variables (4 bytes), then name and value of each
//	S  stop: call, id; answered once its threads are marked
//	A  the answer to a call: call, ok, value
//	C  complete: call, position (4 bytes), code
//	I  inspect: call, position (4 bytes), detail (4 bytes), code
//	Q  is complete: call, code
//	V  the variables: call
//
// From Java (call: its own number, answered by A):
//
//	V  the version: of Java, name of the virtual machine
//	o, e  what a cell printed: id, then bytes to the frame's end
//	R, D, U  the result, a display, an update: id, display id, types (4 bytes), then type, is JSON, value of each
//	L  clear: id, wait
//	F  show a file: call, id, name, path, display id, update
//	N  input: call, id, password, prompt
//	K  threads are stuck: call, hard, the cells' thread's number if it is one (4 bytes)
//	P  replace a class: call, signature, class file
//	W  is what came before handed on?: call
//	Z  a cell's end: id, stopped, failed; then, if so, name, value, lines (4 bytes), and these
//	B  the answer to S, C, I, Q or V: call, then its fields
const (
	toRun, toStop, toAnswer, toComplete, toInspect, toIsComplete = 'X', 'S', 'A', 'C', 'I', 'Q'
	toVariables                                                  = 'V'

	fromVersion, fromStdout, fromStderr       = 'V', 'o', 'e'
	fromResult, fromDisplay, fromUpdate       = 'R', 'D', 'U'
	fromClear, fromFile, fromInput, fromStuck = 'L', 'F', 'N', 'K'
	fromReplace, fromEnd, fromReply           = 'P', 'Z', 'B'
	fromSettle                                = 'W'
)

const (
	// maxFrame bounds a frame; Java holds to it too (Wire.MAX).
	maxFrame = 64 << 20
	// maxItems bounds the counts in a frame.
	maxItems = 10_000
)

var errFrame = errors.New("java: a frame that is not as it must be")

// frame is one that came.
type frame struct {
	kind byte
	rest []byte
	bad  bool // a field was not there
}

// arrivals remembers of a reader whether something has come.
type arrivals struct {
	r   io.Reader
	any bool
}

func (a *arrivals) Read(b []byte) (int, error) {
	n, err := a.r.Read(b)
	a.any = true
	return n, err
}

// some tells whether something has come since the last call.
func (a *arrivals) some() bool {
	any := a.any
	a.any = false
	return any
}

// readFrame reads a frame. Memory grows with what comes, not with what is announced.
func readFrame(r *bufio.Reader) (*frame, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n < 1 || n > maxFrame {
		return nil, fmt.Errorf("%w: a length of %d", errFrame, n)
	}
	size := int(n) - 1
	const step = 1 << 20
	buf := make([]byte, min(size, step))
	for have := 0; ; {
		if _, err := io.ReadFull(r, buf[have:]); err != nil {
			return nil, err
		}
		if have = len(buf); have == size {
			return &frame{kind: head[4], rest: buf}, nil
		}
		grown := make([]byte, min(size, 2*have))
		copy(grown, buf)
		buf = grown
	}
}

func (f *frame) take(n int) []byte {
	if n < 0 || n > len(f.rest) {
		f.bad, f.rest = true, nil
		return nil
	}
	b := f.rest[:n]
	f.rest = f.rest[n:]
	return b
}

func (f *frame) number() uint64 {
	if b := f.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (f *frame) small() int {
	if b := f.take(4); b != nil {
		return int(int32(binary.BigEndian.Uint32(b)))
	}
	return 0
}

// count is a number of things that follow.
func (f *frame) count() int {
	n := f.small()
	if n < 0 || n > maxItems {
		f.bad, f.rest = true, nil
		return 0
	}
	return n
}

func (f *frame) flag() bool {
	b := f.take(1)
	return b != nil && b[0] != 0
}

func (f *frame) bytes() []byte { return f.take(f.small()) }

func (f *frame) text() string { return string(f.bytes()) }

// err tells whether a field was missing.
func (f *frame) err() error {
	if f.bad {
		return fmt.Errorf("%w: of type %q", errFrame, f.kind)
	}
	return nil
}

// builder makes a frame to send.
type builder []byte

func newFrame(kind byte) *builder {
	b := builder{0, 0, 0, 0, kind}
	return &b
}

func (b *builder) number(n uint64) *builder {
	*b = binary.BigEndian.AppendUint64(*b, n)
	return b
}

func (b *builder) small(n int) *builder {
	*b = binary.BigEndian.AppendUint32(*b, uint32(min(max(n, 0), math.MaxInt32)))
	return b
}

func (b *builder) flag(is bool) *builder {
	if is {
		*b = append(*b, 1)
	} else {
		*b = append(*b, 0)
	}
	return b
}

func (b *builder) text(s string) *builder {
	b.small(len(s))
	*b = append(*b, s...)
	return b
}

// done is the frame's bytes; an error if they are too many.
func (b *builder) done() ([]byte, error) {
	n := len(*b) - 4
	if n > maxFrame {
		return nil, fmt.Errorf("java: %d bytes are more than a frame takes", n)
	}
	binary.BigEndian.PutUint32(*b, uint32(n))
	return *b, nil
}
