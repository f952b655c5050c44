package endtoend

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/cellard/cellard/internal/fixture"
)

// unit reads a unit file of the examples: the values of each key.
func unit(t *testing.T, name string) map[string][]string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "examples", "systemd", name))
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string][]string{}
	for line := range strings.Lines(string(b)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(key, "#") {
			keys[key] = append(keys[key], value)
		}
	}
	return keys
}

// execStart is the command of the example's service, without the binary.
func execStart(t *testing.T) []string {
	t.Helper()
	lines := unit(t, "cellard.service")["ExecStart"]
	if len(lines) != 1 {
		t.Fatalf("ExecStart: %q", lines)
	}
	return strings.Fields(lines[0])[1:]
}

// manager stands in for systemd: it opens sockets and is told what the agent is at.
type manager struct {
	t      *testing.T
	notify *net.UnixConn
	path   string // NOTIFY_SOCKET

	mu    sync.Mutex
	told  []string
	ended chan struct{}
}

func newManager(t *testing.T) *manager {
	t.Helper()
	m := &manager{t: t, path: filepath.Join(fixture.Dir(t, 0o755), "n"), ended: make(chan struct{})}
	var err error
	if m.notify, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: m.path, Net: "unixgram"}); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(m.ended)
		b := make([]byte, 4096)
		for {
			n, err := m.notify.Read(b)
			if err != nil {
				return
			}
			m.mu.Lock()
			m.told = append(m.told, string(b[:n]))
			m.mu.Unlock()
		}
	}()
	t.Cleanup(func() { m.notify.Close(); <-m.ended })
	return m
}

// all are the messages so far.
func (m *manager) all() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.told)
}

// wasTold counts the messages that begin so.
func (m *manager) wasTold(state string) (n int) {
	for _, s := range m.all() {
		if s == state || strings.HasPrefix(s, state+"\n") {
			n++
		}
	}
	return n
}

// listenFile opens a socket as a socket unit does, and gives its descriptor.
func listenFile(t *testing.T, network, address string) (*os.File, string) {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	if u, ok := l.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false)
	}
	f, err := l.(interface{ File() (*os.File, error) }).File()
	at := l.Addr().String()
	l.Close() // the descriptor goes on listening
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f, at
}

// Sockets that systemd opened are served on with the checks of each kind; kernels get
// neither them nor what tells of them; systemd is told of the agent's life.
func TestSocketActivation(t *testing.T) {
	m := newManager(t)
	socket := filepath.Join(fixture.Dir(t, 0o755), "s")
	unix, _ := listenFile(t, "unix", socket)
	if err := os.Chmod(socket, 0o666); err != nil { // so that it is the agent that refuses
		t.Fatal(err)
	}
	tcp, address := listenFile(t, "tcp", "127.0.0.1:0")
	// Now: Fd makes a socket block, for the agent that shares it too.
	var inodes []string
	for _, f := range []*os.File{unix, tcp} {
		inode, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		inodes = append(inodes, inode)
	}
	a := start(t, config{socket: socket,
		env: []string{"CELLARD_TOKEN=a-token", "NOTIFY_SOCKET=" + m.path, "WATCHDOG_USEC=100000", "CREDENTIALS_DIRECTORY=/nowhere"},
		command: func(binary string, args ...string) *exec.Cmd {
			// LISTEN_PID is the agent's own: exec keeps it.
			c := exec.Command("/bin/sh", append([]string{"-c", `export LISTEN_FDS=2 LISTEN_FDNAMES=one:two LISTEN_PID=$$ WATCHDOG_PID=$$; exec "$0" "$@"`, binary}, append(execStart(t), args...)...)...)
			c.ExtraFiles = []*os.File{unix, tcp}
			return c
		}})
	a.eventually("systemd is told that the agent is ready and lives", func() error {
		if m.wasTold("READY=1") != 1 || m.wasTold("WATCHDOG=1") < 2 {
			return fmt.Errorf("told %q", m.all())
		}
		return nil
	})

	// TCP has its token.
	for token, want := range map[string]int{"": http.StatusUnauthorized, "other": http.StatusUnauthorized, "a-token": http.StatusOK} {
		req, err := http.NewRequest("GET", "http://"+address+"/v1/health", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		c := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
		res, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("token %q: HTTP %d", token, res.StatusCode)
		}
	}

	// A kernel has none of it.
	if got := a.cell("python", "import os; print(sorted(k for k in os.environ if k.startswith(('LISTEN_', 'NOTIFY_', 'WATCHDOG_', 'CREDENTIALS_', 'CELLARD_T'))), end='')"); got != "[]" {
		t.Errorf("a kernel has %s", got)
	}
	for _, inode := range inodes {
		if got := a.cell("python", "print([fd for fd in os.listdir('/proc/self/fd') if os.path.islink('/proc/self/fd/' + fd) and os.readlink('/proc/self/fd/' + fd) == '"+inode+"'], end='')"); got != "[]" {
			t.Errorf("a kernel has the socket: %s", got)
		}
	}
	// Of a Unix socket the peer's uid counts, not the file's mode.
	if os.Getuid() == 0 {
		got := a.cell("python", "import socket; s = socket.socket(socket.AF_UNIX); s.connect('"+socket+"')\nprint(s.recv(4096).decode())")
		if !strings.Contains(got, "HTTP/1.1 401") || !strings.Contains(got, "may not call") {
			t.Errorf("a cell's call is answered with %s", got)
		}
	}

	a.signal(syscall.SIGTERM)
	a.waitEnd()
	a.eventually("systemd is told that the agent stops", func() error {
		if m.wasTold("STOPPING=1") != 1 {
			return fmt.Errorf("told %q", m.all())
		}
		return nil
	})
	// The sockets are systemd's: they are still there for the next agent.
	if fi, err := os.Stat(socket); err != nil || fi.Mode().Perm() != 0o666 {
		t.Errorf("the socket's file: %v, %v", fi, err)
	}
	c, err := net.Dial("unix", socket)
	if err != nil {
		t.Errorf("the socket no longer listens: %v", err)
	} else {
		c.Close()
	}
}

// Without READY nothing is served, and what can't be served on ends the agent, with a word
// on what to do.
func TestSocketActivationRefuses(t *testing.T) {
	m := newManager(t)
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	a := launch(t, config{env: []string{"NOTIFY_SOCKET=" + m.path}, command: func(binary string, args ...string) *exec.Cmd {
		c := exec.Command("/bin/sh", append([]string{"-c", `LISTEN_FDS=1 LISTEN_PID=$$ exec "$0" serve "$@"`, binary}, args...)...)
		c.ExtraFiles = []*os.File{null}
		return c
	}})
	if a.waitEnd(); a.c.ProcessState.ExitCode() != 2 || !strings.Contains(a.log.String(), "descriptor 3 is no socket") {
		t.Errorf("%v\n%s", a.c.ProcessState, a.log)
	}
	if n := m.wasTold("READY=1"); n != 0 {
		t.Error("systemd was told that it is ready")
	}
	a.log.Reset() // its error is what was wanted
	a.nothingLeft()
}

// systemd's own tool passes sockets as systemd does. What it does beyond the stand-in
// above is to be systemd's: where it isn't installed, the stand-in has to do.
func TestSystemdSocketActivate(t *testing.T) {
	tool, err := exec.LookPath("systemd-socket-activate")
	if err != nil {
		t.Skip("no systemd-socket-activate here; TestSocketActivation passes sockets as it does")
	}
	socket := filepath.Join(fixture.Dir(t, 0o755), "s")
	a := start(t, config{socket: socket, command: func(binary string, args ...string) *exec.Cmd {
		// It hands on no environment but what it is told to.
		var keep []string
		for _, v := range os.Environ() {
			if name, _, _ := strings.Cut(v, "="); name != "PATH" && !strings.ContainsAny(name, "%()") {
				keep = append(keep, "-E", name)
			}
		}
		return exec.Command(tool, append(append(keep, "-l", socket, "--fdname=cellard", binary), append(execStart(t), args...)...)...)
	}})
	if got := a.cell("python", "6 * 7"); got != "42" {
		t.Error(got)
	}
}

// The example's units are what systemd itself takes, where it is there to say so.
func TestUnitsAreValid(t *testing.T) {
	service, socket := unit(t, "cellard.service"), unit(t, "cellard.socket")
	for key, want := range map[string]string{"Type": "notify", "KillMode": "mixed", "OOMPolicy": "continue", "Delegate": "yes", "Requires": "cellard.socket"} {
		if got := strings.Join(service[key], " "); got != want {
			t.Errorf("%s=%s, want %s", key, got, want)
		}
	}
	if got := socket["ListenStream"]; len(got) != 1 || got[0] != "/run/cellard.sock" {
		t.Errorf("ListenStream=%q", got)
	}
	tool, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("no systemd-analyze here")
		return
	}
	// Beside copies of the units, with a binary that is there.
	binary, err := binaries.tested()
	if err != nil {
		t.Fatal(err)
	}
	dir := fixture.Dir(t, 0o755)
	for _, name := range []string{"cellard.service", "cellard.socket"} {
		b, err := os.ReadFile(filepath.Join("..", "..", "examples", "systemd", name))
		if err != nil {
			t.Fatal(err)
		}
		b = []byte(strings.ReplaceAll(string(b), "/usr/local/bin/cellard", binary))
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.Command(tool, "verify", "--recursive-errors=no", filepath.Join(dir, "cellard.service"), filepath.Join(dir, "cellard.socket"))
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "cellard.s") {
			t.Errorf("systemd-analyze: %s", line)
		}
	}
}
