package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// startFigure compares the agent's start with that of the least that could answer: a
// Go program which does nothing but serve one URL.
func startFigure(e *env) ([]row, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	const starts = 5
	side := func(command func(dir, socket string) *exec.Cmd) func() ([]float64, error) {
		return func() (v []float64, err error) {
			for range starts {
				t, err := e.timeStart(command)
				if err != nil {
					return nil, err
				}
				v = append(v, t)
			}
			return v, nil
		}
	}
	m, err := inTurns(e.rounds, []func() ([]float64, error){
		side(func(dir, socket string) *exec.Cmd {
			return exec.Command(e.binary, "serve", "--listen", "unix://"+socket, "--workspace", dir,
				"--runtime-dir", filepath.Join(dir, "run"), "--python", e.python)
		}),
		side(func(_, socket string) *exec.Cmd { return exec.Command(self, floorCommand, socket) }),
	})
	if err != nil {
		return nil, err
	}
	return []row{
		{"cellard serve", ms(m[0]), "aim: at most 20 ms"},
		{"a Go program that serves one URL", ms(m[1]), fmt.Sprintf("cellard %s of it", times(m[0], m[1]))},
	}, nil
}

func (e *env) timeStart(command func(dir, socket string) *exec.Cmd) (float64, error) {
	dir, err := os.MkdirTemp(e.dir, "start-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // the agent refuses a workspace that cells can't enter
		return 0, err
	}
	socket := filepath.Join(dir, "s")
	c := command(dir, socket)
	client := unixClient(socket)
	defer client.CloseIdleConnections()
	begin := time.Now()
	if err := c.Start(); err != nil {
		return 0, err
	}
	err = untilServed(e.ctx, &client)
	took := sinceMs(begin)
	_ = c.Process.Signal(syscall.SIGTERM)
	_ = c.Wait() // a signal is how it ends
	return took, err
}

// floorCommand makes this program the peer of startFigure.
const floorCommand = "-floor"

func serveFloor(socket string) {
	l, err := net.Listen("unix", socket)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stderr, http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, `{"status":"ok"}`)
	})))
}
