package rawpipe

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPair(t *testing.T) {
	p, w, other, err := New()
	if err != nil {
		t.Fatal(err)
	}
	if b := joined(t, p.Drain()); len(b) != 0 {
		t.Errorf("nothing was written, and %q came", b)
	}
	// What was written before Drain is in what it returns.
	for i := range 100 {
		text := bytes.Repeat([]byte{byte(i)}, 1+i*100)
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
		if b := joined(t, p.Drain()); !bytes.Equal(b, text) {
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
		b := joined(t, p.Take())
		if len(b) > rawBytes+pipeBytes {
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
	other.Close()
	if b := joined(t, p.Drain()); len(b) != 0 {
		t.Errorf("after the end: %d bytes", len(b))
	}
	p.Close()
	p.Close()

	// Close ends a goroutine that waits for room.
	if p, w, other, err = New(); err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	stop := make(chan struct{})
	go func() {
		defer close(stop)
		_, _ = w.Write(make([]byte, total)) // EPIPE ends it
	}()
	for full := false; !full; time.Sleep(time.Millisecond) {
		p.mu.Lock()
		full = p.held >= rawBytes
		p.mu.Unlock()
	}
	p.Close()
	<-stop
	w.Close()
}

// joined is what came of stdout, when nothing came of stderr.
func joined(t *testing.T, pieces []Piece) (b []byte) {
	t.Helper()
	for _, p := range pieces {
		if p.Stream != 0 {
			t.Errorf("stderr: %q", p.Bytes)
		}
		b = append(b, p.Bytes...)
	}
	return b
}

// Both have ended when both were closed, and pieces are as they were written, as many as
// the buffer holds.
func TestPairOrder(t *testing.T) {
	p, stdout, stderr, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	ends := []*os.File{stdout, stderr}
	written := make(chan error, 1)
	const total = 3 * rawPieces
	go func() {
		for i := range total {
			if _, err := fmt.Fprintf(ends[i%2], "%d ", i); err != nil {
				written <- err
				return
			}
			if i%8 == 0 {
				time.Sleep(100 * time.Microsecond)
			}
		}
		stdout.Close()
		written <- stderr.Close()
	}()
	var got [2]strings.Builder
	for !p.Ended() {
		pieces := p.Take()
		if len(pieces) > rawPieces+2 {
			t.Errorf("the buffer had %d pieces", len(pieces))
		}
		for i, piece := range pieces {
			if i > 0 && piece.Stream == pieces[i-1].Stream {
				t.Error("one piece came as two")
			}
			got[piece.Stream].Write(piece.Bytes)
		}
		time.Sleep(time.Millisecond)
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
	var want [2]strings.Builder
	for i := range total {
		fmt.Fprintf(&want[i%2], "%d ", i)
	}
	for i := range got {
		if got[i].String() != want[i].String() {
			t.Errorf("stream %d: %d bytes of %d, or others", i, got[i].Len(), want[i].Len())
		}
	}
	// Slow enough to be told apart, they come as they were written.
	if p, stdout, stderr, err = New(); err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	defer stdout.Close()
	defer stderr.Close()
	for i := range 200 {
		first, second := stdout, stderr
		if i%3 == 0 {
			first, second = stderr, stdout
		}
		fmt.Fprint(first, "x")
		fmt.Fprint(second, "y")
		var got string
		for len(got) < 2 {
			pieces := p.Take()
			if i%2 == 0 {
				pieces = append(pieces, p.Drain()...)
			}
			for _, piece := range pieces {
				got += string(piece.Bytes)
			}
		}
		if got != "xy" {
			t.Fatalf("turn %d: %q", i, got)
		}
	}
}

// What goes from one to the other once is in order however quickly it comes.
func TestPairTurn(t *testing.T) {
	p, stdout, stderr, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	defer stdout.Close()
	defer stderr.Close()
	for i := range 3000 {
		first, second := stdout, stderr
		if i%2 == 0 {
			first, second = stderr, stdout
		}
		text := "x"
		if i%10 == 0 {
			text = strings.Repeat("x", 9000)
		}
		times := i%20 + 1
		for range times {
			fmt.Fprint(first, text)
		}
		fmt.Fprint(second, "y")
		want := strings.Repeat(text, times) + "y"
		var got string
		for len(got) < len(want) {
			<-p.ready
			for _, piece := range p.Take() {
				got += string(piece.Bytes)
			}
		}
		if got != want {
			t.Fatalf("turn %d: of %d bytes y is at %d", i, len(want), strings.IndexByte(got, 'y'))
		}
	}
}
