package zmtp

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"sync/atomic"
)

// A frame on the wire begins with flags and a length of one byte, or of eight
// with flagLong. libzmq ignores the reserved flags; here they are an error, since
// a set one means that the stream isn't understood.
const (
	flagMore    = 0x01
	flagLong    = 0x02
	flagCommand = 0x04

	flagsReserved = 0xFF &^ (flagMore | flagLong | flagCommand)

	maxHeader = 9
)

func appendHeader(b []byte, flags byte, size int) []byte {
	if size <= 0xFF {
		return append(b, flags, byte(size))
	}
	b = append(b, flags|flagLong)
	return binary.BigEndian.AppendUint64(b, uint64(size))
}

// Frame is one frame of a received message: bytes in memory or, if spilled, a
// section of an unlinked file. It is read-only and can be read from several
// goroutines, none of them after Close.
type Frame struct {
	data []byte
	file *spill // nil: data
	off  int64
	size int64

	closed atomic.Bool
}

// NewFrame makes a frame of bytes that it keeps and doesn't copy.
func NewFrame(b []byte) *Frame { return &Frame{data: b, size: int64(len(b))} }

// Len is the frame's length in bytes.
func (f *Frame) Len() int64 { return f.size }

// Spilled tells whether the frame lies in a file.
func (f *Frame) Spilled() bool { return f.file != nil }

// Bytes returns the frame's bytes, which the caller must not change, and false
// if they aren't in memory but spilled.
func (f *Frame) Bytes() ([]byte, bool) {
	if f.file != nil {
		return nil, false
	}
	return f.data, true
}

// ReaderAt reads the frame, wherever it lies.
func (f *Frame) ReaderAt() io.ReaderAt {
	if f.file != nil {
		return io.NewSectionReader(f.file.f, f.off, f.size)
	}
	return bytes.NewReader(f.data)
}

// Close gives the frame's file back, if it has one. It can be called twice.
func (f *Frame) Close() {
	if f.file != nil && !f.closed.Swap(true) {
		f.file.release()
	}
}

func closeFrames(frames []*Frame) {
	for _, f := range frames {
		f.Close()
	}
}

// A spill is the file that the large frames of one message share, so that no
// message costs more than one descriptor.
type spill struct {
	f    *os.File
	size int64 // next free offset; the decoder's alone
	refs atomic.Int32
}

func (s *spill) release() {
	if s.refs.Add(-1) == 0 {
		s.f.Close()
	}
}

// tempFile is the Spill of those who set none.
func tempFile() (*os.File, error) {
	f, err := os.CreateTemp("", "zmtp-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
