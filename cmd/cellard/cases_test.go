package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cellard/cellard/internal/cases"
	"github.com/cellard/cellard/internal/fixture"
	"github.com/cellard/cellard/internal/gocache"
	"github.com/cellard/cellard/internal/pythons"
)

// caseFiles are the files of testdata/cases that the kernels which the agent brings
// can pass.
var caseFiles = []string{"python.json", "python-more.json"}

// languageFiles are those of the other languages, which scripts/setup-languages.sh sets
// up: a machine that lacks one fails its cases.
var languageFiles = []string{"languages.json", "bash.json", "r.json", "go.json", "javascript.json", "typescript.json", "java.json"}

// TestCases runs every case on the binary as it is released, at both ends of the
// range of ipykernels.
func TestCases(t *testing.T) {
	binary := buildBinary(t)
	for _, p := range pythons.All(t) {
		t.Run(p.Name, func(t *testing.T) {
			agent := cases.Dial(startAgent(t, binary, p.Path))
			for _, file := range caseFiles {
				runCases(t, agent, file)
			}
		})
	}
}

// TestLanguageCases runs the cases of the languages beside Python.
func TestLanguageCases(t *testing.T) {
	if err := gocache.Setup(); err != nil {
		t.Fatal(err)
	}
	if node := os.Getenv("CELLARD_TEST_NODE"); node != "" {
		t.Setenv("CELLARD_NODE", node)
	}
	agent := cases.Dial(startAgent(t, buildBinary(t), pythons.Newest(t)))
	for _, file := range languageFiles {
		runCases(t, agent, file)
	}
}

// runCases runs each case of a file as a subtest of its own.
func runCases(t *testing.T, agent *cases.Agent, file string) {
	t.Helper()
	all, err := cases.Load(filepath.Join("..", "..", "testdata", "cases", file))
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range all {
		t.Run(c.Language+"/"+c.Name, func(t *testing.T) {
			t.Parallel()
			id := fmt.Sprintf("case-%s-%d", strings.TrimSuffix(file, ".json"), i)
			for _, fault := range agent.Run(t.Context(), c, id, fixture.Dir(t, 0o777)) {
				t.Error(fault)
			}
		})
	}
}

// buildBinary builds the agent as a release is: static.
func buildBinary(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(fixture.Dir(t, 0o755), "cellard")
	if err := fixture.Build(binary, []string{"CGO_ENABLED=0"}, "-trimpath", "-ldflags", "-s -w"); err != nil {
		t.Fatal(err)
	}
	return binary
}

// startAgent starts cellard serve with a workspace of its own and returns its
// socket. At the test's end the agent is asked to stop, and must do so well.
func startAgent(t *testing.T, binary, python string) (socket string) {
	t.Helper()
	dir := fixture.Dir(t, 0o755)
	socket = filepath.Join(dir, "agent.sock")
	c := exec.Command(binary, "serve", "--listen", "unix://"+socket, "--workspace", dir,
		"--runtime-dir", filepath.Join(dir, "run"), "--python", python, "--log-level", "warn")
	var log fixture.Buffer
	c.Stdout, c.Stderr = &log, &log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	t.Cleanup(func() {
		if err := c.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Error(err)
		}
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("the agent ended with %v", err)
			}
		case <-time.After(time.Minute):
			t.Error("the agent doesn't stop")
			_ = c.Process.Kill()
			<-ended
		}
		if t.Failed() {
			t.Logf("the agent's log:\n%s", log.String())
		}
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if err := healthy(socket); err == nil {
			return socket
		} else if time.Now().After(deadline) {
			t.Fatalf("the agent doesn't serve: %v\n%s", err, log.String())
		}
	}
}

func healthy(socket string) error {
	tr := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}}
	res, err := (&http.Client{Transport: tr, Timeout: 10 * time.Second}).Get("http://agent/v1/health")
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("health: %s", res.Status)
	}
	return nil
}
