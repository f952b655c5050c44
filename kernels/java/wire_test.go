package java

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"runtime"
	"testing"
)

func TestFrames(t *testing.T) {
	data, err := newFrame(toRun).number(1 << 40).small(7).flag(true).flag(false).text("é\x00").done()
	if err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(bytes.NewReader(append(data, data[:3]...)))
	f, err := readFrame(r)
	if err != nil || f.kind != toRun || f.number() != 1<<40 || f.small() != 7 || !f.flag() || f.flag() || f.text() != "é\x00" || f.err() != nil {
		t.Errorf("%+v %v", f, err)
	}
	if f.number(); !errors.Is(f.err(), errFrame) {
		t.Error("a field that is not there was read")
	}
	if _, err := readFrame(r); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the beginning of a frame: %v", err)
	}
	if _, err := newFrame(toRun).text(string(make([]byte, maxFrame))).done(); err == nil {
		t.Error("a frame that is too large was made")
	}
}

// A length that is announced takes no memory before the bytes come.
func TestFrameAnnounced(t *testing.T) {
	for _, head := range []string{"\x00\x00\x00\x00o", "\xff\xff\xff\xffo", "\x7f\xff\xff\xffo", "\x04\x00\x00\x01o"} {
		if _, err := readFrame(bufio.NewReader(bytes.NewReader([]byte(head)))); err == nil {
			t.Errorf("%q is a frame", head)
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 20 {
		if _, err := readFrame(bufio.NewReader(bytes.NewReader([]byte("\x04\x00\x00\x00oshort")))); err == nil {
			t.Fatal("it was short")
		}
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 40<<20 {
		t.Errorf("%d bytes for 20 frames that did not come", used)
	}
}

// Whatever comes, the fields of a frame are read within it.
func FuzzFrame(f *testing.F) {
	good, _ := newFrame(fromDisplay).number(1).text("id").small(1).text("text/plain").flag(false).text("x").done()
	f.Add(good)
	f.Add([]byte("\x00\x00\x00\x09o\x00\x00\x00\x00\x00\x00\x00\x01"))
	f.Add([]byte("\x00\x00\x00\x05Z\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bufio.NewReader(bytes.NewReader(data))
		for {
			frame, err := readFrame(r)
			if err != nil {
				return
			}
			size := len(frame.rest)
			frame.number()
			for range frame.count() {
				if frame.bytes(); frame.bad {
					break
				}
			}
			frame.flag()
			if len(frame.rest) > size || frame.bad && len(frame.rest) != 0 {
				t.Fatalf("%d bytes are left of %d", len(frame.rest), size)
			}
		}
	})
}
