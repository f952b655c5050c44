package jupyter

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestBackpressure: who doesn't close messages gets no more than QueueBytes of them,
// and who goes on gets all, in order.
func TestBackpressure(t *testing.T) {
	const size, count, queue = 100_000, 300, 1 << 20
	k, c := startFake(t, ClientOptions{QueueBytes: queue})
	var sent atomic.Int64
	done := make(chan error)
	go func() {
		for i := range count {
			if err := k.send(IOPub, k.message(fmt.Sprint(i), "stream", `{"text":"`+strings.Repeat("x", size)+`"}`)...); err != nil {
				done <- err
				return
			}
			sent.Add(1)
		}
		done <- nil
	}()
	// The sender stops once the queue and the sockets between are full.
	for last := int64(-1); last != sent.Load(); time.Sleep(200 * time.Millisecond) {
		last = sent.Load()
	}
	if n := len(c.Messages()); n < 8 || n > queue/size {
		t.Errorf("%d messages of %d bytes are queued in %d", n, size, queue)
	}
	if n := sent.Load(); n > 50 {
		t.Errorf("%d messages were taken from the kernel", n)
	}
	for i := range count {
		m := next(t, c)
		if m.Parent.MsgID != fmt.Sprint(i) {
			t.Fatalf("message %s, want %d", m.Parent.MsgID, i)
		}
		m.Close()
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	// One that is larger than the queue passes too.
	if err := k.send(IOPub, k.stream(3*queue/2)...); err != nil {
		t.Fatal(err)
	}
	m := next(t, c)
	if members, err := m.Content.Members(); err != nil || members.Get("text").Size() != 3*queue/2+2 {
		t.Error(err)
	}
	m.Close()
}

// TestSpilled: a large content is in a file, is checked there, and reads as one in
// memory does. Closing the message closes the file.
func TestSpilled(t *testing.T) {
	var files []*os.File
	k, c := startFake(t, ClientOptions{Inline: 1000, Spill: func() (*os.File, error) {
		f, err := os.CreateTemp(t.TempDir(), "")
		files = append(files, f)
		return f, err
	}})
	forged := k.stream(300_000)
	forged[len(forged)-1] = strings.Replace(forged[len(forged)-1], "xx", "xy", 1)
	long := append([]string{strings.Repeat("topic", 1000)}, k.stream(300_000)...) // the identity is spilled too
	parts := k.stream(300_000)
	for _, parts := range [][]string{forged, long, append(parts, "buffer", strings.Repeat("b", 5000))} {
		if err := k.send(IOPub, parts...); err != nil {
			t.Fatal(err)
		}
	}
	if m := next(t, c); len(m.Identities) != 2 || len(m.Identities[0]) != 5000 {
		t.Errorf("identities: %d", len(m.Identities))
	} else {
		m.Close()
	}
	m := next(t, c)
	if got := c.Stats(); got != (Stats{BadSignatures: 1}) {
		t.Errorf("%+v", got)
	}
	if got, want := observe(m.Content), observe(NewValue([]byte(parts[len(parts)-1]))); got != want {
		t.Errorf("spilled it reads\n%.500s\nin memory\n%.500s", got, want)
	}
	if len(m.Buffers) != 2 || m.Buffers[0].Len() != 6 || !m.Buffers[1].Spilled() {
		t.Errorf("buffers %v", m.Buffers)
	}
	m.Close()
	m.Close()
	if _, err := io.ReadAll(m.Content.Text()); !errors.Is(err, os.ErrClosed) {
		t.Errorf("read after Close: %v", err)
	}
	c.Close()
	for _, f := range files {
		if err := f.Close(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s was left open (%v)", f.Name(), err)
		}
	}
	if len(files) != 3 {
		t.Errorf("%d files for 3 messages", len(files))
	}
}

// TestSpilledBound: what lies in files is bounded too, though it takes no memory.
func TestSpilledBound(t *testing.T) {
	const size, queue = 50_000, 1 << 20
	k, c := startFake(t, ClientOptions{Inline: 1000, QueueBytes: queue})
	var sent atomic.Int64
	flood := make(chan struct{})
	go func() {
		defer close(flood)
		for k.send(IOPub, k.stream(size)...) == nil {
			sent.Add(1)
		}
	}()
	for last := int64(-1); last != sent.Load(); time.Sleep(200 * time.Millisecond) {
		last = sent.Load()
	}
	if n := len(c.Messages()); n == 0 || n > queue/spillOverhead {
		t.Errorf("%d files are queued", n)
	}
	c.Close()
	<-flood
}

// TestSpillFails: with no room on disk a large message is lost and counted, and the
// next one comes.
func TestSpillFails(t *testing.T) {
	k, c := startFake(t, ClientOptions{Inline: 1000, Spill: func() (*os.File, error) { return nil, errors.New("disk full") }})
	for _, parts := range [][]string{k.stream(5000), k.message("p", "last", "{}")} {
		if err := k.send(IOPub, parts...); err != nil {
			t.Fatal(err)
		}
	}
	m := next(t, c)
	defer m.Close()
	if got := c.Stats(); m.Header.MsgType != "last" || got.Unspilled != 1 || got.UnspilledBytes < 5000 {
		t.Errorf("%s, %+v", m.Header.MsgType, got)
	}
}
