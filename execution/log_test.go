package execution

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cellard/cellard/protocol/api"
)

func tempFiles(t *testing.T) func() (*os.File, error) {
	dir := t.TempDir()
	return func() (*os.File, error) { return os.CreateTemp(dir, "log") }
}

// readAll follows a log to its end and returns its events.
func readAll(t *testing.T, r *Reader) []api.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var all []api.Event
	for {
		b, err := r.Next(ctx)
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(b) == 0 || b[len(b)-1] != '\n' {
			t.Fatalf("not whole lines: %q", b)
		}
		for _, line := range bytes.Split(bytes.TrimSuffix(b, []byte("\n")), []byte("\n")) {
			var e api.Event
			if err := json.Unmarshal(line, &e); err != nil {
				t.Fatalf("%v: %.200s", err, line)
			}
			all = append(all, e)
		}
	}
}

// checkSeq sees that events and gaps together cover 1…n once.
func checkSeq(t *testing.T, all []api.Event, from, n int64) (gaps int64) {
	t.Helper()
	next := from
	for _, e := range all {
		if e.K == api.KindGap {
			gaps += e.Missed
			next += e.Missed
			if e.Seq != next-1 {
				t.Fatalf("gap of %d ends at %d, wanted %d", e.Missed, e.Seq, next-1)
			}
			continue
		}
		if e.Seq != next {
			t.Fatalf("event %d, wanted %d", e.Seq, next)
		}
		next++
	}
	if next != n+1 {
		t.Fatalf("ends at %d of %d", next-1, n)
	}
	return gaps
}

func TestLogKeepsAllWithinItsBounds(t *testing.T) {
	l := newEventLog(1<<20, 64<<20, tempFiles(t))
	const n = 40_000
	for i := range n {
		l.append(api.Event{K: api.KindStdout, ID: "e", Text: strings.Repeat("x", i%300)}, i == n-1)
	}
	if l.file == nil {
		t.Fatal("nothing went to disk")
	}
	if l.inMemory > 1<<20+segmentBytes {
		t.Fatalf("%d bytes in memory", l.inMemory)
	}
	all := readAll(t, &Reader{log: l})
	if gaps := checkSeq(t, all, 1, n); gaps != 0 {
		t.Fatalf("%d events are missing", gaps)
	}
	for i, e := range all {
		if len(e.Text) != i%300 {
			t.Fatalf("event %d has %d bytes", i+1, len(e.Text))
		}
	}
	for _, after := range []int64{1, 17, n / 2, n - 1, n} {
		checkSeq(t, readAll(t, &Reader{log: l, after: after}), after+1, n)
	}
	l.free()
	if _, err := (&Reader{log: l}).Next(context.Background()); !errors.Is(err, ErrFreed) {
		t.Fatalf("after free: %v", err)
	}
}

func TestLogSaysWhatItDropped(t *testing.T) {
	for _, disk := range []int64{0, 2 << 20} {
		l := newEventLog(1<<20, disk, tempFiles(t))
		const n = 200_000
		for i := range n {
			l.append(api.Event{K: api.KindStdout, ID: "e", Text: "some text of a line"}, i == n-1)
		}
		all := readAll(t, &Reader{log: l})
		if gaps := checkSeq(t, all, 1, n); gaps == 0 || gaps > n-10 {
			t.Fatalf("disk %d: a gap of %d", disk, gaps)
		}
		if all[0].K != api.KindGap {
			t.Fatalf("begins with %v", all[0].K)
		}
		l.free()
	}
}

func TestLogWithoutDiskStaysBounded(t *testing.T) {
	l := newEventLog(1<<20, 64<<20, func() (*os.File, error) { return os.Open(filepath.Join(t.TempDir(), "none")) })
	for range 100_000 {
		l.append(api.Event{K: api.KindStdout, ID: "e", Text: "some text of a line"}, false)
	}
	if l.inMemory > 1<<20+segmentBytes {
		t.Fatalf("%d bytes in memory", l.inMemory)
	}
	l.append(api.Event{K: api.KindEnd}, true)
	checkSeq(t, readAll(t, &Reader{log: l}), 1, 100_001)
	l.free()
}

func TestReadersFollow(t *testing.T) {
	l := newEventLog(256<<10, 1<<20, tempFiles(t))
	defer l.free()
	const n = 30_000
	done := make(chan error)
	for i := range 4 {
		go func() {
			r := &Reader{log: l}
			next := int64(1)
			for {
				b, err := r.Next(context.Background())
				if err == io.EOF {
					if next != n+1 {
						err = fmt.Errorf("ended at %d", next-1)
					} else {
						err = nil
					}
					done <- err
					return
				}
				for _, line := range bytes.Split(bytes.TrimSuffix(b, []byte("\n")), []byte("\n")) {
					var e api.Event
					if json.Unmarshal(line, &e) != nil {
						done <- fmt.Errorf("line %.100q", line)
						return
					}
					next = e.Seq + 1
				}
				if i > 0 && rand.Intn(10) == 0 {
					time.Sleep(time.Duration(i) * time.Millisecond)
				}
			}
		}()
	}
	for i := range n {
		l.append(api.Event{K: api.KindStdout, ID: "e", Text: "line"}, i == n-1)
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestReaderWaitsAndGoesOn(t *testing.T) {
	l := newEventLog(1<<20, 0, tempFiles(t))
	defer l.free()
	r := &Reader{log: l}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if _, err := r.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	l.append(api.Event{K: api.KindStart, ID: "e", N: 1}, false)
	b, err := r.Next(context.Background())
	if err != nil || string(b) != `{"k":"start","id":"e","n":1,"seq":1}`+"\n" {
		t.Fatalf("%q %v", b, err)
	}
}
