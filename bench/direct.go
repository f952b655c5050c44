package main

import (
	"bufio"
	"net"
	"net/http"
)

// direct sends one request after another over one connection, on the caller's own
// goroutine. net/http's Transport hands each one to two goroutines of its own and back:
// on a machine of two cores that are busy with a kernel and an agent these take turns
// with both, and what is measured would be much of it the client.
type direct struct {
	conn net.Conn
	r    *bufio.Reader
	w    *bufio.Writer
}

// dialDirect connects to an agent's socket; the caller closes the connection.
func dialDirect(socket string) (*direct, error) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return nil, err
	}
	return &direct{conn: conn, r: bufio.NewReaderSize(conn, 64<<10), w: bufio.NewWriter(conn)}, nil
}

// RoundTrip implements [http.RoundTripper]. The answer's body is read to its end before
// the next request.
func (d *direct) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := req.Write(d.w); err != nil {
		return nil, err
	}
	if err := d.w.Flush(); err != nil {
		return nil, err
	}
	return http.ReadResponse(d.r, req)
}
