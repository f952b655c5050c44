// Package testagent builds cellard and starts it as an agent, for the tests of what
// calls one: over a Unix socket, TCP, and a stand-in of Firecracker's socket. Only
// tests use it.
package testagent

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/cellard/cellard/internal/fakefirecracker"
	"github.com/cellard/cellard/internal/fixture"
)

// patience bounds what would else hang; it is no measure of speed.
const patience = 2 * time.Minute

// Agent is a running agent. The caller stops it.
type Agent struct {
	// Dir is all that it has: its sockets, workspace and runtime directory.
	Dir string
	// Unix, TCP and Firecracker are its addresses, as client.New takes them.
	Unix, TCP, Firecracker string
	// Token is for TCP.
	Token string
	// VM is the stand-in behind Firecracker.
	VM *fakefirecracker.Socket

	cmd   *exec.Cmd
	log   fixture.Buffer
	ended chan struct{}
}

// Build builds the binary into dir.
func Build(dir string) (binary string, err error) {
	binary = filepath.Join(dir, "cellard")
	return binary, fixture.Build(binary, []string{"CGO_ENABLED=0"})
}

// Start starts the binary with a workspace of its own, and returns once it serves.
func Start(binary, python string, args ...string) (_ *Agent, err error) {
	dir, err := os.MkdirTemp("", "cellard-test-")
	if err != nil {
		return nil, err
	}
	a := &Agent{Dir: dir, Token: "a-token-for-tests", ended: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Stop())
		}
	}()
	workspace := a.Workspace()
	err = errors.Join(os.Chmod(dir, 0o755), os.Mkdir(workspace, 0o777), os.Chmod(workspace, 0o777))
	if err != nil {
		return nil, err
	}
	socket := filepath.Join(dir, "s")
	a.cmd = exec.Command(binary, append([]string{"serve", "--listen", "unix://" + socket, "--listen", "tcp://127.0.0.1:0",
		"--workspace", workspace, "--runtime-dir", filepath.Join(dir, "run"), "--python", python}, args...)...)
	a.cmd.Env = append(os.Environ(), "CELLARD_TOKEN="+a.Token)
	a.cmd.Stderr = &a.log
	if err := a.cmd.Start(); err != nil {
		a.cmd = nil
		return nil, err
	}
	go func() { _ = a.cmd.Wait(); close(a.ended) }()
	served := regexp.MustCompile(`msg=serving address=tcp://(127\.0\.0\.1:\d+)`)
	for end := time.Now().Add(patience); a.TCP == ""; time.Sleep(5 * time.Millisecond) {
		if m := served.FindStringSubmatch(a.log.String()); m != nil {
			a.TCP = "http://" + m[1]
		} else if a.hasEnded() || time.Now().After(end) {
			return nil, fmt.Errorf("the agent doesn't serve:\n%s", &a.log)
		}
	}
	a.Unix = "unix://" + socket
	vm := filepath.Join(dir, "v.sock")
	if a.VM, err = fakefirecracker.Listen(vm, socket, 52); err != nil {
		return nil, err
	}
	a.Firecracker = "firecracker://" + vm + "?port=52"
	return a, nil
}

// Workspace is where its contexts start.
func (a *Agent) Workspace() string { return filepath.Join(a.Dir, "workspace") }

// Log is what it has logged so far.
func (a *Agent) Log() string { return a.log.String() }

func (a *Agent) hasEnded() bool {
	select {
	case <-a.ended:
		return true
	default:
		return false
	}
}

// Stop ends the agent and removes what it had. It is an error if it does not end well,
// or has logged one.
func (a *Agent) Stop() error {
	var err error
	if a.VM != nil {
		a.VM.Close()
	}
	if a.cmd != nil {
		_ = a.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-a.ended:
		case <-time.After(patience):
			_ = a.cmd.Process.Kill()
			<-a.ended
		}
		if code := a.cmd.ProcessState.ExitCode(); code != 0 || strings.Contains(a.log.String(), "level=ERROR") {
			err = fmt.Errorf("the agent ended with %v:\n%s", a.cmd.ProcessState, &a.log)
		}
	}
	return errors.Join(err, os.RemoveAll(a.Dir))
}

// Kill ends the agent as a crash does. Stop is still to be called, and tells so.
func (a *Agent) Kill() {
	_ = a.cmd.Process.Kill()
	<-a.ended
}
