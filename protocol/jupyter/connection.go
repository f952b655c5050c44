package jupyter

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
)

// The transports of a connection file.
const (
	TransportIPC = "ipc"
	TransportTCP = "tcp"
)

// maxConnectionFile is the largest connection file that is read; real ones have
// some 300 bytes.
const maxConnectionFile = 64 << 10

// maxUnixPath is how long the path of a Unix socket may be on Linux: sun_path, less
// its terminating zero.
const maxUnixPath = 107

// ConnectionInfo is what a connection file says: where a kernel's sockets are and
// how its messages are signed (the spec's section "Connection files").
type ConnectionInfo struct {
	Transport       string `json:"transport"`
	IP              string `json:"ip"` // with ipc, what the sockets' paths begin with
	ShellPort       int    `json:"shell_port"`
	IOPubPort       int    `json:"iopub_port"`
	StdinPort       int    `json:"stdin_port"`
	ControlPort     int    `json:"control_port"`
	HBPort          int    `json:"hb_port"`
	Key             string `json:"key"`
	SignatureScheme string `json:"signature_scheme"`
	KernelName      string `json:"kernel_name,omitempty"`
}

// NewIPC makes a ConnectionInfo with a new key, whose sockets are Unix sockets in a
// directory: dir/k-1 to dir/k-5. The directory should be the kernel's own and
// closed to other users, and its path is absolute and short: a socket's path is
// limited to 107 bytes. Nothing is made in it; the kernel binds the sockets.
func NewIPC(dir string) (ConnectionInfo, error) {
	if !filepath.IsAbs(dir) {
		return ConnectionInfo{}, fmt.Errorf("jupyter: sockets in %q: the directory's path must be absolute, the kernel may have another working directory", dir)
	}
	ci := ConnectionInfo{
		Transport: TransportIPC, IP: filepath.Join(dir, "k"),
		ShellPort: 1, IOPubPort: 2, StdinPort: 3, ControlPort: 4, HBPort: 5,
		Key: rand.Text(), SignatureScheme: SchemeSHA256,
	}
	return ci, ci.check()
}

// NewTCP makes a ConnectionInfo with a new key and five free ports of 127.0.0.1.
// Until release is called the ports are held, so that no one else gets them: call
// it just before the kernel starts, and in any case. Between that and the kernel's
// bind another process can still take a port; then the kernel fails, and the
// caller tries again with a new ConnectionInfo.
func NewTCP() (ci ConnectionInfo, release func(), err error) {
	var listeners []net.Listener
	release = func() {
		for _, l := range listeners {
			l.Close()
		}
	}
	ci = ConnectionInfo{
		Transport: TransportTCP, IP: "127.0.0.1",
		Key: rand.Text(), SignatureScheme: SchemeSHA256,
	}
	for _, port := range ci.ports() {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			release()
			return ConnectionInfo{}, func() {}, fmt.Errorf("jupyter: find a free port: %w", err)
		}
		listeners = append(listeners, l)
		*port.number = l.Addr().(*net.TCPAddr).Port
	}
	return ci, release, nil
}

type namedPort struct {
	channel Channel
	field   string
	number  *int
}

func (ci *ConnectionInfo) ports() []namedPort {
	return []namedPort{
		{Shell, "shell_port", &ci.ShellPort},
		{IOPub, "iopub_port", &ci.IOPubPort},
		{Stdin, "stdin_port", &ci.StdinPort},
		{Control, "control_port", &ci.ControlPort},
		{Heartbeat, "hb_port", &ci.HBPort},
	}
}

// Address is where a channel's socket is, as net.Dial and net.Listen take it:
// "unix" and a path, or "tcp" and host:port.
func (ci ConnectionInfo) Address(channel Channel) (network, address string) {
	for _, port := range ci.ports() {
		if port.channel != channel {
			continue
		}
		number := strconv.Itoa(*port.number)
		if ci.Transport == TransportIPC {
			return "unix", ci.IP + "-" + number
		}
		return "tcp", net.JoinHostPort(ci.IP, number)
	}
	return "", ""
}

// check says what is wrong with a ConnectionInfo, if anything is.
func (ci *ConnectionInfo) check() error {
	switch {
	case ci.Transport != TransportIPC && ci.Transport != TransportTCP:
		return fmt.Errorf("jupyter: connection info: transport %.64q: it must be tcp or ipc", ci.Transport)
	case ci.IP == "":
		return errors.New("jupyter: connection info: no ip")
	}
	if _, err := NewSigner(ci.SignatureScheme, ci.Key); err != nil {
		return err
	}
	seen := map[int]string{}
	for _, port := range ci.ports() {
		n := *port.number
		if n < 1 || n > 65535 {
			return fmt.Errorf("jupyter: connection info: %s is %d: it must be from 1 to 65535", port.field, n)
		}
		if other, ok := seen[n]; ok {
			return fmt.Errorf("jupyter: connection info: %s and %s are both %d", other, port.field, n)
		}
		seen[n] = port.field
		if _, path := ci.Address(port.channel); ci.Transport == TransportIPC && len(path) > maxUnixPath {
			return fmt.Errorf("jupyter: the socket path %q has %d bytes, and a Unix socket's may have %d: use a shorter directory", path, len(path), maxUnixPath)
		}
	}
	return nil
}

// WriteFile writes the connection file, readable by its owner alone, and in one
// step: whoever sees it sees all of it.
func (ci ConnectionInfo) WriteFile(path string) (err error) {
	b, err := json.MarshalIndent(ci, "", "  ")
	if err != nil {
		return fmt.Errorf("jupyter: connection file: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".connection-*") // with mode 0600
	if err != nil {
		return fmt.Errorf("jupyter: connection file: %w", err)
	}
	_, err = f.Write(append(b, '\n'))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("jupyter: connection file: %w", err)
	}
	return nil
}

// ParseConnection reads a connection file's content. Fields that it doesn't know
// are ignored.
func ParseConnection(b []byte) (ConnectionInfo, error) {
	var ci ConnectionInfo
	if len(b) > maxConnectionFile {
		return ci, fmt.Errorf("jupyter: connection info: %w: %d bytes, the limit is %d", ErrTooLarge, len(b), maxConnectionFile)
	}
	if err := json.Unmarshal(b, &ci); err != nil {
		return ConnectionInfo{}, fmt.Errorf("jupyter: connection info: %w", err)
	}
	if ci.Transport == "" {
		ci.Transport = TransportTCP // jupyter_client's default
	}
	if ci.SignatureScheme == "" {
		ci.SignatureScheme = SchemeSHA256
	}
	if err := ci.check(); err != nil {
		return ConnectionInfo{}, err
	}
	return ci, nil
}

// ReadConnectionFile reads a connection file.
func ReadConnectionFile(path string) (ConnectionInfo, error) {
	f, err := os.Open(path)
	if err != nil {
		return ConnectionInfo{}, fmt.Errorf("jupyter: connection file: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxConnectionFile+1))
	if err != nil {
		return ConnectionInfo{}, fmt.Errorf("jupyter: connection file: %w", err)
	}
	ci, err := ParseConnection(b)
	if err != nil {
		return ci, fmt.Errorf("%w (in %s)", err, path)
	}
	return ci, nil
}
