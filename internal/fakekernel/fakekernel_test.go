package fakekernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cellard/cellard/protocol/zmtp"
)

func TestCells(t *testing.T) {
	s := startSession(t, StartWell)
	s.ready()
	const replied = "execute_reply ok"
	for _, test := range []struct {
		code         string
		iopub, shell []string
	}{
		{"print hello", begun("stream stdout hello\n", "status idle"), []string{replied}},
		{"eprint oh", begun("stream stderr oh\n", "status idle"), []string{replied}},
		{`write 1\r2`, begun("stream stdout 1\r2", "status idle"), []string{replied}},
		{"result 42", begun("execute_result 42", "status idle"), []string{replied}},
		{"display 2", begun("display_data display 1", "display_data display 2", "status idle"), []string{replied}},
		{`bundle {"text/plain": "b"}`, begun("display_data b", "status idle"), []string{replied}},
		{"display-id 1 a\nupdate-id 1 b", begun("display_data a", "update_display_data b", "status idle"), []string{replied}},
		{"clear wait", begun("clear_output", "status idle"), []string{replied}},
		{"error Oops bad\nprint no", begun("error Oops", "status idle"), []string{"execute_reply error Oops"}},
		{"nonsense", begun("error SyntaxError", "status idle"), []string{"execute_reply error SyntaxError"}},
		{"set a 1", begun("status idle"), []string{replied}},
		{"get a", begun("execute_result 1", "status idle"), []string{replied}},
		{"get b", begun("error NameError", "status idle"), []string{"execute_reply error NameError"}},
		{"sleep 1\nenv " + Env, begun("execute_result ", "status idle"), []string{replied}},
		{"pid", begun("execute_result "+strconv.Itoa(s.cmd.Process.Pid), "status idle"), []string{replied}},

		{"!no-busy", []string{"execute_input", "status idle"}, []string{replied}},
		{"!no-idle\nprint a", begun("stream stdout a\n"), []string{replied}},
		{"print a\n!no-reply", begun("stream stdout a\n", "status idle"), nil},
		{"!no-reply\n!no-idle\n!no-busy", []string{"execute_input"}, nil},
		{"!idle-first", begun("status idle"), []string{replied}},
		{"!reply-first", begun("status idle"), []string{replied}},
		{"!idle-twice\n!reply-twice", begun("status idle", "status idle"), []string{replied, replied}},
		{"!late too late", begun("status idle", "stream stdout too late\n"), []string{replied}},
		{"!foreign-parent\nprint mine", begun("? stream stdout of another cell\n", "? status idle", "stream stdout mine\n", "status idle"),
			[]string{"? execute_reply error Foreign", replied}},
		{"!bad-signature\nprint mine", begun("? a message with a wrong signature", "stream stdout mine\n", "status idle"),
			[]string{"? a message with a wrong signature", replied}},
		{"!replay", begun("stream stdout said once\n", "stream stdout said once\n", "status idle"), []string{replied}},
		{"!huge 12345678", begun("stream stdout 12345678 bytes", "status idle"), []string{replied}},
		{"!huge 7", begun("stream stdout xxxxxxx", "status idle"), []string{replied}},
		{"!flood 3", begun("stream stdout line 1\n", "stream stdout line 2\n", "stream stdout line 3\n", "status idle"), []string{replied}},
		{"!many-frames 1000", begun("stream stdout many frames\n and 1000 buffers", "status idle"), []string{replied}},
		{"!garbage-json", begun("? a message that isn't JSON", "? a message that isn't JSON", "status idle"), []string{replied}},
		{"!bad-utf8", begun("stream stdout a\uFFFDb\uFFFD(c\uFFFDd\n", "status idle"), []string{replied}},
		{"!deep-json", begun("? a message that isn't JSON", "status idle"), []string{replied}}, // to encoding/json it is too deep
	} {
		id := s.execute(test.code)
		got := s.fence()
		if iopub := texts(got["iopub"], id); !reflect.DeepEqual(iopub, test.iopub) {
			t.Errorf("%q: iopub has\n\t%q, want\n\t%q", test.code, iopub, test.iopub)
		}
		if shell := texts(got["shell"], id); !reflect.DeepEqual(shell, test.shell) {
			t.Errorf("%q: shell has\n\t%q, want\n\t%q", test.code, shell, test.shell)
		}
	}
}

func TestInput(t *testing.T) {
	s := startSession(t, StartWell)
	s.ready()
	s.execute("input name?")
	s.waitFor("input_request name?")
	s.send("stdin", "input_reply", map[string]any{"value": "me"})
	s.waitFor("stream stdout me\n")
	s.waitFor("execute_reply ok")
	s.send("shell", "execute_request", map[string]any{"code": "input x"})
	s.waitFor("execute_reply error StdinNotImplementedError")
}

func TestInterrupt(t *testing.T) {
	s := startSession(t, StartWell)
	s.ready()
	s.cmd.Process.Signal(os.Interrupt) // idle: harmless, unless it takes its time and meets this cell
	id := s.execute("")
	for e := s.next(); e.channel != "shell" || e.parent != id; e = s.next() {
		if e.err != nil {
			t.Fatal(e.err)
		}
	}
	s.fence()

	s.execute("print a\nsleep 1000000")
	s.waitFor("stream stdout a\n")
	s.cmd.Process.Signal(os.Interrupt)
	s.waitFor("execute_reply error KeyboardInterrupt")

	s.execute("print b\nsleep 1000000")
	s.waitFor("stream stdout b\n")
	s.send("control", "interrupt_request", struct{}{})
	s.waitFor("interrupt_reply ok")
	s.waitFor("execute_reply error KeyboardInterrupt")

	s.execute("!deaf\nprint c\nsleep 300")
	s.waitFor("stream stdout c\n")
	s.cmd.Process.Signal(os.Interrupt)
	s.send("control", "interrupt_request", struct{}{})
	s.waitFor("execute_reply ok")
	s.fence()

	s.send("control", "shutdown_request", map[string]any{"restart": false})
	s.waitExit(t)
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit status %d", code)
	}
}

// TestDeaths checks what can be seen of a cell in which the kernel ends.
func TestDeaths(t *testing.T) {
	killed := func(s syscall.WaitStatus) bool { return s.Signaled() && s.Signal() == syscall.SIGKILL }
	for code, test := range map[string]struct {
		iopub, shell []string
		cut          bool // iopub ends in a message
		status       func(syscall.WaitStatus) bool
	}{
		"!die-before-busy": {nil, nil, false, killed},
		"!die-after-busy":  {[]string{"status busy"}, nil, false, killed},
		"!die-mid-message": {begun(), nil, true, killed},
		"!die-before-idle": {begun(), nil, false, killed},
		"!die-after-idle":  {begun("status idle"), nil, false, killed},
		"!die-after-reply": {begun(), []string{"execute_reply ok"}, false, killed},
		"exit 7":           {begun(), nil, false, func(s syscall.WaitStatus) bool { return s.Exited() && s.ExitStatus() == 7 }},
	} {
		t.Run(code, func(t *testing.T) {
			s := startSession(t, StartWell)
			s.ready()
			id := s.execute(code)
			got := make(map[string][]event)
			for ended := map[string]bool{}; !ended["iopub"] || !ended["shell"]; {
				e := s.next()
				if e.err == nil {
					got[e.channel] = append(got[e.channel], e)
					continue
				}
				ended[e.channel] = true
				if e.channel == "iopub" && errors.Is(e.err, io.ErrUnexpectedEOF) != test.cut {
					t.Errorf("iopub ended with %v", e.err)
				}
			}
			if iopub := texts(got["iopub"], id); !reflect.DeepEqual(iopub, test.iopub) {
				t.Errorf("iopub has %q, want %q", iopub, test.iopub)
			}
			if shell := texts(got["shell"], id); !reflect.DeepEqual(shell, test.shell) {
				t.Errorf("shell has %q, want %q", shell, test.shell)
			}
			s.waitExit(t)
			if status := s.cmd.ProcessState.Sys().(syscall.WaitStatus); !test.status(status) {
				t.Errorf("status %#x", status)
			}
		})
	}
}

// TestBrokenIOPub: iopub ends, the kernel doesn't.
func TestBrokenIOPub(t *testing.T) {
	malformed := func(err error) bool {
		var e *zmtp.ProtocolError
		return errors.As(err, &e)
	}
	for code, wrong := range map[string]func(error) bool{
		"!frame-2^63":   malformed,
		"!garbage-zmtp": malformed,
		"!close-iopub":  func(err error) bool { return err == io.EOF },
	} {
		t.Run(code, func(t *testing.T) {
			s := startSession(t, StartWell)
			s.ready()
			s.execute(code)
			for replied, ended := false, false; !replied || !ended; {
				e := s.next()
				replied = replied || e.text == "execute_reply ok"
				if e.err != nil {
					ended = true
					if e.channel != "iopub" || !wrong(e.err) {
						t.Fatalf("%s: %v", e.channel, e.err)
					}
				}
			}
		})
	}
}

func TestFreeze(t *testing.T) {
	s := startSession(t, StartWell)
	s.ready()
	s.execute("!freeze\nprint thawed")
	var status syscall.WaitStatus
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
		if err != nil || time.Since(begin) > patience {
			t.Fatal("it isn't stopped", err, status)
		}
		if _, rest, _ := strings.Cut(string(b), ") "); strings.HasPrefix(rest, "T") {
			break
		}
	}
	s.cmd.Process.Signal(syscall.SIGCONT)
	s.waitFor("stream stdout thawed\n")
}

func TestStarts(t *testing.T) {
	var malformed *zmtp.ProtocolError
	dial := func(start string) error {
		p := startKernel(t, start, "ipc")
		p.run(t)
		_, err := p.dial(t, p.info.Shell, zmtp.Dealer)
		return err
	}
	if err := dial(StartSilentHandshake); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if err := dial(StartGarbageGreeting); !errors.As(err, &malformed) {
		t.Error(err)
	}
	if err := dial(StartWrongSocketType); !errors.As(err, &malformed) || !strings.Contains(err.Error(), "PUSH") {
		t.Error(err)
	}
	if err := dial(StartSlow + " 100"); err != nil {
		t.Error(err)
	}

	for start, status := range map[string]int{StartDieAtStart: 3, "no-such-start": 2} {
		p := startKernel(t, start, "ipc")
		p.cmd.Stderr = nil
		p.run(t)
		p.waitExit(t)
		if code := p.cmd.ProcessState.ExitCode(); code != status {
			t.Errorf("%s: exit status %d", start, code)
		}
	}

	p := startKernel(t, StartDieAfterHandshake, "ipc")
	p.run(t)
	if c, err := p.dial(t, p.info.Shell, zmtp.Dealer); err == nil {
		if _, err := c.Recv(); err == nil {
			t.Error("it sent something")
		}
	}
	p.waitExit(t)

	s := startSession(t, StartNoKernelInfoReply)
	for idle := false; !idle; {
		if len(s.events) == 0 {
			s.send("shell", "kernel_info_request", struct{}{})
			time.Sleep(5 * time.Millisecond)
			continue
		}
		e := s.next()
		if e.channel == "shell" {
			t.Error("shell has", e)
		}
		idle = e.text == "status idle"
	}

	s = startSession(t, StartNoIOPub)
	s.execute("print a")
	if e := s.next(); e.text != "execute_reply ok" {
		t.Error("came", e)
	}

	s = startSession(t, StartWelcome)
	if e := s.next(); e.text != "iopub_welcome" || e.channel != "iopub" || e.parent != "" {
		t.Error("came", e)
	}
}

// TestJupyterClient lets jupyter_client judge what is sent when all is well.
func TestJupyterClient(t *testing.T) {
	python := os.Getenv("CELLARD_TEST_PYTHON")
	if python == "" {
		t.Fatal("set CELLARD_TEST_PYTHON to a python that has jupyter_client: python3 -m venv V && V/bin/pip install jupyter_client")
	}
	for _, transport := range []string{"ipc", "tcp"} {
		t.Run(transport, func(t *testing.T) {
			p := startKernel(t, StartWell, transport)
			p.run(t)
			ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
			defer cancel()
			judge := exec.CommandContext(ctx, python, filepath.Join("testdata", "judge.py"), p.file)
			judge.Stderr = os.Stderr
			judge.Stdin = strings.NewReader(string(mustJSON([]string{
				"print hello\nresult 42", "error Oops bad", "input name?", "!idle-first\nprint a", "!bad-utf8", "!huge 3000000",
			})))
			out, err := judge.Output()
			if err != nil {
				t.Fatal(err)
			}
			type result struct {
				Status  string
				Count   int
				Outputs [][2]string
			}
			var results []result
			if err := json.Unmarshal(out, &results); err != nil {
				t.Fatalf("%v in %.1000q", err, out)
			}
			huge := strings.Repeat(strings.Repeat("x", 99)+"\n", 30_000)
			busy, input, idle := [2]string{"status"}, [2]string{"execute_input"}, [2]string{"status"}
			want := []result{
				{"ok", 1, [][2]string{busy, input, {"stream", "hello\n"}, {"execute_result", "42"}, idle}},
				{"error", 2, [][2]string{busy, input, {"error", "Oops"}, idle}},
				{"ok", 3, [][2]string{busy, input, {"stream", "answer to name?\n"}, idle}},
				{"ok", 4, [][2]string{busy, input, {"stream", "a\n"}, idle}},
				{"ok", 5, [][2]string{busy, input, {"stream", "a\uFFFDb\uFFFD(c\uFFFDd\n"}, idle}},
				{"ok", 6, [][2]string{busy, input, {"stream", huge}, idle}},
				{"print", 0, [][2]string{}},
				{"ok", 0, [][2]string{}},
			}
			for i := range want {
				if i >= len(results) || !reflect.DeepEqual(results[i], want[i]) {
					t.Errorf("cell %d: got %.1000q, want %.1000q", i, fmt.Sprint(results[min(i, len(results)-1)]), fmt.Sprint(want[i]))
				}
			}
			p.waitExit(t)
		})
	}
}
