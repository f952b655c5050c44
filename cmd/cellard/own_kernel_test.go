package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cellard/cellard/internal/gocache"
	"github.com/cellard/cellard/internal/procfs"
	"github.com/cellard/cellard/protocol/jupyter"
)

// ownClient is a kernel of our own, and a client of it.
type ownClient struct {
	t      *testing.T
	cmd    *exec.Cmd
	ended  chan struct{}
	client *jupyter.Client
	mark   string // in the environment of all that comes from it
	temp   string // for temporary files
}

func startOwnKernel(t *testing.T, language string) *ownClient {
	t.Helper()
	dir := t.TempDir()
	ci, err := jupyter.NewIPC(dir)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "connection.json")
	if err := ci.WriteFile(file); err != nil {
		t.Fatal(err)
	}
	k := &ownClient{t: t, cmd: exec.Command(buildBinary(t), "kernel", language, "-f", file), ended: make(chan struct{}),
		mark: "CELLARD_TEST_KERNEL=" + dir, temp: t.TempDir()}
	k.cmd.Env = append(os.Environ(), k.mark, "TMPDIR="+k.temp)
	k.cmd.Stderr = os.Stderr
	if err := k.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = k.cmd.Wait(); close(k.ended) }()
	t.Cleanup(func() {
		_ = k.cmd.Process.Kill()
		<-k.ended
		if k.client != nil {
			k.client.Close()
		}
		k.nothingLeft()
	})
	if k.client, err = jupyter.Dial(t.Context(), ci, jupyter.ClientOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := k.client.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	return k
}

// nothingLeft wants all processes and files of the kernel's to be gone.
func (k *ownClient) nothingLeft() {
	k.t.Helper()
	var left []string
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		left = nil
		for _, p := range procfs.All() {
			if p.State != 'Z' && procfs.HasMark(p.PID, k.mark) {
				b, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.PID), "cmdline"))
				left = append(left, strings.ReplaceAll(string(b), "\x00", " "))
			}
		}
		files, _ := filepath.Glob(filepath.Join(k.temp, "*"))
		if left = append(left, files...); len(left) == 0 {
			return
		}
	}
	k.t.Errorf("left behind: %q", left)
}

// cell runs a cell; on, unless it is nil, is called once it has printed "go". It returns
// what came on iopub of text, and the reply.
func (k *ownClient) cell(code string, on func()) (text string, reply jupyter.ExecuteReply) {
	k.t.Helper()
	m := k.client.NewMessage("execute_request", jupyter.ExecuteRequest{Code: code, StoreHistory: true})
	if err := k.client.Send(jupyter.Shell, m); err != nil {
		k.t.Fatal(err)
	}
	late := time.After(time.Minute)
	for idle := false; !idle || reply.Status == ""; {
		select {
		case got, ok := <-k.client.Messages():
			if !ok {
				return text, reply
			}
			var s jupyter.Stream
			var st jupyter.Status
			switch {
			case got.Parent.MsgID != m.Header.MsgID:
			case got.Header.MsgType == "stream" && got.Content.Decode(&s, 1<<20) == nil:
				if text += s.Text; on != nil && strings.Contains(text, "go") {
					on()
					on = nil
				}
			case got.Header.MsgType == "status" && got.Content.Decode(&st, 1<<20) == nil:
				idle = st.ExecutionState == jupyter.StateIdle
			case got.Header.MsgType == "execute_reply":
				_ = got.Content.Decode(&reply, 1<<20)
			}
			got.Close()
		case <-late:
			k.t.Fatalf("%s does not end", code)
		}
	}
	return text, reply
}

func (k *ownClient) sendControl(msgType string, content any) {
	k.t.Helper()
	if err := k.client.Send(jupyter.Control, k.client.NewMessage(msgType, content)); err != nil {
		k.t.Error(err)
	}
}

func (k *ownClient) awaitEnd() syscall.WaitStatus {
	k.t.Helper()
	select {
	case <-k.ended:
	case <-time.After(time.Minute):
		k.t.Fatal("the kernel does not end")
	}
	return k.cmd.ProcessState.Sys().(syscall.WaitStatus)
}

// Where the interpreter ends between cells, the kernel does so at once: a client would lose
// its next cell.
func TestKernelDiesIdle(t *testing.T) {
	if err := gocache.Setup(); err != nil {
		t.Fatal(err)
	}
	if node := os.Getenv("CELLARD_TEST_NODE"); node != "" {
		t.Setenv("CELLARD_NODE", node)
	}
	const later = "(sleep 0.3; kill -9 "
	for language, code := range map[string]string{
		"r":          `system(sprintf("` + later + `%d) &", Sys.getpid()))`,
		"javascript": `require('child_process').spawn('sh', ['-c', '` + later + `' + process.pid + ')'], { detached: true }); 0`,
		"java":       `new ProcessBuilder("sh", "-c", "` + later + `" + ProcessHandle.current().pid() + ") &").start().waitFor()`,
		"go": `import ("fmt"; "os"; "os/exec")
exec.Command("sh", "-c", fmt.Sprintf("` + later + `%d) &", os.Getpid())).Run()`,
	} {
		t.Run(language, func(t *testing.T) {
			k := startOwnKernel(t, language)
			if _, reply := k.cell(code, nil); reply.Status != jupyter.StatusOK {
				t.Errorf("%+v", reply)
			}
			if status := k.awaitEnd(); status.Signal() != syscall.SIGKILL {
				t.Errorf("%v", k.cmd.ProcessState)
			}
			k.nothingLeft()
		})
	}
}
