package mime

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
)

// Base64Reader decodes standard base64 as it is read: padded or not, broken into
// lines or not (kernels differ: IPython ends its PNGs with a newline, R wraps).
type Base64Reader struct {
	r       io.Reader
	in      []byte // encoded, as read
	quads   []byte // encoded, without white space; at most 3 bytes between reads
	out     []byte // decoded
	rest    []byte // the part of out not yet handed on
	padding int
	offset  int64 // of in, in the encoded stream
	err     error
}

const base64Chunk = 16 << 10

// NewBase64Reader returns a reader of what the base64 in r stands for. Its Read
// fails where r holds anything else.
func NewBase64Reader(r io.Reader) *Base64Reader {
	return &Base64Reader{r: r}
}

// Read is of io.Reader.
func (b *Base64Reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if b.in == nil {
		b.in = make([]byte, base64Chunk)
		b.quads = make([]byte, 0, base64Chunk+3)
		b.out = make([]byte, base64.RawStdEncoding.DecodedLen(base64Chunk+3))
	}
	for len(b.rest) == 0 {
		if b.err != nil {
			return 0, b.err
		}
		b.fill()
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// fill reads once and decodes the whole quads of it; at the end of r, all.
func (b *Base64Reader) fill() {
	n, err := b.r.Read(b.in)
	if bad := b.compact(b.in[:n]); bad != nil {
		b.err = bad
		return
	}
	b.offset += int64(n)
	whole := len(b.quads) &^ 3
	switch {
	case err == io.EOF:
		if e := b.checkEnd(); e != nil {
			b.err = e
			return
		}
		whole = len(b.quads)
		b.err = io.EOF
	case err != nil:
		b.err = err
		return
	}
	size, bad := base64.RawStdEncoding.Decode(b.out, b.quads[:whole])
	if bad != nil { // compact let only the alphabet through
		b.err = fmt.Errorf("base64: %w", bad)
		return
	}
	b.rest = b.out[:size]
	b.quads = b.quads[:copy(b.quads, b.quads[whole:])]
}

// compact appends the letters of p to quads.
func (b *Base64Reader) compact(p []byte) error {
	for i := 0; i < len(p); {
		letters := 0
		for letters < len(p)-i && base64Letter[p[i+letters]] {
			letters++
		}
		if letters > 0 && b.padding > 0 {
			return fmt.Errorf("base64: data after its padding at byte %d", b.offset+int64(i))
		}
		b.quads = append(b.quads, p[i:i+letters]...)
		if i += letters; i == len(p) {
			break
		}
		switch c := p[i]; c {
		case ' ', '\n', '\r', '\t':
		case '=':
			if b.padding++; b.padding > 2 {
				return fmt.Errorf("base64: too much padding at byte %d", b.offset+int64(i))
			}
		default:
			return fmt.Errorf("base64: byte %#02x at byte %d is not of its alphabet", c, b.offset+int64(i))
		}
		i++
	}
	return nil
}

var base64Letter = func() (is [256]bool) {
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") {
		is[c] = true
	}
	return is
}()

func (b *Base64Reader) checkEnd() error {
	odd := len(b.quads) % 4
	if odd == 1 {
		return fmt.Errorf("base64: %w", io.ErrUnexpectedEOF)
	}
	if b.padding > 0 && (odd+b.padding)%4 != 0 {
		return errors.New("base64: padding does not match its length")
	}
	return nil
}
