package zmtp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestStreamCut ends a stream at each of its bytes: at the end of a message or a
// command that is io.EOF.
func TestStreamCut(t *testing.T) {
	units := [][]byte{
		command("LATER", "unknown"),
		frame(0, "one"),
		concat(frame(flagMore, "two"), frame(flagMore, ""), frame(0, strings.Repeat("x", 300))), // spilled
		command("SUBSCRIBE", ""),
		frame(0, ""),
	}
	whole := concat(units...)
	ends := map[int]int{0: 0} // where a unit ends: messages until then
	at, messages := 0, 0
	for _, u := range units {
		at += len(u)
		if u[0]&flagCommand == 0 {
			messages++
		}
		ends[at] = messages
	}
	var files []*os.File
	for n := range len(whole) + 1 {
		c := dialRaw(t, Options{Inline: 100, Spill: func() (*os.File, error) {
			f, err := tempFile()
			files = append(files, f)
			return f, err
		}}, func(nc net.Conn) { nc.Write(whole[:n]) })
		got := 0
		var err error
		for {
			var frames []*Frame
			if frames, err = recv(c); err != nil {
				break
			}
			got++
			closeFrames(frames)
		}
		if want, clean := ends[n]; clean && (err != io.EOF || got != want) {
			t.Errorf("ended after %d bytes: %d messages, %v; want %d, EOF", n, got, err, want)
		} else if !clean && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut after %d bytes: %v", n, err)
		}
		c.Close()
	}
	wantClosed(t, files)
}

func wantClosed(t *testing.T, files []*os.File) {
	t.Helper()
	if len(files) == 0 {
		t.Error("nothing was spilled")
	}
	for i, f := range files {
		if _, err := f.Stat(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("spill file %d of %d is still open", i+1, len(files))
		}
	}
}

func TestHostileStream(t *testing.T) {
	long := func(flags byte, size uint64) []byte {
		b := appendHeader(nil, flags, 1<<32)
		for i := range 8 {
			b[8-i] = byte(size >> (8 * i))
		}
		return b
	}
	many := bytes.Repeat(frame(flagMore, ""), 11)

	for name, test := range map[string]struct {
		peer []byte
		want string
	}{
		"2^63":                     {long(0, 1<<63), "over the limit"},
		"2^64-1":                   {long(flagMore, 1<<64-1), "over the limit"},
		"2^63-1":                   {long(0, 1<<63-1), "over the limit"},
		"one over":                 {long(0, 5001), "a frame of 5001 bytes is over the limit of 5000"},
		"together":                 {concat(frame(flagMore, strings.Repeat("x", 4000)), long(0, 4001)), "over the limit of 8000"},
		"together, spilled":        {concat(frame(flagMore, strings.Repeat("x", 5000)), long(flagMore, 5000)), "over the limit of 8000"},
		"too many frames":          {many, "more than 10 frames"},
		"reserved flags":           {frame(0x08, "x"), "flags 0x08"},
		"reserved flags later":     {concat(frame(flagMore, "x"), frame(0xF0, "x")), "flags 0xf0"},
		"HTTP":                     {[]byte("GET / HTTP/1.1\r\n"), "flags"},
		"command in a message":     {concat(frame(flagMore, "x"), command("PING", "\x00\x00")), "between its frames"},
		"continued command":        {frame(flagCommand|flagMore, "\x04PING\x00\x00"), "continued"},
		"huge command":             {long(flagCommand, 1<<40), "over the limit"},
		"command a little too big": {long(flagCommand, maxCommand+1), "over the limit"},
		"empty command":            {frame(flagCommand, ""), "empty"},
		"name past the end":        {frame(flagCommand, "\xFFPING"), "malformed command"},
		"ERROR":                    {command("ERROR", "\x03bad"), `"bad"`},
		"short PING":               {command("PING", "\x00"), "malformed PING"},
		"long PING":                {command("PING", strings.Repeat("x", 19)), "malformed PING"},
	} {
		t.Run(name, func(t *testing.T) {
			var files []*os.File
			c := dialRaw(t, Options{MaxFrame: 5000, MaxMessage: 8000, MaxFrames: 10, Inline: 4500,
				Spill: func() (*os.File, error) {
					f, err := tempFile()
					files = append(files, f)
					return f, err
				},
			}, func(nc net.Conn) {
				nc.Write(concat(frame(0, "good"), test.peer))
				io.Copy(io.Discard, nc)
			})
			wantStrings(t, recvStrings(t, c), "good")
			_, err := recv(c)
			wantProtocolError(t, err, test.want)
			if _, again := recv(c); again != err {
				t.Errorf("the next Recv gave %v", again)
			}
			if len(files) > 0 {
				wantClosed(t, files)
			}
		})
	}
}

func TestReqEnvelope(t *testing.T) {
	for _, reply := range [][]byte{frame(0, ""), frame(0, "x"), concat(frame(flagMore, "x"), frame(0, "y"))} {
		c := mustDial(t, "unix", listenRaw(t, func(nc net.Conn) { greet(nc, Req); nc.Write(reply); io.Copy(io.Discard, nc) }), Req, Options{})
		_, err := recv(c)
		wantProtocolError(t, err, "malformed reply")
	}
}

func TestPing(t *testing.T) {
	const context = "0123456789abcdef"
	pong := make(chan []byte, 1)
	c := dialRaw(t, Options{}, func(nc net.Conn) {
		nc.Write(concat(command("PING", "\x00\x01"+context), frame(0, "x")))
		want := command("PONG", context)
		b := make([]byte, len(want))
		io.ReadFull(nc, b)
		pong <- b
		nc.Write(concat(command("PONG", "whatever"), frame(0, "y")))
	})
	wantStrings(t, recvStrings(t, c), "x")
	if got, want := <-pong, command("PONG", context); !bytes.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	wantStrings(t, recvStrings(t, c), "y")
}

// TestSubscribeForms: a command for a peer that speaks 3.1, a message for 3.0.
func TestSubscribeForms(t *testing.T) {
	for minor, want := range [][]byte{frame(0, "\x01ab"), command("SUBSCRIBE", "ab")} {
		got := make(chan []byte, 1)
		path := listenRaw(t, func(nc net.Conn) {
			nc.Write(greeting{major: 3, minor: byte(minor), mechanism: "NULL"}.append(nil))
			nc.Write(ready("PUB"))
			noIdentity := command("READY", string(appendProperty(nil, "Socket-Type", []byte("SUB"))))
			io.ReadFull(nc, make([]byte, greetingSize+len(noIdentity)))
			b := make([]byte, len(want))
			io.ReadFull(nc, b)
			got <- b
		})
		c := mustDial(t, "unix", path, Sub, Options{})
		if err := c.Subscribe([]byte("ab")); err != nil {
			t.Fatal(err)
		}
		if b := <-got; !bytes.Equal(b, want) {
			t.Errorf("3.%d: got %q, want %q", minor, b, want)
		}
	}
	c := dialRaw(t, Options{}, func(nc net.Conn) { io.Copy(io.Discard, nc) })
	if err := c.Subscribe(nil); err == nil {
		t.Error("a DEALER could subscribe")
	}
}

func TestClose(t *testing.T) {
	c := dialRaw(t, Options{WriteTimeout: patience}, func(nc net.Conn) { nc.Read(make([]byte, 1)); <-time.After(100 * time.Millisecond) })
	received, sent := make(chan error), make(chan error)
	go func() { _, err := c.Recv(); received <- err }()
	go func() { sent <- c.Send(make([]byte, 64<<20)) }()
	time.Sleep(50 * time.Millisecond) // so that both are likely under way; the outcome is the same if not
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := <-received; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Recv gave %v", err)
	}
	if err := <-sent; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Send gave %v", err)
	}
}

// TestPeerTakesNothing: a Send that could not be finished is the last one.
func TestPeerTakesNothing(t *testing.T) {
	release := make(chan struct{})
	c := dialRaw(t, Options{WriteTimeout: 100 * time.Millisecond}, func(net.Conn) { <-release })
	defer close(release)
	err := c.Send(make([]byte, 64<<20))
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	if err := c.Send([]byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the next Send gave %v", err)
	}
}

// TestMemory: large frames pass through a small buffer, and a length that is only
// claimed costs nothing.
func TestMemory(t *testing.T) {
	const size = 64 << 20
	head := appendHeader(nil, flagMore, size)
	chunk := make([]byte, 1<<20)
	// None of these is large, but together they are. What follows is only claimed.
	tail := bytes.Repeat(frame(flagMore, string(chunk[:100_000])), 200)
	tail = concat(tail, frame(0, "end"), appendHeader(nil, 0, defaultMax))
	c := dialRaw(t, Options{}, func(nc net.Conn) {
		nc.Write(head)
		for i := range size / len(chunk) {
			chunk[0] = byte(i)
			nc.Write(chunk)
		}
		nc.Write(tail)
	})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	frames, err := recv(c)
	if err != nil {
		t.Fatal(err)
	}
	_, err = recv(c)
	runtime.ReadMemStats(&after)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
	held := int64(0)
	for _, f := range frames {
		if b, ok := f.Bytes(); ok {
			held += int64(len(b))
		} else if !f.Spilled() {
			t.Error("a frame that is nowhere")
		}
	}
	if held > defaultInline {
		t.Errorf("%d bytes are in memory", held)
	}
	if total := after.TotalAlloc - before.TotalAlloc; total > 2*defaultInline {
		t.Errorf("allocated %d bytes", total)
	}
	if !frames[0].Spilled() || frames[0].Len() != size || len(frames) != 202 {
		t.Fatalf("%d frames, the first of %d bytes", len(frames), frames[0].Len())
	}
	var b [1]byte
	if n, err := frames[0].ReaderAt().ReadAt(b[:], 7<<20); n != 1 || err != nil || b[0] != 7 {
		t.Errorf("read %d, %v: %d", n, err, b[0])
	}
	closeFrames(frames)
}

// TestSpillFails: a full disk costs the message, not the connection.
func TestSpillFails(t *testing.T) {
	noFile := errors.New("no file for you")
	var full *os.File
	for name, test := range map[string]struct {
		spill func() (*os.File, error)
		want  error
	}{
		"no file": {func() (*os.File, error) { return nil, noFile }, noFile},
		"full": {func() (_ *os.File, err error) {
			full, err = os.OpenFile("/dev/full", os.O_RDWR, 0)
			return full, err
		}, syscall.ENOSPC},
	} {
		t.Run(name, func(t *testing.T) {
			c := dialRaw(t, Options{Inline: 100, Spill: test.spill}, func(nc net.Conn) {
				large := strings.Repeat("x", 200_000)
				nc.Write(concat(frame(flagMore, "a"), frame(flagMore, large), frame(flagMore, "b"), frame(0, large), frame(0, "next")))
			})
			_, err := recv(c)
			var lost *SpillError
			if !errors.As(err, &lost) || !errors.Is(err, test.want) || lost.Size != 400_002 {
				t.Fatal(err)
			}
			wantStrings(t, recvStrings(t, c), "next")
		})
	}
	wantClosed(t, []*os.File{full})
}

// TestSpillShared: a message has one file, which goes with its last frame.
func TestSpillShared(t *testing.T) {
	var files []*os.File
	c := dialRaw(t, Options{Inline: 10, Spill: func() (*os.File, error) {
		f, err := tempFile()
		files = append(files, f)
		return f, err
	}}, func(nc net.Conn) {
		for i := range 20 {
			flags := byte(flagMore)
			if i == 19 {
				flags = 0
			}
			nc.Write(frame(flags, fmt.Sprintf("the text of frame %d", i)))
		}
	})
	frames, err := recv(c)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 1 {
		t.Fatalf("%d files", len(files))
	}
	for i, f := range frames {
		if i > 0 {
			frames[i-1].Close()
			frames[i-1].Close() // the second is for nothing
		}
		got, err := io.ReadAll(io.NewSectionReader(f.ReaderAt(), 0, 1000))
		if want := fmt.Sprintf("the text of frame %d", i); err != nil || string(got) != want {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}
	closeFrames(frames)
	wantClosed(t, files)
}
