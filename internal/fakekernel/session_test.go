package fakekernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cellard/cellard/protocol/zmtp"
)

func TestMain(m *testing.M) {
	if Wanted() {
		Main()
	}
	goleak.VerifyTestMain(m)
}

// patience bounds what a test waits for; nothing is said about how long it takes.
const patience = 60 * time.Second

// A process is the kernel, and what a client needs to talk to it.
type process struct {
	*kernel // signs and parses
	cmd     *exec.Cmd
	file    string
	exited  chan struct{}
}

func startKernel(t *testing.T, start, transport string) *process {
	t.Helper()
	dir, err := os.MkdirTemp("", "fake")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	info := connectionFile{
		Transport: transport, IP: filepath.Join(dir, "k"), Shell: 1, IOPub: 2, Stdin: 3, Control: 4, Heartbeat: 5,
		Key: "secret", Scheme: "hmac-sha256",
	}
	if transport == "tcp" {
		info.IP = "127.0.0.1"
		for _, port := range []*int{&info.Shell, &info.IOPub, &info.Stdin, &info.Control, &info.Heartbeat} {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			*port = l.Addr().(*net.TCPAddr).Port
			defer l.Close() // all of them at the end, so that the ports differ
		}
	}
	p := &process{kernel: newKernel(info, start), file: filepath.Join(dir, "connection.json"), exited: make(chan struct{})}
	if err := os.WriteFile(p.file, mustJSON(info), 0o600); err != nil {
		t.Fatal(err)
	}
	p.cmd = exec.Command(os.Args[0], "-f", p.file)
	p.cmd.Env = append(os.Environ(), Env+"="+start)
	p.cmd.Stderr = os.Stderr
	return p
}

func (p *process) run(t *testing.T) {
	t.Helper()
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.cmd.Wait(); close(p.exited) }()
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		<-p.exited
	})
}

func (p *process) waitExit(t *testing.T) {
	t.Helper()
	select {
	case <-p.exited:
	case <-time.After(patience):
		t.Fatal("the kernel is still there")
	}
}

// dial waits for the kernel's sockets.
func (p *process) dial(t *testing.T, port int, typ zmtp.Type) (*zmtp.Conn, error) {
	t.Helper()
	network, address := p.info.address(port)
	for begin := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		c, err := zmtp.Dial(context.Background(), network, address, typ, zmtp.Options{
			Identity: []byte("client"), HandshakeTimeout: time.Second,
		})
		if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED) {
			if time.Since(begin) > patience {
				t.Fatal(err)
			}
			continue
		}
		if c != nil {
			timer := time.AfterFunc(patience, func() { c.Close() })
			t.Cleanup(func() { timer.Stop(); c.Close() })
		}
		return c, err
	}
}

func (p *process) mustDial(t *testing.T, port int, typ zmtp.Type) *zmtp.Conn {
	t.Helper()
	c, err := p.dial(t, port, typ)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// An event is what came on a channel: a message, put shortly, or the end.
type event struct {
	channel string
	parent  string // msg_id
	text    string
	err     error
}

// A session has shell, iopub, stdin and control open and is subscribed.
type session struct {
	*process
	t      *testing.T
	conns  map[string]*zmtp.Conn
	events chan event
	passed []event // what waitFor passed over
}

func startSession(t *testing.T, start string) *session {
	t.Helper()
	p := startKernel(t, start, "ipc")
	p.run(t)
	s := &session{process: p, t: t, conns: make(map[string]*zmtp.Conn), events: make(chan event, 10_000)}
	for channel, port := range map[string]int{"shell": p.info.Shell, "stdin": p.info.Stdin, "control": p.info.Control, "iopub": p.info.IOPub} {
		typ := zmtp.Dealer
		if channel == "iopub" {
			typ = zmtp.Sub
		}
		c := p.mustDial(t, port, typ)
		s.conns[channel] = c
		if channel == "iopub" {
			if err := c.Subscribe(nil); err != nil {
				t.Fatal(err)
			}
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				e := p.receive(c)
				e.channel = channel
				s.events <- e
				if e.err != nil {
					return
				}
			}
		}()
		t.Cleanup(func() { c.Close(); <-done })
	}
	return s
}

// receive puts a message shortly.
func (p *process) receive(c *zmtp.Conn) event {
	frames, err := c.Recv()
	if err != nil {
		return event{err: err}
	}
	var raw [][]byte
	for _, f := range frames {
		b, err := io.ReadAll(io.NewSectionReader(f.ReaderAt(), 0, f.Len()))
		f.Close()
		if err != nil {
			return event{err: err}
		}
		raw = append(raw, b)
	}
	m, err := p.parse(raw)
	if err != nil {
		return event{text: err.Error()}
	}
	var parent messageHeader
	json.Unmarshal(m.parent, &parent)
	e := event{parent: parent.ID, text: m.msgType()}
	var content struct {
		Text, Name, Status, Ename, Prompt string
		Data                              map[string]any
		State                             string `json:"execution_state"`
	}
	if err := json.Unmarshal(m.content, &content); err != nil && !strings.Contains(err.Error(), "depth") {
		e.text += " " + err.Error()
	}
	if len(content.Text) > 100 {
		content.Text = fmt.Sprint(len(content.Text), " bytes")
	}
	for _, v := range []string{content.State, content.Status, content.Ename, content.Name, content.Text, content.Prompt} {
		if v != "" {
			e.text += " " + v
		}
	}
	if v, ok := content.Data["text/plain"]; ok {
		e.text += fmt.Sprint(" ", v)
	}
	if len(m.buffers) > 0 {
		e.text += fmt.Sprint(" and ", len(m.buffers), " buffers")
	}
	return e
}

func (s *session) next() event {
	s.t.Helper()
	select {
	case e := <-s.events:
		return e
	case <-time.After(patience):
		s.t.Fatal("nothing comes")
		panic("unreachable")
	}
}

// send sends a request and returns its id.
func (s *session) send(channel, msgType string, content any) string {
	s.t.Helper()
	m := s.newMessage(msgType, nil, content)
	var h messageHeader
	json.Unmarshal(m.header, &h)
	if err := s.conns[channel].Send(s.frames(m)...); err != nil {
		s.t.Log("sending to a kernel:", err) // some are dead by then
	}
	return h.ID
}

func (s *session) execute(code string) string {
	s.t.Helper()
	return s.send("shell", "execute_request", map[string]any{"code": code, "silent": false, "allow_stdin": true})
}

// ready returns once the kernel has answered and has taken the subscription.
func (s *session) ready() {
	s.t.Helper()
	sent := make(map[string]bool)
	var replied, heard bool
	for id := ""; !replied || !heard; {
		if len(s.events) == 0 {
			id = s.send("shell", "kernel_info_request", struct{}{})
			sent[id] = true
			time.Sleep(5 * time.Millisecond)
			continue
		}
		e := s.next()
		replied = replied || e.text == "kernel_info_reply ok"
		heard = heard || e.channel == "iopub"
	}
	s.fence()
}

// fence runs an empty cell and returns what came by its end, by channel, without
// what it gave itself.
func (s *session) fence() map[string][]event {
	s.t.Helper()
	id := s.execute("")
	got := make(map[string][]event)
	for replied, idle := false, false; !replied || !idle; {
		e := s.next()
		if e.err != nil {
			s.t.Fatalf("%s ended: %v; before it came %v", e.channel, e.err, got)
		}
		if e.parent != id {
			got[e.channel] = append(got[e.channel], e)
		}
		replied = replied || e.parent == id && e.text == "execute_reply ok"
		idle = idle || e.parent == id && e.text == "status idle"
	}
	return got
}

// texts are the events' texts; those that don't name a cell have a ? in front.
func texts(events []event, id string) []string {
	var list []string
	for _, e := range events {
		if e.parent != id {
			e.text = "? " + e.text
		}
		list = append(list, e.text)
	}
	return list
}

// begun is what a cell begins with.
func begun(rest ...string) []string {
	return append([]string{"status busy", "execute_input"}, rest...)
}

// waitFor takes events until one has a text. Channels overtake one another, so
// what it passes over is kept for the next time.
func (s *session) waitFor(text string) {
	s.t.Helper()
	for i, e := range s.passed {
		if e.text == text {
			s.passed = slices.Delete(s.passed, i, i+1)
			return
		}
	}
	for {
		e := s.next()
		switch {
		case e.err != nil:
			s.t.Fatalf("%s ended: %v", e.channel, e.err)
		case e.text == text:
			return
		}
		s.passed = append(s.passed, e)
	}
}
