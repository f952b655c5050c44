package server

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// file is the descriptor of a listener, as a service manager hands it over.
func file(t *testing.T, l interface {
	File() (*os.File, error)
	Close() error
}) *os.File {
	t.Helper()
	f, err := l.File()
	l.Close()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestListenFileServes(t *testing.T) {
	path := socketPath(t)
	ul, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ul.(*net.UnixListener).SetUnlinkOnClose(false)
	tl, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		f       *os.File
		address string
		token   bool
	}{
		{file(t, ul.(*net.UnixListener)), "unix://" + path, false},
		{file(t, tl.(*net.TCPListener)), "tcp://" + tl.Addr().String(), true},
	} {
		l, err := ListenFile(c.f, ListenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if l.String() != c.address || l.NeedsToken() != c.token || (l.check == nil) != c.token {
			t.Errorf("%s, token %v, a check of the peer %v", l, l.NeedsToken(), l.check != nil)
		}
		if _, err := c.f.Stat(); err == nil {
			t.Error("the file is still open")
		}
		m := newManager(t)
		a := serveOn(t, l, Options{Manager: m, Token: "a-token"})
		a.call(200, "GET", "/v1/health", "")
		if err := a.s.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the socket's file was not ours to remove: %v", err)
	}
}

// A vsock socket is listened on, not called: what is called is the machine's own device.
func TestListenFileOfVsock(t *testing.T) {
	fd, err := unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Skipf("this machine has no vsock at all: %v", err)
	}
	f := os.NewFile(uintptr(fd), "v")
	defer f.Close()
	if err := unix.Bind(fd, &unix.SockaddrVM{CID: unix.VMADDR_CID_ANY, Port: unix.VMADDR_PORT_ANY}); err != nil {
		t.Skipf("nor one to bind to: %v", err)
	}
	if err := unix.Listen(fd, 1); err != nil {
		t.Fatal(err)
	}
	l, err := ListenFile(f, ListenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if !strings.HasPrefix(l.String(), "vsock://:") || l.NeedsToken() || l.check == nil {
		t.Errorf("%s, token %v, a check of the peer %v", l, l.NeedsToken(), l.check != nil)
	}
}

func TestListenFileRefuses(t *testing.T) {
	pipe, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	dgram, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "d"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	other := os.NewFile(uintptr(pair[1]), "other")
	defer other.Close()
	for want, f := range map[string]*os.File{
		"no socket":             pipe,
		"no stream socket that": file(t, dgram),
		"Accept=no":             os.NewFile(uintptr(pair[0]), "connected"),
	} {
		if l, err := ListenFile(f, ListenOptions{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v, %v", want, l, err)
		}
	}
	// As of Listen: past loopback only where that was asked for.
	for ip, ok := range map[string]bool{"127.0.0.1": true, "::1": true, "0.0.0.0": false, "::": false, "192.0.2.1": false} {
		if err := mayListen(netip.MustParseAddr(ip), ip, ListenOptions{}); (err == nil) != ok {
			t.Errorf("%s: %v", ip, err)
		}
		if err := mayListen(netip.MustParseAddr(ip), ip, ListenOptions{TCPAny: true}); err != nil {
			t.Errorf("%s with TCPAny: %v", ip, err)
		}
	}
}
