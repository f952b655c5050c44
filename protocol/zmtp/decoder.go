package zmtp

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

const (
	readBuffer = 16 << 10 // many small frames for one read(2)

	// maxCommand bounds a command's body. READY with an identity is some 300
	// bytes; what an application adds to it is its own metadata.
	maxCommand = 8 << 10
)

// A decoder takes a peer's stream apart, after the greeting.
type decoder struct {
	r          *bufio.Reader
	maxFrame   int64
	maxMessage int64
	maxFrames  int
	inline     int64
	spill      func() (*os.File, error)
}

// SpillError says that a message was lost because what of it doesn't belong in
// memory could not be written to a file. The message was read to its end: the
// connection is whole, and Recv can be called again.
type SpillError struct {
	Size int64 // bytes of the message that was lost
	Err  error // what making or writing the file gave
}

func (e *SpillError) Error() string {
	return fmt.Sprintf("zmtp: lost a message of %d bytes that could not be spilled to a file (free some disk space): %v", e.Size, e.Err)
}

func (e *SpillError) Unwrap() error { return e.Err }

type frameHeader struct {
	flags byte
	size  uint64
}

// next returns the next message's frames or, with no frames, the next command's
// body. The end of the stream before a header is io.EOF, elsewhere
// io.ErrUnexpectedEOF.
func (d *decoder) next() (frames []*Frame, command []byte, err error) {
	h, err := d.header()
	if err != nil {
		return nil, nil, err
	}
	if h.flags&flagCommand != 0 {
		command, err = d.command(h)
		return nil, command, err
	}
	frames, err = d.message(h)
	return frames, nil, err
}

func (d *decoder) header() (frameHeader, error) {
	flags, err := d.r.ReadByte()
	if err != nil {
		return frameHeader{}, err
	}
	if flags&flagsReserved != 0 {
		return frameHeader{}, protocolErrorf("malformed frame: flags %#02x", flags)
	}
	if flags&flagCommand != 0 && flags&flagMore != 0 {
		return frameHeader{}, protocolErrorf("malformed frame: a command that is to be continued")
	}
	if flags&flagLong == 0 {
		size, err := d.r.ReadByte()
		return frameHeader{flags, uint64(size)}, inFrame(err)
	}
	var b [8]byte
	if _, err := io.ReadFull(d.r, b[:]); err != nil {
		return frameHeader{}, inFrame(err)
	}
	return frameHeader{flags, binary.BigEndian.Uint64(b[:])}, nil
}

func (d *decoder) command(h frameHeader) ([]byte, error) {
	if h.size > maxCommand {
		return nil, protocolErrorf("a command of %d bytes is over the limit of %d", h.size, maxCommand)
	}
	body := make([]byte, h.size)
	_, err := io.ReadFull(d.r, body)
	return body, inFrame(err)
}

// message reads the frames from h on. Nothing is allocated or made before the
// limits were checked, and Inline bounds what is in memory of the whole message:
// a thousand frames just below it would be as bad as a large one.
func (d *decoder) message(h frameHeader) (_ []*Frame, err error) {
	var (
		frames []*Frame
		file   *spill
		lost   error // why the message can't be kept
		total  int64
		inline int64
	)
	defer func() {
		if err != nil {
			closeFrames(frames)
		}
		if file != nil {
			file.release()
		}
	}()
	for {
		if len(frames) == d.maxFrames {
			return nil, protocolErrorf("a message has more than %d frames", d.maxFrames)
		}
		if h.size > uint64(d.maxFrame) {
			return nil, protocolErrorf("a frame of %d bytes is over the limit of %d", h.size, d.maxFrame)
		}
		size := int64(h.size)
		if size > d.maxMessage-total {
			return nil, protocolErrorf("a message is over the limit of %d bytes", d.maxMessage)
		}
		total += size

		f := &Frame{size: size}
		switch {
		case lost != nil:
			if err := d.discard(size); err != nil {
				return nil, err
			}
		case size <= d.inline-inline:
			inline += size
			f.data = make([]byte, size)
			if _, err := io.ReadFull(d.r, f.data); err != nil {
				return nil, inFrame(err)
			}
		default:
			if file == nil {
				file, lost = d.newSpill()
			}
			if lost == nil {
				lost, err = d.spillFrame(f, file)
			} else {
				err = d.discard(size)
			}
			if err != nil {
				return nil, err
			}
		}
		frames = append(frames, f)

		if h.flags&flagMore == 0 {
			break
		}
		if h, err = d.header(); err != nil {
			return nil, inFrame(err)
		}
		if h.flags&flagCommand != 0 {
			return nil, protocolErrorf("malformed message: a command between its frames")
		}
	}
	if lost != nil {
		return nil, &SpillError{Size: total, Err: lost}
	}
	return frames, nil
}

func (d *decoder) newSpill() (*spill, error) {
	f, err := d.spill()
	if err != nil {
		return nil, err
	}
	s := &spill{f: f}
	s.refs.Store(1) // message's own, until it has made all frames
	return s, nil
}

// spillFrame copies a frame's bytes from the read buffer to the file. It tells the two
// ends apart: lost is the file's error, with the stream read to the frame's end
// all the same, and err is the stream's.
func (d *decoder) spillFrame(f *Frame, file *spill) (lost, err error) {
	for at, end := file.size, file.size+f.size; at < end; {
		if _, err := d.r.Peek(1); err != nil {
			return nil, inFrame(err)
		}
		b, _ := d.r.Peek(int(min(end-at, int64(d.r.Buffered()))))
		_, lost := file.f.WriteAt(b, at)
		d.r.Discard(len(b))
		at += int64(len(b))
		if lost != nil {
			return lost, d.discard(end - at)
		}
	}
	f.file, f.off = file, file.size
	file.size += f.size
	file.refs.Add(1)
	return nil, nil
}

func (d *decoder) discard(n int64) error {
	_, err := io.CopyN(io.Discard, d.r, n)
	return inFrame(err)
}

// inFrame marks the end of the stream where there should be more of it.
func inFrame(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
