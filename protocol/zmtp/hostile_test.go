package zmtp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func concat(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func command(name string, data string) []byte {
	return frame(flagCommand, string(appendCommand(nil, name, []byte(data))))
}

// wantProtocolError checks for a *ProtocolError whose text has all of some words.
func wantProtocolError(t *testing.T, err error, words ...string) {
	t.Helper()
	var malformed *ProtocolError
	if !errors.As(err, &malformed) {
		t.Fatalf("got %v, want a *ProtocolError", err)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q doesn't say %q", err, w)
		}
	}
}

func TestHostileHandshake(t *testing.T) {
	change := func(at int, b ...byte) []byte {
		g := goodGreeting()
		copy(g[at:], b)
		return g
	}
	readyWith := func(metadata string) []byte { return concat(goodGreeting(), command("READY", metadata)) }
	socketType := string(appendProperty(nil, "Socket-Type", []byte("ROUTER")))

	for name, test := range map[string]struct {
		peer []byte
		want string
	}{
		"HTTP":                {[]byte("HTTP/1.1 400 Bad Request\r\n\r\n"), "does not speak ZMTP"},
		"ZMTP 1":              {[]byte("\x01\x00\x01\x00\x01\x00\x01\x00\x01\x00\x01\x00"), "does not speak ZMTP"},
		"ZMTP 2":              {change(offMajor, 1)[:12], "speaks ZMTP 1"}, // ZMTP 2's revision byte is 1
		"signature":           {change(9, 0x41), "signature"},
		"mechanism":           {change(offMechanism, []byte("PLAIN")...), "PLAIN"},
		"no mechanism":        {change(offMechanism, 0, 0, 0, 0), "mechanism"},
		"mechanism and more":  {change(offMechanism+6, 'x'), "mechanism"},
		"as-server":           {change(offAsServer, 7), "as-server"},
		"message first":       {concat(goodGreeting(), frame(0, "hello")), "before READY"},
		"huge message first":  {concat(goodGreeting(), []byte{flagLong, 0x7F, 0, 0, 0, 0, 0, 0, 0}), "before READY"},
		"huge command":        {concat(goodGreeting(), []byte{flagLong | flagCommand, 0, 0, 0, 0, 0x7F, 0, 0, 0}), "over the limit"},
		"negative command":    {concat(goodGreeting(), []byte{flagLong | flagCommand, 0xFF, 0, 0, 0, 0, 0, 0, 0}), "over the limit"},
		"empty command":       {concat(goodGreeting(), frame(flagCommand, "")), "empty"},
		"nameless command":    {concat(goodGreeting(), frame(flagCommand, "\x00READY")), "malformed command"},
		"name past the end":   {concat(goodGreeting(), frame(flagCommand, "\x06READY")), "malformed command"},
		"other command":       {concat(goodGreeting(), command("HELLO", "")), `"HELLO"`},
		"continued command":   {concat(goodGreeting(), frame(flagCommand|flagMore, "\x05READY")), "continued"},
		"reserved flags":      {concat(goodGreeting(), frame(0x80|flagCommand, "\x05READY")), "flags"},
		"refused":             {concat(goodGreeting(), command("ERROR", "\x0bgo away \x1b\n\xff")), `go away \x1b\n\xff`},
		"refused, no reason":  {concat(goodGreeting(), command("ERROR", "")), "no reason"},
		"refused, bad reason": {concat(goodGreeting(), command("ERROR", "\xFFx")), "no reason"},
		"no socket type":      {readyWith(""), "no Socket-Type"},
		"wrong socket type":   {concat(goodGreeting(), ready("PUB")), `"PUB"`},
		"long socket type":    {concat(goodGreeting(), ready(strings.Repeat("x", 4000))), "can't talk to"},
		"nameless property":   {readyWith("\x00\x00\x00\x00\x00"), "malformed metadata"},
		"cut in the name":     {readyWith("\x0bSocket"), "malformed metadata"},
		"cut in the length":   {readyWith("\x0bSocket-Type\x00\x00\x00"), "malformed metadata"},
		"cut in the value":    {readyWith("\x0bSocket-Type\x00\x00\x00\x07ROUTER"), "malformed metadata"},
		"value of 4 GiB":      {readyWith("\x0bSocket-Type\xff\xff\xff\xff"), "malformed metadata"},
		"odd name":            {readyWith("\x03a b\x00\x00\x00\x00" + socketType), "malformed metadata"},
		"twice":               {readyWith(socketType + strings.ToUpper(socketType)), "twice"},
	} {
		t.Run(name, func(t *testing.T) {
			path := listenRaw(t, func(nc net.Conn) {
				nc.Write(test.peer)
				io.Copy(io.Discard, nc)
			})
			_, err := Dial(testContext(t), "unix", path, Dealer, Options{HandshakeTimeout: patience})
			wantProtocolError(t, err, test.want, path)
		})
	}
}

func TestHandshakeTolerates(t *testing.T) {
	g := greeting{major: 4, minor: 0, mechanism: "NULL", asServer: true}.append(nil)
	copy(g[1:9], "\x00\x00\x00\x00\x00\x00\x00\x01") // as libzmq
	g[63] = 9
	metadata := appendProperty(nil, "X-Other", []byte("thing"))
	metadata = appendProperty(metadata, "SOCKET-TYPE", []byte("ROUTER"))
	path := listenRaw(t, func(nc net.Conn) {
		nc.Write(concat(g, command("READY", string(metadata))))
		io.Copy(io.Discard, nc)
	})
	mustDial(t, "unix", path, Dealer, Options{})
}

// TestSilence stops a handshake at each of its bytes, with the connection open.
func TestSilence(t *testing.T) {
	whole := concat(goodGreeting(), ready("ROUTER"))
	var wg sync.WaitGroup
	for n := range len(whole) {
		path := listenRaw(t, func(nc net.Conn) {
			nc.Write(whole[:n])
			io.Copy(io.Discard, nc)
		})
		wg.Add(1)
		go func() {
			defer wg.Done()
			_, err := Dial(testContext(t), "unix", path, Dealer, Options{HandshakeTimeout: 100 * time.Millisecond})
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("silent after %d bytes: %v", n, err)
			}
		}()
	}
	wg.Wait()
}

func TestDialCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(testContext(t))
	path := listenRaw(t, func(nc net.Conn) {
		cancel()
		io.Copy(io.Discard, nc)
	})
	if _, err := Dial(ctx, "unix", path, Dealer, Options{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// gone tells whether an error is one that a peer's end may give. Closing a Unix
// socket with unread bytes in it resets the connection.
func gone(err error) bool {
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// TestHandshakeCut ends a handshake at each of its bytes.
func TestHandshakeCut(t *testing.T) {
	whole := concat(goodGreeting(), ready("ROUTER"))
	for n := range len(whole) {
		path := listenRaw(t, func(nc net.Conn) { nc.Write(whole[:n]) })
		_, err := Dial(testContext(t), "unix", path, Dealer, Options{HandshakeTimeout: patience})
		if !gone(err) {
			t.Errorf("cut after %d bytes: %v", n, err)
		}
	}
}

func TestDialRefuses(t *testing.T) {
	for _, test := range []struct {
		network, address string
		typ              Type
		o                Options
		want             string
	}{
		{"udp", "x", Dealer, Options{}, "unknown network"},
		{"unix", "/" + strings.Repeat("x", 107), Dealer, Options{}, "shorter directory"},
		{"unix", "x", "PUSH", Options{}, "unknown socket type"},
		{"unix", "x", Dealer, Options{Identity: make([]byte, 1)}, "identity"},
		{"unix", "x", Dealer, Options{Identity: bytes.Repeat([]byte("x"), 256)}, "identity"},
	} {
		_, err := Dial(testContext(t), test.network, test.address, test.typ, test.o)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("got %v, want %q", err, test.want)
		}
	}
}
