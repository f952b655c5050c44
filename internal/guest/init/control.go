package main

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mdlayher/vsock"
	"golang.org/x/sys/unix"
)

// controlPort is below 1024 like the agent's, so that no cell can take it.
const controlPort = 53

// control starts the agent, and does what the host asks over HTTP:
//
//	POST /exec {"argv":[…]}  runs a program as root: {"out","code"}
//	GET  /agent              how the agent is: {"pid","ended","code"}
//	POST /agent              starts it, when it has ended
//	GET  /processes          all that is no thread of Linux's: [{"pid","parent","uid","state","oomScoreAdj","command"}]
//	POST /off                ends control, and with it the machine
//
// It returns when it was asked to, or can't go on.
func control() error {
	l, err := vsock.ListenContextID(unix.VMADDR_CID_ANY, controlPort, nil)
	if err != nil {
		return err
	}
	var a agent
	if err := a.start(); err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /exec", execute)
	mux.HandleFunc("GET /agent", func(w http.ResponseWriter, _ *http.Request) { answer(w, a.state(), nil) })
	mux.HandleFunc("POST /agent", func(w http.ResponseWriter, _ *http.Request) {
		err := a.start()
		answer(w, a.state(), err)
	})
	mux.HandleFunc("GET /processes", func(w http.ResponseWriter, _ *http.Request) { answer(w, processes(), nil) })
	mux.HandleFunc("POST /off", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, struct{}{}, nil)
		go func() {
			time.Sleep(100 * time.Millisecond) // the answer goes out
			l.Close()
		}()
	})
	return http.Serve(hostOnly{l}, mux)
}

// hostOnly lets nobody in but the host: what it serves is root's.
type hostOnly struct{ net.Listener }

func (l hostOnly) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if a, ok := c.RemoteAddr().(*vsock.Addr); ok && a.ContextID == vsock.Host {
			return c, nil
		}
		c.Close()
	}
}

func answer(w http.ResponseWriter, v any, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_ = json.NewEncoder(w).Encode(v)
}

func execute(w http.ResponseWriter, r *http.Request) {
	var req struct{ Argv []string }
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil || len(req.Argv) == 0 {
		http.Error(w, "want argv", http.StatusBadRequest)
		return
	}
	out, err := exec.CommandContext(r.Context(), req.Argv[0], req.Argv[1:]...).CombinedOutput()
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code, err = exit.ExitCode(), nil
	}
	answer(w, map[string]any{"out": string(out), "code": code}, err)
}

// agent is cellard as an image starts it: with no flag at all.
type agent struct {
	mu    sync.Mutex
	c     *exec.Cmd
	ended bool
	code  int
}

func (a *agent) start() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.c != nil && !a.ended {
		return errors.New("the agent runs")
	}
	c := exec.Command(agentPath, "serve")
	c.Dir, c.Stdout, c.Stderr = "/", os.Stdout, os.Stderr
	// Under emulation a kernel's start can take more than the usual minute. The token
	// is for cells to look for.
	c.Env = append(os.Environ(), "CELLARD_START_TIMEOUT=10m", "CELLARD_TOKEN=guest-secret")
	if err := c.Start(); err != nil {
		return err
	}
	a.c, a.ended = c, false
	go func() {
		_ = c.Wait()
		a.mu.Lock()
		a.ended, a.code = true, c.ProcessState.ExitCode()
		a.mu.Unlock()
	}()
	return nil
}

func (a *agent) state() map[string]any {
	a.mu.Lock()
	defer a.mu.Unlock()
	return map[string]any{"pid": a.c.Process.Pid, "ended": a.ended, "code": a.code}
}

type process struct {
	Pid         int    `json:"pid"`
	Parent      int    `json:"parent"`
	UID         int    `json:"uid"`
	State       string `json:"state"`
	OOMScoreAdj int    `json:"oomScoreAdj"`
	Command     string `json:"command"`
}

// processes lists what runs, but Linux's own threads (those have pid 2, or it as parent).
func processes() []process {
	all := []process{}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		status, err := os.ReadFile(dir + "/status")
		if err != nil {
			continue // it has ended
		}
		var p process
		p.Pid, _ = strconv.Atoi(filepath.Base(dir))
		for line := range strings.Lines(string(status)) {
			name, value, _ := strings.Cut(line, ":")
			f := strings.Fields(value)
			if len(f) == 0 {
				continue
			}
			switch name {
			case "PPid":
				p.Parent, _ = strconv.Atoi(f[0])
			case "Uid":
				p.UID, _ = strconv.Atoi(f[0])
			case "State":
				p.State = f[0]
			}
		}
		if p.Pid == 2 || p.Parent == 2 {
			continue
		}
		adj, _ := os.ReadFile(dir + "/oom_score_adj")
		p.OOMScoreAdj, _ = strconv.Atoi(strings.TrimSpace(string(adj)))
		command, _ := os.ReadFile(dir + "/cmdline")
		p.Command = strings.TrimSpace(strings.ReplaceAll(string(command), "\x00", " "))
		all = append(all, p)
	}
	return all
}
