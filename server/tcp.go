package server

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
)

// listenTCP listens on loopback, unless told otherwise. A cell can dial loopback as
// the host can, so a token is asked for always.
func listenTCP(address string, o ListenOptions) (*Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, AddressError(fmt.Sprintf("want HOST:PORT, as in tcp://127.0.0.1:7520: %v", err))
	}
	if host == "localhost" {
		host = "127.0.0.1" // the name could be made to mean anything
	}
	ip, err := netip.ParseAddr(host)
	if host != "" && err != nil {
		return nil, AddressError(fmt.Sprintf("%q is no IP address", host))
	}
	if err := mayListen(ip, host, o); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if bad := (*net.AddrError)(nil); errors.As(err, &bad) {
		return nil, AddressError(bad.Error()) // the port
	}
	if err != nil {
		return nil, err
	}
	return &Listener{Listener: l, address: "tcp://" + l.Addr().String(), token: true}, nil
}

func mayListen(ip netip.Addr, host string, o ListenOptions) error {
	if o.TCPAny || ip.IsLoopback() {
		return nil
	}
	return AddressError(fmt.Sprintf("%q is no loopback address: anyone who reaches it could try tokens, and they go over it in clear; --tcp-any allows it", host))
}
