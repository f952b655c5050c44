package jupyter

import (
	"bytes"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var channels = []Channel{Shell, IOPub, Stdin, Control, Heartbeat}

func TestNewIPC(t *testing.T) {
	dir := socketDir(t)
	ci, err := NewIPC(dir)
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewIPC(dir)
	if err != nil || other.Key == ci.Key || len(ci.Key) < 20 {
		t.Errorf("keys %q and %q, %v", ci.Key, other.Key, err)
	}
	seen := map[string]bool{}
	for _, channel := range channels {
		network, address := ci.Address(channel)
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		seen[address] = true
		if network != "unix" || filepath.Dir(address) != dir {
			t.Errorf("%s is at %s %s", channel, network, address)
		}
	}
	if len(seen) != len(channels) {
		t.Errorf("addresses: %v", seen)
	}
	if network, address := ci.Address("other"); network != "" || address != "" {
		t.Errorf("a channel that isn't one is at %s %s", network, address)
	}
}

// TestNewIPCLength takes the longest directory that a socket can be bound in.
func TestNewIPCLength(t *testing.T) {
	base := socketDir(t)
	longest := filepath.Join(base, strings.Repeat("d", maxUnixPath-len("/k-1")-len(base)-1))
	if err := os.Mkdir(longest, 0o700); err != nil {
		t.Fatal(err)
	}
	ci, err := NewIPC(longest)
	if err != nil {
		t.Fatal(err)
	}
	_, address := ci.Address(Shell)
	l, err := net.Listen("unix", address)
	if err != nil {
		t.Fatalf("a path of %d bytes: %v", len(address), err)
	}
	l.Close()
	if _, err := NewIPC(longest + "d"); err == nil || !strings.Contains(err.Error(), "shorter directory") {
		t.Errorf("one byte longer: %v", err)
	}
	if _, err := NewIPC("relative"); err == nil || !strings.Contains(err.Error(), "absolute") {
		t.Errorf("a relative directory: %v", err)
	}
}

func TestNewTCP(t *testing.T) {
	ci, release, err := NewTCP()
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	for _, channel := range channels {
		network, address := ci.Address(channel)
		if l, err := net.Listen(network, address); err == nil {
			l.Close()
			t.Errorf("%s: %s %s isn't held", channel, network, address)
		}
	}
	if err := ci.check(); err != nil {
		t.Error(err)
	}
	release()
	release()
}

func TestConnectionFile(t *testing.T) {
	ci := newIPC(t)
	ci.KernelName = "python3"
	path := filepath.Join(t.TempDir(), "kernel.json")
	// What lies there before, a link even, is replaced and not written through.
	victim := filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, []byte("whole"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, path); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := ci.WriteFile(path); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Lstat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if b, _ := os.ReadFile(victim); string(b) != "whole" {
		t.Errorf("the link's target holds %q", b)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	got, err := ReadConnectionFile(path)
	if err != nil || got != ci {
		t.Errorf("read %+v, %v; wrote %+v", got, err, ci)
	}
	if err := ci.WriteFile(filepath.Join(path, "no", "directory")); err == nil {
		t.Error("written where there is no directory")
	}
	if _, err := ReadConnectionFile(victim); err == nil || !strings.Contains(err.Error(), victim) {
		t.Errorf("a file that isn't one: %v", err)
	}
	if _, err := ReadConnectionFile(filepath.Join(victim, "no")); err == nil {
		t.Error("read what isn't there")
	}
}

// TestForeignConnectionFile reads what jupyter_client writes.
func TestForeignConnectionFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kernel.json")
	const script = `
import sys
from jupyter_client.connect import write_connection_file
write_connection_file(sys.argv[1], ip=sys.argv[2], transport=sys.argv[3], key=b"secret", kernel_name="k", shell_port=11, iopub_port=12, stdin_port=13, hb_port=14, control_port=15)`
	for _, c := range []struct{ ip, transport, network, shell string }{
		{"127.0.0.1", "tcp", "tcp", "127.0.0.1:11"}, {"/tmp/x/kernel", "ipc", "unix", "/tmp/x/kernel-11"},
	} {
		if out, err := exec.Command(python(t), "-c", script, path, c.ip, c.transport).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		ci, err := ReadConnectionFile(path)
		want := ConnectionInfo{
			Transport: c.transport, IP: c.ip, ShellPort: 11, IOPubPort: 12, StdinPort: 13, HBPort: 14, ControlPort: 15,
			Key: "secret", SignatureScheme: SchemeSHA256, KernelName: "k",
		}
		if err != nil || ci != want {
			t.Errorf("read %+v, %v; want %+v", ci, err, want)
		}
		if network, address := ci.Address(Shell); network != c.network || address != c.shell {
			t.Errorf("shell at %s %s", network, address)
		}
	}
}

const goodConnection = `{"transport":"tcp","ip":"127.0.0.1","shell_port":1,"iopub_port":2,"stdin_port":3,"control_port":4,"hb_port":5,"key":"k","signature_scheme":"hmac-sha256"}`

func TestParseConnectionRefuses(t *testing.T) {
	if _, err := ParseConnection([]byte(goodConnection)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ from, to, want string }{
		{`"transport":"tcp"`, `"transport":"pgm"`, "tcp or ipc"},
		{`"ip":"127.0.0.1"`, `"ip":""`, "no ip"},
		{`"ip":"127.0.0.1"`, `"ip":7`, "ip"},
		{`"shell_port":1,`, ``, "shell_port is 0"},
		{`"hb_port":5`, `"hb_port":65536`, "hb_port is 65536"},
		{`"hb_port":5`, `"hb_port":-1`, "hb_port is -1"},
		{`"hb_port":5`, `"hb_port":"5"`, "hb_port"},
		{`"hb_port":5`, `"hb_port":4`, "control_port and hb_port are both 4"},
		{`hmac-sha256`, `hmac-md5`, "hmac-md5"},
		{`"tcp","ip":"127.0.0.1"`, `"ipc","ip":"/` + strings.Repeat("x", maxUnixPath) + `"`, "shorter directory"},
		{`}`, ``, "unexpected end"},
		{`"key":"k"`, `"key":"` + strings.Repeat("k", maxConnectionFile) + `"`, "limit"},
	} {
		text := strings.Replace(goodConnection, c.from, c.to, 1)
		if ci, err := ParseConnection([]byte(text)); err == nil || !strings.Contains(err.Error(), c.want) || ci != (ConnectionInfo{}) {
			t.Errorf("%.300s: %+v, %v; want an error that says %q", text, ci, err, c.want)
		}
	}
	if _, err := ParseConnection(bytes.Repeat([]byte(" "), maxConnectionFile+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a huge file: %v", err)
	}
	if _, err := Dial(testContext(t), ConnectionInfo{}, ClientOptions{}); err == nil {
		t.Error("connected to nothing")
	}
}

func FuzzParseConnection(f *testing.F) {
	f.Add([]byte(goodConnection))
	f.Add([]byte(strings.Replace(goodConnection, "tcp", "ipc", 1)))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		ci, err := ParseConnection(b)
		if err != nil {
			return
		}
		for _, channel := range channels {
			if network, address := ci.Address(channel); network == "" || address == "" {
				t.Fatalf("%+v: %s has no address", ci, channel)
			}
		}
		written, err := json.Marshal(ci)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := ParseConnection(written); err != nil || again != ci {
			t.Fatalf("%+v became %+v, %v", ci, again, err)
		}
	})
}
