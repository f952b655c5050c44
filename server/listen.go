package server

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
)

// ListenOptions say who may call. The zero value is the strictest.
type ListenOptions struct {
	// AllowUIDs may call on a Unix socket besides the agent's own uid and root.
	AllowUIDs []int
	// CellUIDs may never: those that cells run as, where it is not the agent's own.
	CellUIDs []int
	// AllowCIDs may call on vsock besides the host, CID 2.
	AllowCIDs []uint32
	// TCPAny lets TCP listen on other addresses than loopback.
	TCPAny bool

	vsock func(port uint32) (net.Listener, error) // nil: the machine's
}

// Listener is a place to serve on, and who may call there.
type Listener struct {
	net.Listener
	address string
	token   bool                 // each request has to have the bearer token
	check   func(net.Conn) error // refuses a peer; nil: none
}

// String is the address as it was asked for, with the port that a 0 became.
func (l *Listener) String() string { return l.address }

// kind is the address's scheme: vsock, unix or tcp.
func (l *Listener) kind() string {
	kind, _, _ := strings.Cut(l.address, "://")
	return kind
}

// NeedsToken tells whether each request has to have the bearer token.
func (l *Listener) NeedsToken() bool { return l.token }

// AddressError says what is wrong with an address as it is written, or that it may not be
// listened on: what trying again won't mend.
type AddressError string

func (e AddressError) Error() string { return string(e) }

// Listen opens a listener: vsock://:PORT, unix:///PATH or tcp://HOST:PORT. The
// caller gives it to Serve, which closes it, or closes it. An [AddressError] is among its
// errors.
func Listen(address string, o ListenOptions) (*Listener, error) {
	l, err := listen(address, o)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("listen on %s: %w; listen on another, or stop what serves there", address, err)
	}
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	return l, nil
}

func listen(address string, o ListenOptions) (*Listener, error) {
	scheme, rest, ok := strings.Cut(address, "://")
	switch {
	case !ok:
	case scheme == "vsock":
		return listenVsock(rest, o)
	case scheme == "unix":
		if !strings.HasPrefix(rest, "/") {
			return nil, AddressError("want an absolute path, as in unix:///run/cellard.sock")
		}
		return listenUnix(rest, o)
	case scheme == "tcp":
		return listenTCP(rest, o)
	}
	return nil, AddressError("no such kind of address; want vsock://:52, unix:///run/cellard.sock or tcp://127.0.0.1:7520")
}
