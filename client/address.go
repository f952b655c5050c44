package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/mdlayher/vsock"
)

// Dialer opens a connection to an agent. The context bounds the dialing alone.
type Dialer func(ctx context.Context) (net.Conn, error)

// defaultPort is the agent's vsock port.
const defaultPort = 52

const kinds = "unix:///run/cellard.sock, vsock://CID:52, firecracker:///PATH/v.sock?port=52 or http://HOST:PORT"

// target is an address that was understood: where requests go, and how a connection is
// made; a nil dial is net/http's own.
type target struct {
	base string
	dial Dialer
}

// parseAddress tells how the agent at an address is reached.
func parseAddress(address string) (target, error) {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		return target{}, fmt.Errorf("%q is no address of an agent; want one as %s", address, kinds)
	}
	switch scheme {
	case "unix":
		if !strings.HasPrefix(rest, "/") {
			return target{}, fmt.Errorf("%s: want an absolute path, as in unix:///run/cellard.sock", address)
		}
		return target{"http://agent", func(ctx context.Context) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", rest)
		}}, nil
	case "vsock":
		cidText, portText, found := strings.Cut(rest, ":")
		cid, err := strconv.ParseUint(cidText, 10, 32)
		port := uint64(defaultPort)
		if err == nil && found {
			port, err = parsePort(portText)
		}
		if err != nil || cid == math.MaxUint32 {
			return target{}, fmt.Errorf("%s: want a CID and a port, as in vsock://3:%d", address, defaultPort)
		}
		return target{"http://agent", func(ctx context.Context) (net.Conn, error) {
			return dialVsock(ctx, uint32(cid), uint32(port))
		}}, nil
	case "firecracker":
		path, query, _ := strings.Cut(rest, "?")
		values, err := url.ParseQuery(query)
		port := uint64(defaultPort)
		if v := values.Get("port"); err == nil && v != "" {
			port, err = parsePort(v)
		}
		if err != nil || !strings.HasPrefix(path, "/") {
			return target{}, fmt.Errorf("%s: want the absolute path of the VM's vsock socket, as in firecracker:///srv/vm1/v.sock?port=%d", address, defaultPort)
		}
		return target{"http://agent", func(ctx context.Context) (net.Conn, error) {
			return dialFirecracker(ctx, path, uint32(port))
		}}, nil
	case "tcp", "http", "https":
		if scheme == "tcp" { // as cellard serve names it
			address = "http://" + rest
		}
		u, err := url.Parse(address)
		if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return target{}, fmt.Errorf("%s: want a host and a port, as in http://127.0.0.1:7520; the token goes into Options.Token", redacted(u, address))
		}
		return target{base: strings.TrimSuffix(u.String(), "/")}, nil
	}
	return target{}, fmt.Errorf("%s: no such kind of address; want one as %s", address, kinds)
}

// redacted keeps a password that was put into an address out of the error.
func redacted(u *url.URL, address string) string {
	if u != nil {
		return u.Redacted()
	}
	return strings.SplitN(address, "@", 2)[0]
}

func parsePort(s string) (uint64, error) {
	n, err := strconv.ParseUint(s, 10, 32)
	if err == nil && (n == 0 || n == math.MaxUint32) {
		err = errors.New("no such port")
	}
	return n, err
}

// dialVsock dials by AF_VSOCK. The library's dial takes no context: one that has ended
// leaves it behind, for as long as the kernel gives a connect (2 s, vsock(7)).
func dialVsock(ctx context.Context, cid, port uint32) (net.Conn, error) {
	type outcome struct {
		c   *vsock.Conn
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		c, err := vsock.Dial(cid, port, nil)
		done <- outcome{c, err}
	}()
	select {
	case o := <-done:
		if o.err != nil {
			return nil, o.err
		}
		return o.c, nil
	case <-ctx.Done():
		go func() {
			if o := <-done; o.err == nil {
				o.c.Close()
			}
		}()
		return nil, ctx.Err()
	}
}

// maxAck bounds the line that a VMM answers with: "OK " and a port.
const maxAck = 64

// dialFirecracker dials through the Unix socket that Firecracker, and others after it,
// offer in place of AF_VSOCK: CONNECT and the port, then OK and a port of the host's.
// Nothing may be sent before that line has come, for it would be lost; and not a byte
// past it may be read, for it is the agent's.
func dialFirecracker(ctx context.Context, path string, port uint32) (_ net.Conn, err error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer func() {
		if !stop() && err == nil {
			err = ctx.Err()
		}
		if err != nil {
			c.Close()
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			err = fmt.Errorf("vsock port %d by way of %s: %w", port, path, err)
		}
	}()
	if _, err := fmt.Fprintf(c, "CONNECT %d\n", port); err != nil {
		return nil, err
	}
	var line []byte
	for b := make([]byte, 1); !bytes.HasSuffix(line, []byte("\n")); line = append(line, b[0]) {
		if len(line) == maxAck {
			return nil, fmt.Errorf("want OK and a port, not %q", line)
		}
		if _, err := io.ReadFull(c, b); err != nil {
			if errors.Is(err, io.EOF) {
				err = errors.New("the VM closed the connection: nothing listens there, or not yet")
			}
			return nil, err
		}
	}
	if !bytes.HasPrefix(line, []byte("OK ")) && string(line) != "OK\n" {
		return nil, fmt.Errorf("want OK and a port, not %q", line)
	}
	return c, nil
}
