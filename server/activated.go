package server

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"

	"github.com/mdlayher/vsock"
	"golang.org/x/sys/unix"
)

// ListenFile makes a listener of a socket that listens already, as systemd hands them
// over (sd_listen_fds(3)): whose it is and where it listens was the operator's to say, who
// may call is checked as on those of Listen. Its file, where it has one, stays. f is
// closed; the caller gives the Listener to Serve, or closes it.
func ListenFile(f *os.File, o ListenOptions) (*Listener, error) {
	defer f.Close()
	l, err := listenFile(f, o)
	if err != nil {
		return nil, fmt.Errorf("the socket %s that was handed over: %w", f.Name(), err)
	}
	return l, nil
}

func listenFile(f *os.File, o ListenOptions) (*Listener, error) {
	fd := int(f.Fd())
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil {
		return nil, fmt.Errorf("it is no socket: %w", err)
	}
	listens, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
	if err != nil || kind != unix.SOCK_STREAM || listens == 0 {
		return nil, errors.New("it is no stream socket that listens; say ListenStream= in the unit, and Accept=no")
	}
	address, err := unix.Getsockname(fd)
	if err != nil {
		return nil, err
	}
	switch a := address.(type) {
	case *unix.SockaddrVM:
		l, err := vsock.FileListener(f)
		if err != nil {
			return nil, err
		}
		return &Listener{Listener: l, address: "vsock://:" + strconv.FormatUint(uint64(a.Port), 10), check: vsockCheck(o)}, nil
	case *unix.SockaddrUnix:
		l, err := net.FileListener(f)
		if err != nil {
			return nil, err
		}
		return &Listener{Listener: l, address: "unix://" + a.Name, check: unixCheck(o)}, nil
	case *unix.SockaddrInet4, *unix.SockaddrInet6:
		l, err := net.FileListener(f)
		if err != nil {
			return nil, err
		}
		at := l.Addr().(*net.TCPAddr).AddrPort()
		if err := mayListen(at.Addr().Unmap(), at.Addr().String(), o); err != nil {
			l.Close()
			return nil, err
		}
		return &Listener{Listener: l, address: "tcp://" + at.String(), token: true}, nil
	}
	return nil, errors.New("it is of no kind that the agent serves on: vsock, Unix and TCP")
}
