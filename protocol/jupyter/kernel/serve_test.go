package kernel_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cellard/cellard/protocol/jupyter"
	"github.com/cellard/cellard/protocol/jupyter/kernel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = time.Minute

func TestExecute(t *testing.T) {
	for _, transport := range []string{"ipc", "tcp"} {
		t.Run(transport, func(t *testing.T) {
			s := serve(t, transport)
			s.run("print a").want(t, "ok", input(1, "print a"), `stream {"name":"stdout","text":"a"}`)
			s.run("result é").want(t, "ok", input(2, "result é"), `execute_result {"execution_count":2,"data":{"text/plain":"é"},"metadata":{}}`)
			s.run("fail x").want(t, "error", input(3, "fail x"), `error {"ename":"Failure","evalue":"x","traceback":["Failure: x"]}`)
			s.run("keep").want(t, "ok", input(4, "keep"))
			if o := s.run("panic now"); o.reply["status"] != "error" || o.reply["ename"] != "KernelPanic" || o.reply["evalue"] != "now" {
				t.Errorf("after a panic: %v", o.reply)
			}
			if o := s.run("bad"); !strings.Contains(strings.Join(o.iopub, "\n"), "an output was lost") {
				t.Errorf("a value that can't be JSON: %v", o)
			}
			silent := code("result x")
			silent["silent"] = true
			s.collect(s.send(jupyter.Shell, "execute_request", silent, nil))[0].want(t, "ok")
			o := s.collect(s.send(jupyter.Shell, "execute_request", code("surroundings"), map[string]any{"cellard": map[string]any{"env": map[string]string{"A": "b"}, "cwd": "/x"}}))[0]
			o.want(t, "ok", input(7, "surroundings"), `stream {"name":"stdout","text":"map[A:b]/x7 true false"}`)
			o = s.collect(s.send(jupyter.Shell, "execute_request", code("surroundings"), map[string]any{"cellard": map[string]any{"env": 3}}))[0]
			if o.reply["status"] != "error" || o.reply["ename"] != "InvalidRequest" {
				t.Errorf("metadata that can't be read: %v", o.reply)
			}
		})
	}
}

// A late output names the cell that it is of.
func TestLateOutput(t *testing.T) {
	s := serve(t, "ipc")
	first := s.send(jupyter.Shell, "execute_request", code("keep"), nil)
	s.collect(first)
	id := s.send(jupyter.Shell, "execute_request", code("late news"), nil)
	for late, idle := false, false; !late || !idle; {
		m := <-s.client.Messages()
		b, _ := m.Content.Raw(1 << 20)
		if m.Header.MsgType == "stream" {
			if late = true; m.Parent.MsgID != first {
				t.Errorf("%s names another cell", b)
			}
		}
		idle = idle || m.Parent.MsgID == id && strings.Contains(string(b), "idle")
		m.Close()
	}
}

// While a cell runs, control answers, and interrupt_request or SIGINT stops the cell.
func TestInterrupt(t *testing.T) {
	s := serve(t, "ipc")
	for _, how := range []string{"message", "signal"} {
		for _, cell := range []string{"hang", "stubborn"} {
			id := s.send(jupyter.Shell, "execute_request", code(cell), nil)
			info := s.collect(s.send(jupyter.Control, "kernel_info_request", struct{}{}, nil))[0]
			if info.reply["status"] != "ok" {
				t.Errorf("kernel_info while a cell runs: %v", info.reply)
			}
			for s.lang.last() != cell {
				time.Sleep(time.Millisecond)
			}
			if how == "message" {
				s.send(jupyter.Control, "interrupt_request", struct{}{}, nil)
			} else {
				s.signals <- os.Interrupt
			}
			want := map[string]string{"hang": "Interrupted", "stubborn": "Stopped"}[cell]
			if o := s.collect(id)[0]; o.reply["ename"] != want {
				t.Errorf("%s, interrupted by %s: %v, want %s", cell, how, o.reply, want)
			}
			s.lang.forget()
		}
	}
	s.signals <- os.Interrupt // nothing runs
	s.run("print a").want(t, "ok", input(5, "print a"), `stream {"name":"stdout","text":"a"}`)
}

// Cells that wait behind one that fails don't run, unless that one says otherwise.
func TestStopOnError(t *testing.T) {
	s := serve(t, "ipc")
	for _, stop := range []bool{true, false} {
		s.lang.forget()
		// The first cell waits until the others are queued.
		failing := code("ask")
		failing["allow_stdin"], failing["stop_on_error"] = true, stop
		ids := []string{s.send(jupyter.Shell, "execute_request", failing, nil)}
		ids = append(ids, s.send(jupyter.Shell, "execute_request", code("print a"), nil),
			s.send(jupyter.Shell, "is_complete_request", jupyter.IsCompleteRequest{Code: "a"}, nil),
			s.send(jupyter.Shell, "execute_request", code("print b"), nil))
		time.Sleep(200 * time.Millisecond)
		s.send(jupyter.Control, "interrupt_request", struct{}{}, nil)
		all := s.collect(ids...)
		want := "aborted"
		if !stop {
			want = "ok"
		}
		if all[0].reply["status"] != "error" || all[1].reply["status"] != want || all[3].reply["status"] != want || all[2].reply["status"] != "incomplete" {
			t.Errorf("stop_on_error %t: %v", stop, all)
		}
		if ran := len(s.lang.ran); stop && ran != 1 || !stop && ran != 3 {
			t.Errorf("stop_on_error %t: ran %q", stop, s.lang.ran)
		}
	}
	s.run("result x")
}

// What was sent comes, whatever the reader's speed, and in order; the kernel's memory
// doesn't grow with what waits.
func TestSlowReader(t *testing.T) {
	s := serve(t, "ipc")
	const n = 20_000 // 20 MB
	id := s.send(jupyter.Shell, "execute_request", code(fmt.Sprint("flood ", n)), nil)
	time.Sleep(time.Second)
	next := 0
	for m := range s.client.Messages() {
		if m.Parent.MsgID == id && m.Header.MsgType == "stream" {
			var text jupyter.Stream
			if err := m.Content.Decode(&text, 1<<20); err != nil || !strings.HasPrefix(text.Text, fmt.Sprintf("%07d ", next)) {
				t.Fatalf("message %d is %.20q %v", next, text.Text, err)
			}
			next++
		}
		b, _ := m.Content.Raw(1 << 20)
		idle := m.Parent.MsgID == id && strings.Contains(string(b), `"idle"`)
		m.Close()
		if idle {
			break
		}
	}
	if next != n {
		t.Errorf("%d of %d came", next, n)
	}
}

// A shutdown ends a running cell, answers, closes the language and returns.
func TestShutdown(t *testing.T) {
	for _, how := range []string{"control", "shell", "signal", "context", "running"} {
		t.Run(how, func(t *testing.T) {
			s := serve(t, "ipc")
			var id string
			switch how {
			case "control":
				id = s.send(jupyter.Control, "shutdown_request", jupyter.ShutdownRequest{Restart: true}, nil)
			case "shell":
				id = s.send(jupyter.Shell, "shutdown_request", jupyter.ShutdownRequest{Restart: true}, nil)
			case "signal":
				s.signals <- syscall.SIGTERM
			case "context":
				s.cancel()
			case "running":
				cell := s.send(jupyter.Shell, "execute_request", code("stubborn"), nil)
				for s.lang.last() != "stubborn" {
					time.Sleep(time.Millisecond)
				}
				id = s.send(jupyter.Control, "shutdown_request", jupyter.ShutdownRequest{Restart: true}, nil)
				all := s.collect(cell, id)
				if !strings.Contains(fmt.Sprint(all[0].reply["evalue"]), "shutting down") {
					t.Errorf("the cell that ran: %v", all[0].reply)
				}
				if all[1].reply["restart"] != true {
					t.Errorf("the reply: %v", all[1].reply)
				}
				id = ""
			}
			if id != "" {
				if o := s.collect(id)[0]; o.reply["status"] != "ok" || o.reply["restart"] != true {
					t.Errorf("the reply: %v", o.reply)
				}
			}
			if err := s.end(); err != nil {
				t.Errorf("Serve: %v", err)
			}
			if !s.lang.closed {
				t.Error("the language was not closed")
			}
			if left, _ := filepath.Glob(s.ci.IP + "-*"); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
		})
	}
}

// A subscriber that takes nothing for good doesn't keep the kernel from ending, nor
// control from answering.
func TestStuckSubscriber(t *testing.T) {
	s := serve(t, "ipc")
	stuck := s.connect() // whose Messages nobody reads any more
	_ = stuck
	go func() {
		for m := range s.client.Messages() {
			m.Close()
		}
	}()
	s.send(jupyter.Shell, "execute_request", code("flood 200000"), nil)
	time.Sleep(500 * time.Millisecond)
	other := s.connect2()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	m := other.NewMessage("shutdown_request", jupyter.ShutdownRequest{})
	if err := other.Send(jupyter.Control, m); err != nil {
		t.Fatal(err)
	}
	for {
		select {
		case r, ok := <-other.Messages():
			if !ok {
				t.Fatal(other.Err())
			}
			replied := r.Parent.MsgID == m.Header.MsgID && r.Channel == jupyter.Control
			r.Close()
			if !replied {
				continue
			}
		case <-ctx.Done():
			t.Fatal("control doesn't answer")
		}
		break
	}
	if err := s.end(); err != nil {
		t.Errorf("Serve: %v", err)
	}
}

func TestLanguageEnds(t *testing.T) {
	s := serve(t, "ipc")
	s.send(jupyter.Shell, "execute_request", code("die"), nil)
	if err := s.end(); err == nil || err.Error() != "dead" {
		t.Errorf("Serve: %v", err)
	}
	for m := range s.client.Messages() {
		if m.Header.MsgType == "execute_reply" {
			t.Error("a cell was answered whose language had ended")
		}
		m.Close()
	}
}

// A language that ends between cells ends the kernel; at the kernel's own end it is not
// waited for any more.
func TestLanguageEndsIdle(t *testing.T) {
	for _, dead := range []error{errors.New("dead"), nil} {
		lang := &mortal{toy: &toy{}, dies: make(chan error, 1)}
		s := serveLanguage(t, "ipc", lang.toy, lang)
		s.run("print 1").want(t, "ok", input(1, "print 1"), `stream {"name":"stdout","text":"1"}`)
		if dead != nil {
			lang.dies <- dead
		} else {
			s.cancel()
		}
		if err := s.end(); !errors.Is(err, dead) || !lang.closed || !lang.over {
			t.Errorf("Serve: %v, want %v; closed %v, over %v", err, dead, lang.closed, lang.over)
		}
	}
}

func TestInfoFails(t *testing.T) {
	ci, err := jupyter.NewIPC(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("no such program")
	if err := kernel.Serve(context.Background(), ci, &toy{infos: broken}, kernel.Options{}); !errors.Is(err, broken) {
		t.Errorf("Serve: %v", err)
	}
}
