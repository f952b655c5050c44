package zmtp

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// unit is what a decoder makes of a stream, one after the other.
type unit struct {
	frames  []string
	command []byte // if frames is nil
}

func (u unit) append(b []byte) []byte {
	if u.frames == nil {
		return append(appendHeader(b, flagCommand, len(u.command)), u.command...)
	}
	for i, f := range u.frames {
		flags := byte(0)
		if i < len(u.frames)-1 {
			flags = flagMore
		}
		b = append(appendHeader(b, flags, len(f)), f...)
	}
	return b
}

const fuzzLimit = 4096

// decodeAll decodes until the stream ends or is wrong.
func decodeAll(t testing.TB, b []byte) (units []unit, consumed int, err error) {
	t.Helper()
	source := bytes.NewReader(b)
	d := decoder{
		r:          bufio.NewReaderSize(source, 64),
		maxFrame:   fuzzLimit,
		maxMessage: 2 * fuzzLimit,
		maxFrames:  16,
		inline:     100,
		spill:      tempFile,
	}
	for {
		frames, command, err := d.next()
		if err != nil {
			return units, consumed, err
		}
		consumed = len(b) - source.Len() - d.r.Buffered()
		u := unit{command: command}
		if frames != nil {
			u.frames = readFrames(t, frames)
		}
		units = append(units, u)
	}
}

func FuzzStream(f *testing.F) {
	f.Add(frame(0, "hello"))
	f.Add(concat(frame(flagMore, "a"), frame(flagMore, ""), frame(0, strings.Repeat("x", 300)), command("PING", "\x00\x00ctx")))
	f.Add([]byte{flagLong, 0, 0, 0, 0, 0, 0, 0, 1, 'x'})
	f.Add([]byte{flagLong | flagMore, 0x80, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{flagCommand, 0, 0x80, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		units, consumed, err := decodeAll(t, b)
		var malformed *ProtocolError
		if err != io.EOF && err != io.ErrUnexpectedEOF && !errors.As(err, &malformed) {
			t.Fatalf("ended with %v", err)
		}
		if err == io.EOF && consumed != len(b) {
			t.Fatalf("EOF after %d of %d bytes", consumed, len(b))
		}
		var out []byte
		for _, u := range units {
			out = u.append(out)
			if u.frames == nil {
				if name, data, err := parseCommand(u.command); err == nil && !bytes.Equal(appendCommand(nil, name, data), u.command) {
					t.Fatalf("command %q is not what %q marshals to", u.command, name)
				}
			}
		}
		// The bytes are the same unless the peer chose a long header for a short frame.
		if len(out) > consumed || len(out) == consumed && !bytes.Equal(out, b[:consumed]) {
			t.Fatalf("%q marshals back to %q", b[:consumed], out)
		}
		again, _, err := decodeAll(t, out)
		if err != io.EOF || len(again) != len(units) {
			t.Fatalf("%d units, then %d: %v", len(units), len(again), err)
		}
		for i := range units {
			if !bytes.Equal(units[i].append(nil), again[i].append(nil)) {
				t.Fatalf("unit %d differs", i)
			}
		}
	})
}

func FuzzGreeting(f *testing.F) {
	f.Add(goodGreeting())
	f.Add(greeting{major: 3, minor: 0, mechanism: "PLAIN", asServer: true}.append(nil))
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		g, err := readGreeting(bytes.NewReader(b))
		if err != nil {
			return
		}
		b = bytes.Clone(b[:greetingSize])
		clear(b[1:9])        // padding
		clear(b[offFiller:]) // filler
		if out := g.append(nil); !bytes.Equal(out, b) {
			t.Fatalf("% x marshals back to % x", b, out)
		}
	})
}

func FuzzReady(f *testing.F) {
	f.Add(ready("ROUTER")[2:])
	f.Add([]byte("\x05READY\x0bSocket-Type\x00\x00\x00\x03PUB\x01x\x00\x00\x00\x00"))
	f.Add([]byte("\x05READY\x01x\xff\xff\xff\xff"))
	f.Add([]byte("\x05ERROR\x02no"))
	f.Fuzz(func(t *testing.T, b []byte) {
		name, data, err := parseCommand(b)
		if err != nil {
			return
		}
		errorReason(data)
		props, err := parseMetadata(data)
		if err != nil {
			return
		}
		var out []byte
		for _, p := range props {
			out = appendProperty(out, p.name, p.value)
			if v, ok := lookup(props, strings.ToUpper(p.name)); !ok || !bytes.Equal(v, p.value) {
				t.Fatalf("looking up %q gives %q", p.name, v)
			}
		}
		if out = appendCommand(nil, name, out); !bytes.Equal(out, b) {
			t.Fatalf("%q marshals back to %q", b, out)
		}
	})
}

func TestFrame(t *testing.T) {
	f := NewFrame([]byte("abc"))
	b, ok := f.Bytes()
	if !ok || string(b) != "abc" || f.Len() != 3 || f.Spilled() {
		t.Errorf("%q, %v, %d, %v", b, ok, f.Len(), f.Spilled())
	}
	var at [2]byte
	if n, err := f.ReaderAt().ReadAt(at[:], 1); n != 2 || err != nil || string(at[:]) != "bc" {
		t.Errorf("%d, %v: %q", n, err, at)
	}
	f.Close()
}

// countingConn counts the system calls that it would cost.
type countingConn struct {
	net.Conn
	r             io.Reader
	reads, writes int
}

func (c *countingConn) Read(b []byte) (int, error)       { c.reads++; return c.r.Read(b) }
func (c *countingConn) Write(b []byte) (int, error)      { c.writes++; return len(b), nil }
func (c *countingConn) SetWriteDeadline(time.Time) error { return nil }

// TestSystemCalls: small frames don't cost one each.
func TestSystemCalls(t *testing.T) {
	const messages, frames = 1000, 8
	message := concat(bytes.Repeat(frame(flagMore, "a small frame"), frames-1), frame(0, "the last"))
	stream := bytes.Repeat(message, messages)
	nc := &countingConn{r: bytes.NewReader(stream)}
	c := &Conn{nc: nc, typ: Dealer, d: decoder{
		r: bufio.NewReaderSize(nc, readBuffer), maxFrame: 1 << 20, maxMessage: 1 << 20, maxFrames: frames, inline: 1 << 20,
		spill: func() (*os.File, error) { return nil, errors.New("nothing to spill") },
	}}
	for range messages {
		got, err := c.Recv()
		if err != nil || len(got) != frames {
			t.Fatalf("%d frames, %v", len(got), err)
		}
	}
	if most := len(stream)/readBuffer + 2; nc.reads > most {
		t.Errorf("%d reads, want at most %d", nc.reads, most)
	}
	body := bytes.Repeat([]byte("small"), 20)
	if err := c.Send(body, nil, body, body, body, body); err != nil {
		t.Fatal(err)
	}
	if nc.writes != 1 {
		t.Errorf("%d writes for a message", nc.writes)
	}
}
