package rawpipe

import (
	"bytes"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPipe(t *testing.T) {
	p, w, err := New()
	if err != nil {
		t.Fatal(err)
	}
	p.Start()
	if b := p.Drain(); len(b) != 0 {
		t.Errorf("nothing was written, and %q came", b)
	}
	// What was written before Drain is in what it returns.
	for i := range 100 {
		text := bytes.Repeat([]byte{byte(i)}, 1+i*100)
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
		if b := p.Drain(); !bytes.Equal(b, text) {
			t.Fatalf("%d bytes came of %d", len(b), len(text))
		}
	}
	// A full buffer holds the writer up, and nothing is lost.
	const total = 4 << 20
	written := make(chan error, 1)
	go func() {
		_, err := w.Write(make([]byte, total))
		written <- err
	}()
	n := 0
	for n < total {
		b := p.Take()
		if len(b) > rawBytes+readBytes {
			t.Fatalf("the buffer had %d bytes", len(b))
		}
		n += len(b)
		if len(b) == 0 {
			<-p.ready
		}
	}
	if err := <-written; err != nil || n != total {
		t.Errorf("%d bytes came, %v", n, err)
	}
	if p.Ended() {
		t.Error("it has ended while there is a writer")
	}
	w.Close()
	if b := p.Drain(); len(b) != 0 {
		t.Errorf("after the end: %d bytes", len(b))
	}
	p.Close()
	p.Close()

	// Close ends a goroutine that waits for room.
	if p, w, err = New(); err != nil {
		t.Fatal(err)
	}
	p.Start()
	stop := make(chan struct{})
	go func() {
		defer close(stop)
		_, _ = w.Write(make([]byte, total)) // EPIPE ends it
	}()
	for full := false; !full; time.Sleep(time.Millisecond) {
		p.mu.Lock()
		full = len(p.buf) >= rawBytes
		p.mu.Unlock()
	}
	p.Close()
	<-stop
	w.Close()
}
