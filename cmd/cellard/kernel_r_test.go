package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cellard/cellard/protocol/jupyter"
)

func startKernelR(t *testing.T) *ownClient {
	t.Helper()
	return startOwnKernel(t, "r")
}

// Front ends match a notebook's language with the kernelspec's by its exact name.
func TestKernelRInstall(t *testing.T) {
	prefix := t.TempDir()
	if out, err := exec.Command(buildBinary(t), "kernel", "install", "r", "--prefix", prefix).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	b, err := os.ReadFile(filepath.Join(prefix, "share", "jupyter", "kernels", "r", "kernel.json"))
	if err != nil || !strings.Contains(string(b), `"language": "R"`) {
		t.Errorf("%s %v", b, err)
	}
}

// R, as any client starts it: an interrupt by message or by a signal keeps the variables,
// and a shutdown, under a cell too, leaves nothing.
func TestKernelR(t *testing.T) {
	k := startKernelR(t)
	k.cell("x <- 41", nil)
	for name, interrupt := range map[string]func(){
		"message": func() { k.sendControl("interrupt_request", struct{}{}) },
		"signal":  func() { _ = k.cmd.Process.Signal(os.Interrupt) },
	} {
		text, reply := k.cell(`cat("go\n"); system("sleep 1000"); cat("after\n")`, interrupt)
		if reply.EName != "interrupt" || text != "go\n" {
			t.Errorf("interrupted by %s: %q %+v", name, text, reply)
		}
		if text, _ := k.cell(`cat(x + 1, "\n"); system("echo child"); message("err")`, nil); text != "42 \nchild\nerr\n" {
			t.Errorf("after an interrupt by %s: %q", name, text)
		}
	}
	if _, reply := k.cell(`readline("? ")`, nil); reply.EName != "StdinNotImplementedError" {
		t.Errorf("a question where none may be: %+v", reply)
	}
	k.cell(`system("sleep 1000 &"); cat("go\n"); repeat {}`, func() {
		k.sendControl("shutdown_request", jupyter.ShutdownRequest{})
	})
	if status := k.awaitEnd(); status.ExitStatus() != 0 {
		t.Errorf("after a shutdown: %v", k.cmd.ProcessState)
	}
	k.nothingLeft()
}

// Where the kernel is killed, R and what cells have started end too, and their files go.
func TestKernelRKilled(t *testing.T) {
	k := startKernelR(t)
	k.cell(`system("sleep 1000 &"); system("setsid sleep 1000 &"); writeLines("x", tempfile())`, nil)
	if files, _ := filepath.Glob(filepath.Join(k.temp, "*", "Rtmp*", "*")); len(files) != 1 {
		t.Errorf("R's temporary file is not where it is removed: %q", files)
	}
	k.cell(`cat("go\n"); repeat {}`, func() { _ = k.cmd.Process.Kill() })
	k.awaitEnd()
	k.nothingLeft()
}

// Where R ends under a cell, the kernel ends in the same way, and the cell has no reply.
func TestKernelRDies(t *testing.T) {
	k := startKernelR(t)
	text, reply := k.cell(`cat("last\n"); tools::pskill(Sys.getpid(), 9)`, nil)
	if text != "last\n" || reply.Status != "" {
		t.Errorf("%q %+v", text, reply)
	}
	if status := k.awaitEnd(); status.Signal() != syscall.SIGKILL {
		t.Errorf("%v", k.cmd.ProcessState)
	}
	k.nothingLeft()
}
