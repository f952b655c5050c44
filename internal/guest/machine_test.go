package guest

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cellard/cellard/internal/fixture"
)

// patience bounds what would else hang; it is no measure of speed.
const patience = 5 * time.Minute

// The ports that the agent and init's control listen on, and the guest's CID.
const (
	agentPort   = 52
	controlPort = 53
	guestCID    = 42
)

func TestMain(m *testing.M) {
	code := m.Run()
	if initramfs.dir != "" {
		_ = os.RemoveAll(initramfs.dir)
	}
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// initramfs is what PID 1 comes from, built once: init, the modules, the agent as it is
// shipped.
var initramfs struct {
	once sync.Once
	dir  string
	path string
	err  error
}

func buildInitramfs(image string) (string, error) {
	i := &initramfs
	i.once.Do(func() {
		if i.dir, i.err = os.MkdirTemp("", "cellard-guest-"); i.err != nil {
			return
		}
		i.path = filepath.Join(i.dir, "initramfs")
		i.err = makeInitramfs(filepath.Join(i.dir, "files"), image, i.path)
	})
	return i.path, i.err
}

func makeInitramfs(files, image, path string) error {
	for _, d := range []string{"dev", "proc", "modules"} {
		if err := os.MkdirAll(filepath.Join(files, d), 0o755); err != nil {
			return err
		}
	}
	for name, pkg := range map[string]string{"init": "./init", "cellard": "../../cmd/cellard"} {
		c := exec.Command("go", "build", "-buildvcs=false", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(files, name), pkg)
		c.Env = append(os.Environ(), "CGO_ENABLED=0")
		if b, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("go build %s: %w\n%s", pkg, err, b)
		}
	}
	modules, err := filepath.Glob(filepath.Join(image, "modules", "*.ko"))
	if err != nil || len(modules) == 0 {
		return fmt.Errorf("no modules in %s: run scripts/setup-guest.sh", image)
	}
	list := []string{".", "dev", "proc", "modules", "init", "cellard"}
	for _, m := range modules {
		b, err := os.ReadFile(m)
		if err != nil {
			return err
		}
		name := filepath.Join("modules", filepath.Base(m))
		if err := os.WriteFile(filepath.Join(files, name), b, 0o644); err != nil {
			return err
		}
		list = append(list, name)
	}
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	c := exec.Command("cpio", "-o", "-H", "newc", "-R", "0:0", "--quiet")
	var stderr bytes.Buffer
	c.Dir, c.Stdin, c.Stdout, c.Stderr = files, strings.NewReader(strings.Join(list, "\n")+"\n"), out, &stderr
	if err := errors.Join(c.Run(), out.Close()); err != nil {
		return fmt.Errorf("cpio: %w\n%s", err, stderr.String())
	}
	return nil
}

// machine is a guest, and the process that is the host's end of its vsock.
type machine struct {
	t       *testing.T
	dir     string
	uds     string // the socket whose CONNECT reaches the guest's ports
	console *fixture.Buffer
	qemu    *program
	vsock   *program
	since   time.Time // power-on

	agent, control *http.Client
}

// boot powers a machine on, and has it end with the test; nothing of it may be
// left on the host then.
func boot(t *testing.T) *machine {
	t.Helper()
	image := os.Getenv("CELLARD_TEST_GUEST")
	if image == "" {
		t.Skip("a guest is booted by make guest, which makes its image and sets CELLARD_TEST_GUEST")
	}
	initrd, err := buildInitramfs(image)
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{t: t, dir: fixture.Dir(t, 0o700), console: &fixture.Buffer{}}
	m.uds = filepath.Join(m.dir, "guest.sock")
	frontend := filepath.Join(m.dir, "vhost.sock")
	t.Cleanup(m.end)
	m.agent, m.control = m.client(agentPort), m.client(controlPort)
	m.vsock = m.start(filepath.Join(image, "vhost-device-vsock"),
		"--guest-cid", fmt.Sprint(guestCID), "--socket", frontend, "--uds-path", m.uds)
	// It takes one connection, so QEMU's must be the first.
	m.eventually("vhost-device-vsock listens", func() error { _, err := os.Stat(frontend); return err })
	m.since = time.Now()
	m.qemu = m.start("qemu-system-x86_64", "-no-user-config", "-nodefaults", "-display", "none", "-no-reboot",
		"-M", "q35,accel=tcg,memory-backend=mem0", "-cpu", "max", "-smp", "2", "-m", "640M",
		"-object", "memory-backend-memfd,id=mem0,size=640M,share=on",
		"-kernel", filepath.Join(image, "vmlinuz"), "-initrd", initrd,
		"-append", "console=ttyS0 quiet panic=-1", "-serial", "stdio",
		"-drive", "file="+filepath.Join(image, "root.ext4")+",format=raw,if=virtio,snapshot=on",
		"-device", "pcie-root-port,id=rp1,chassis=1,slot=1",
		"-chardev", "socket,id=cv,path="+frontend, "-device", "vhost-user-vsock-pci,chardev=cv,bus=rp1,id=vs0")
	return m
}

// program is one of the host's, which dies with the test.
type program struct {
	c     *exec.Cmd
	ended chan struct{}
}

func (m *machine) start(name string, args ...string) *program {
	m.t.Helper()
	p := &program{c: exec.Command(name, args...), ended: make(chan struct{})}
	p.c.Stdout, p.c.Stderr = m.console, m.console
	p.c.Env = append(os.Environ(), "TMPDIR="+m.dir) // QEMU's, for what the guest writes to its disk
	p.c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.c.Start(); err != nil {
		m.t.Fatal(err)
	}
	go func() { _ = p.c.Wait(); close(p.ended) }()
	return p
}

func (p *program) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

func (m *machine) hasEnded() bool { return m.vsock.hasEnded() || m.qemu != nil && m.qemu.hasEnded() }

func (p *program) kill() {
	_ = p.c.Process.Kill()
	<-p.ended
}

// end ends the machine and looks at what is left of it.
func (m *machine) end() {
	if m.qemu != nil {
		m.qemu.kill()
	}
	if m.vsock != nil {
		m.vsock.kill()
	}
	for _, c := range []*http.Client{m.agent, m.control} {
		c.CloseIdleConnections()
	}
	left, err := filepath.Glob(filepath.Join(m.dir, "*"))
	for _, f := range left {
		if fi, e := os.Lstat(f); e == nil && fi.Mode().Type() != os.ModeSocket {
			err = errors.Join(err, fmt.Errorf("%s is left", f))
		}
	}
	if err != nil {
		m.t.Error(err)
	}
	if m.t.Failed() {
		s := m.console.String()
		m.t.Logf("the console:\n%s", s[max(0, len(s)-16<<10):])
	}
}

// eventually waits until check holds, as long as the machine runs.
func (m *machine) eventually(what string, check func() error) {
	m.t.Helper()
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if err = check(); err == nil {
			return
		}
		if m.hasEnded() {
			err = errors.Join(err, errors.New("the machine is off"))
			break
		}
	}
	m.t.Fatalf("not so: %s: %v", what, err)
}

// on runs a part of a test on the machine.
func (m *machine) on(t *testing.T, test func(*machine, *testing.T)) {
	defer func(whole *testing.T) { m.t = whole }(m.t)
	m.t = t
	test(m, t)
}
