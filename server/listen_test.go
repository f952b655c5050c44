package server

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mdlayher/vsock"

	"github.com/cellard/cellard/protocol/api"
)

func TestListenAddresses(t *testing.T) {
	for _, address := range []string{"", "x", "/run/x.sock", "http://127.0.0.1:1", "unix://relative", "unix:///", "unix://@abstract",
		"unix:///nowhere/at/all.sock", "unix:///" + strings.Repeat("x", 200), "tcp://127.0.0.1", "tcp://127.0.0.1:99999", "tcp://example.org:0",
		"vsock://52", "vsock://:x", "vsock://:0", "vsock://:4294967295", "vsock://2:52",
		"tcp://0.0.0.0:0", "tcp://:0", "tcp://[::]:0", "tcp://192.0.2.1:0"} {
		l, err := Listen(address, ListenOptions{vsock: func(uint32) (net.Listener, error) {
			t.Errorf("%s was opened", address)
			return nil, errors.New("not opened")
		}})
		if err == nil {
			l.Close()
			t.Errorf("%s was taken", address)
		} else if !strings.Contains(err.Error(), address) {
			t.Errorf("%s: the error does not name it: %v", address, err)
		}
	}
	for _, address := range []string{"tcp://127.0.0.1:0", "tcp://localhost:0"} {
		l := listenTest(t, address, ListenOptions{})
		if !l.NeedsToken() || !strings.HasPrefix(l.String(), "tcp://127.0.0.1:") || strings.HasSuffix(l.String(), ":0") {
			t.Errorf("%s: %s", address, l)
		}
		l.Close()
	}
	l := listenTest(t, "tcp://:0", ListenOptions{TCPAny: true})
	if !l.NeedsToken() {
		t.Error("without a token")
	}
	l.Close()
}

func TestToken(t *testing.T) {
	a := serveTCP(t, Options{Manager: newManager(t), Token: "secret"})
	a.call(200, "GET", "/v1/health", "")
	a.call(200, "GET", "/v1/health", "", "Authorization", "bearer  secret ")
	for _, h := range []string{"Bearer", "Bearer ", "Bearer wrong", "Bearer secretx", "Bearer secre", "Basic secret", "secret", "Bearersecret"} {
		a.refused(401, api.CodeUnauthorized, "GET", "/v1/health", "", "Authorization", h)
	}
	a.token = ""
	// Before anything else of the request is looked at.
	for _, path := range []string{"/v1/health", "/metrics", "/", "/v1/interpreter:run"} {
		a.refused(401, api.CodeUnauthorized, "POST", path, "no JSON")
	}
	if _, h := a.call(401, "GET", "/v1/health", ""); !strings.HasPrefix(h.Get("WWW-Authenticate"), "Bearer") {
		t.Errorf("headers %v", h)
	}
	c := a.dial()
	_, _ = io.WriteString(c, "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n")
	if status, _ := rawAnswer(t, c); status != 401 {
		t.Errorf("OPTIONS *: %d", status)
	}
	// A server without a token lets nobody in.
	a = serveTCP(t, Options{Manager: newManager(t)})
	for _, h := range []string{"", "Bearer", "Bearer "} {
		a.refused(401, api.CodeUnauthorized, "GET", "/v1/health", "", "Authorization", h)
	}
}

func TestUnixSocketFile(t *testing.T) {
	path := socketPath(t)
	l := listenTest(t, "unix://"+path, ListenOptions{})
	if fi, err := os.Lstat(path); err != nil || fi.Mode() != os.ModeSocket|0o600 {
		t.Fatalf("%v %v", fi.Mode(), err)
	}
	// One that answers is left alone.
	if _, err := Listen("unix://"+path, ListenOptions{}); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a live socket: %v", err)
	}
	l.Close()
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after Close: %v", err)
	}
	// What a killed agent left is replaced.
	stale, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	stale.(*net.UnixListener).SetUnlinkOnClose(false)
	stale.Close()
	l = listenTest(t, "unix://"+path, ListenOptions{})
	// Another's socket that has taken the place is not removed.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	other := listenTest(t, "unix://"+path, ListenOptions{})
	l.Close()
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("the other's socket: %v", err)
	}
	other.Close()
	// No file is removed, and no link followed.
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen("unix://"+path, ListenOptions{}); err == nil {
		t.Error("a file was taken for a stale socket")
	}
	if err := os.Rename(path, path+"2"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path+"2", path); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen("unix://"+path, ListenOptions{}); err == nil {
		t.Error("a link was taken for a stale socket")
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "precious" {
		t.Errorf("%q %v", b, err)
	}
}

// asUID runs f on a thread of its own with another effective uid, as which the kernel
// then tells it to a peer. The thread ends with it.
func asUID(uid int, f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		keep := ^uintptr(0)
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, keep, uintptr(uid), keep); errno != 0 {
			panic(errno)
		}
		f()
	}()
	<-done
}

const (
	cellUID  = 61001
	otherUID = 61002
)

func TestUnixPeers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can take another's uid")
	}
	open := func(o ListenOptions) *agent {
		path := socketPath(t)
		if err := os.Chmod(strings.TrimSuffix(path, "/s"), 0o711); err != nil {
			t.Fatal(err)
		}
		return serveOn(t, listenTest(t, "unix://"+path, o), Options{Manager: newManager(t)})
	}
	// status is what a peer of that uid is answered; 0 if it can't connect.
	status := func(a *agent, uid int) (status int, body string) {
		asUID(uid, func() {
			c, err := net.Dial("unix", a.l.Addr().String())
			if err != nil {
				return
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(patience))
			_, _ = io.WriteString(c, "GET /v1/health HTTP/1.1\r\nHost: a\r\n\r\n")
			status, body = rawAnswer(t, c)
		})
		return status, body
	}

	a := open(ListenOptions{})
	if s, _ := status(a, 0); s != 200 {
		t.Errorf("root: %d", s)
	}
	if s, _ := status(a, otherUID); s != 0 {
		t.Errorf("another could connect to a socket of mode 0600: %d", s)
	}
	// The mode is not what keeps others out: the uid is.
	if err := os.Chmod(a.l.Addr().String(), 0o666); err != nil {
		t.Fatal(err)
	}
	if s, b := status(a, otherUID); s != 401 || !strings.Contains(b, `"code":"unauthorized"`) {
		t.Errorf("another: %d %s", s, b)
	}
	a = open(ListenOptions{AllowUIDs: []int{otherUID, cellUID}, CellUIDs: []int{cellUID}})
	for uid, want := range map[int]int{0: 200, otherUID: 200, cellUID: 401, 61003: 401} {
		if s, b := status(a, uid); s != want {
			t.Errorf("uid %d: %d %s, want %d", uid, s, b, want)
		}
	}

	// Another's socket is not removed, stale or not.
	path := a.l.Addr().String()
	a.s.Close()
	stale, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	stale.(*net.UnixListener).SetUnlinkOnClose(false)
	stale.Close()
	if err := os.Chown(path, otherUID, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen("unix://"+path, ListenOptions{}); err == nil || !strings.Contains(err.Error(), "another user's") {
		t.Errorf("another user's socket: %v", err)
	}
}

// A umask that takes more away than the mode does not make the socket unusable.
func TestUnixUmask(t *testing.T) {
	if os.Getenv("UMASK_TEST") == "" {
		// A umask is the process's: a process of its own.
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		c := exec.Command(self, "-test.run=^TestUnixUmask$", "-test.v")
		c.Env = append(os.Environ(), "UMASK_TEST=1")
		out, err := c.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	for _, mask := range []int{0o777, 0} {
		path := socketPath(t)
		syscall.Umask(mask)
		l, err := Listen("unix://"+path, ListenOptions{})
		syscall.Umask(0o022)
		if err != nil {
			t.Fatal(err)
		}
		if fi, err := os.Lstat(path); err != nil || fi.Mode().Perm() != 0o600 {
			t.Errorf("umask %o: mode %v, %v", mask, fi.Mode(), err)
		}
		l.Close()
	}
}

// vsockListener is a Unix socket whose peers have the CIDs that the test says.
type vsockListener struct {
	net.Listener
	mu   sync.Mutex
	cids []uint32
}

type vsockConn struct {
	net.Conn
	cid uint32
}

func (c vsockConn) RemoteAddr() net.Addr { return &vsock.Addr{ContextID: c.cid, Port: 1024} }

func (l *vsockListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	cid := l.cids[0]
	l.cids = l.cids[1:]
	return vsockConn{c, cid}, nil
}

func TestVsockPeers(t *testing.T) {
	var got uint32
	vl := &vsockListener{cids: []uint32{2, 1, 0, 3, 42, 4294967295}}
	var err error
	if vl.Listener, err = net.Listen("unix", socketPath(t)); err != nil {
		t.Fatal(err)
	}
	l := listenTest(t, "vsock://:52", ListenOptions{AllowCIDs: []uint32{42}, vsock: func(port uint32) (net.Listener, error) {
		got = port
		return vl, nil
	}})
	if got != 52 || l.NeedsToken() || l.String() != "vsock://:52" {
		t.Errorf("port %d, %s", got, l)
	}
	a := serveOn(t, l, Options{Manager: newManager(t)})
	for _, want := range []int{200, 401, 401, 401, 200, 401} {
		c := a.dial()
		_, _ = io.WriteString(c, "GET /v1/health HTTP/1.1\r\nHost: a\r\n\r\n")
		status, body := rawAnswer(t, c)
		if status != want || want == 401 && !strings.Contains(body, `"code":"unauthorized"`) {
			t.Errorf("%d %s, want %d", status, body, want)
		}
		c.Close()
	}
	// A listener whose peers are not known lets nobody in.
	plain, err := net.Listen("unix", socketPath(t))
	if err != nil {
		t.Fatal(err)
	}
	a = serveOn(t, listenTest(t, "vsock://:52", ListenOptions{vsock: func(uint32) (net.Listener, error) { return plain, nil }}), Options{Manager: newManager(t)})
	if status, _ := rawAnswer(t, a.dial()); status != 401 {
		t.Errorf("a peer that is not known: %d", status)
	}
}

func TestVsockErrors(t *testing.T) {
	for cause, want := range map[error]string{
		syscall.EACCES:       "only root",
		syscall.EAFNOSUPPORT: "no vsock",
		syscall.EADDRINUSE:   "address already in use",
	} {
		_, err := Listen("vsock://:52", ListenOptions{vsock: func(uint32) (net.Listener, error) {
			return nil, &net.OpError{Op: "listen", Net: "vsock", Err: os.NewSyscallError("bind", cause)}
		}})
		if !errors.Is(err, cause) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
