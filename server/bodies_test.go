package server

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/cellard/cellard/protocol/api"
)

// What all connections send at once is bounded together, and is free again when it was
// read, or when who sent it went away.
func TestBodiesTogether(t *testing.T) {
	m := newManager(t)
	m.script = echo
	a := serveUnix(t, Options{Manager: m, MaxBody: 1000})
	body := `{"code":"` + strings.Repeat("x", 900) + `"}`
	begin := func() net.Conn {
		c := a.dial()
		fmt.Fprintf(c, "POST /v1/interpreter:run HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(body), body[:len(body)-1])
		return c
	}
	var held []net.Conn
	for range maxBodies {
		held = append(held, begin())
	}
	reading := func(bodies int) {
		t.Helper()
		for end := time.Now().Add(time.Minute); a.s.reading.Load() != int64(bodies*(len(body)-1)); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d bytes are counted, of %d bodies", a.s.reading.Load(), bodies)
			}
		}
	}
	reading(maxBodies)
	c := begin()
	if status, _ := rawAnswer(t, c); status != 429 {
		t.Errorf("one too many: %d", status)
	}
	a.refused(429, api.CodeBusy, "POST", "/v1/interpreter:run", body)
	a.call(200, "GET", "/v1/health", "")
	held[0].Close()
	reading(maxBodies - 1)
	a.call(200, "POST", "/v1/interpreter:run", body)
	for _, c := range held[1:] {
		fmt.Fprint(c, "}")
		if status, _ := rawAnswer(t, c); status != 200 {
			t.Errorf("one that waited: %d", status)
		}
	}
	reading(0)
}
