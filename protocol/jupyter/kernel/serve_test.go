package kernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cellard/cellard/protocol/api"
	"github.com/cellard/cellard/protocol/jupyter"
	"github.com/cellard/cellard/protocol/jupyter/kernel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = time.Minute

// toy is a language whose cells are words.
type toy struct {
	mu     sync.Mutex
	ran    []string
	closed bool
	late   *kernel.Cell
	infos  error
}

func (l *toy) Info() (jupyter.KernelInfo, error) {
	return jupyter.KernelInfo{Implementation: "toy", ImplementationVersion: "1", Banner: "toy",
		LanguageInfo: jupyter.LanguageInfo{Name: "toy", Version: "1", MimeType: "text/plain", FileExtension: ".toy"}}, l.infos
}

func (l *toy) Execute(ctx context.Context, c *kernel.Cell) error {
	l.mu.Lock()
	l.ran = append(l.ran, c.Code)
	l.mu.Unlock()
	word, rest, _ := strings.Cut(c.Code, " ")
	switch word {
	case "print":
		c.Stdout(rest)
	case "result":
		c.Result(kernel.Bundle{"text/plain": rest}, nil)
	case "fail":
		return &kernel.Error{Name: "Failure", Value: rest}
	case "panic":
		panic(rest)
	case "die":
		return errors.New("dead")
	case "hang":
		<-ctx.Done()
		return context.Cause(ctx)
	case "stubborn":
		<-ctx.Done()
		time.Sleep(300 * time.Millisecond)
		return &kernel.Error{Name: "Stopped", Value: context.Cause(ctx).Error()}
	case "ask":
		answer, err := c.Input(ctx, rest, false)
		if err != nil {
			return &kernel.Error{Name: "NoInput", Value: err.Error()}
		}
		c.Stdout(answer)
	case "keep":
		l.late = c
	case "late":
		l.late.Stdout(rest)
	case "flood":
		var n int
		fmt.Sscan(rest, &n)
		for i := 0; i < n && ctx.Err() == nil; i++ {
			c.Stdout(fmt.Sprintf("%07d %s\n", i, strings.Repeat("x", 1000)))
		}
	case "surroundings":
		c.Stdout(fmt.Sprint(c.Env, c.Cwd, c.Count, c.StoreHistory, c.Silent))
	case "bad":
		c.Display(kernel.Bundle{"application/json": func() {}}, nil, "")
	}
	return nil
}

func (l *toy) Complete(_ context.Context, code string, cursor int) (kernel.Completion, error) {
	if code == "panic" {
		panic(code)
	}
	return kernel.Completion{Matches: []string{code + "!"}, Start: 0, End: cursor, Types: []string{"word"}}, nil
}

func (l *toy) Inspect(_ context.Context, code string, _, _ int) (kernel.Inspection, error) {
	if code == "" {
		return kernel.Inspection{}, nil
	}
	return kernel.Inspection{Found: true, Data: kernel.Bundle{"text/plain": code}}, nil
}

func (l *toy) IsComplete(_ context.Context, code string) (kernel.Completeness, error) {
	if code == "" {
		return kernel.Completeness{}, errors.New("empty")
	}
	return kernel.Completeness{Status: "incomplete", Indent: "  "}, nil
}

// listing is a toy that can tell its variables.
type listing struct {
	*toy
	list  []api.Variable
	total int
	err   error
}

func (l *listing) Variables(context.Context) ([]api.Variable, int, error) {
	return l.list, l.total, l.err
}

func (l *toy) Close() error {
	l.closed = true
	return nil
}

// serving is a kernel that is being served, with a client.
type serving struct {
	t       *testing.T
	lang    *toy
	ci      jupyter.ConnectionInfo
	client  *jupyter.Client
	signals chan os.Signal
	stats   kernel.Stats
	ended   chan error
	cancel  context.CancelFunc
}

func serve(t *testing.T, transport string) *serving {
	t.Helper()
	lang := &toy{}
	return serveLanguage(t, transport, lang, lang)
}

// serveLanguage serves what is a toy, and may be more.
func serveLanguage(t *testing.T, transport string, lang *toy, served kernel.Language) *serving {
	t.Helper()
	s := &serving{t: t, lang: lang, signals: make(chan os.Signal), ended: make(chan error, 1)}
	release := func() {}
	var err error
	if transport == "tcp" {
		s.ci, release, err = jupyter.NewTCP()
	} else {
		s.ci, err = jupyter.NewIPC(t.TempDir())
	}
	if err != nil {
		t.Fatal(err)
	}
	release()
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	go func() {
		s.ended <- kernel.Serve(ctx, s.ci, served, kernel.Options{Signals: s.signals, Stats: &s.stats})
	}()
	t.Cleanup(func() {
		cancel()
		if s.ended != nil {
			if err := s.end(); err != nil {
				t.Errorf("Serve: %v", err)
			}
		}
	})
	s.client = s.connect()
	return s
}

// connect waits until the kernel is there, and answers.
func (s *serving) connect() *jupyter.Client {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		c, err := jupyter.Dial(ctx, s.ci, jupyter.ClientOptions{})
		if err == nil {
			s.t.Cleanup(func() { _ = c.Close() })
			if _, err := c.Ready(ctx); err != nil {
				s.t.Fatal(err)
			}
			return c
		}
		if ctx.Err() != nil {
			s.t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
}

// end waits for the end of Serve.
func (s *serving) end() error {
	s.t.Helper()
	select {
	case err := <-s.ended:
		s.ended = nil
		return err
	case <-time.After(patience):
		s.t.Fatal("Serve doesn't return")
		return nil
	}
}

// outcome is what came of a request.
type outcome struct {
	iopub []string // type and content
	reply map[string]any
}

func (s *serving) send(channel jupyter.Channel, msgType string, content any, metadata any) string {
	s.t.Helper()
	m := s.client.NewMessage(msgType, content)
	m.Metadata = metadata
	if err := s.client.Send(channel, m); err != nil {
		s.t.Fatal(err)
	}
	return m.Header.MsgID
}

// collect takes messages until each of the requests has its reply and its idle.
func (s *serving) collect(ids ...string) []outcome {
	s.t.Helper()
	all := make([]outcome, len(ids))
	left := 2 * len(ids)
	for bound := time.After(patience); left > 0; {
		select {
		case m, ok := <-s.client.Messages():
			if !ok {
				s.t.Fatalf("the channels ended: %v", s.client.Err())
			}
			i := slices.Index(ids, m.Parent.MsgID)
			b, err := m.Content.Raw(8 << 20)
			if err != nil {
				s.t.Fatal(err)
			}
			switch {
			case i < 0:
			case m.Channel == jupyter.IOPub:
				all[i].iopub = append(all[i].iopub, m.Header.MsgType+" "+string(b))
				if strings.Contains(string(b), `"execution_state":"idle"`) {
					left--
				}
			case strings.HasSuffix(m.Header.MsgType, "_reply"):
				if err := json.Unmarshal(b, &all[i].reply); err != nil {
					s.t.Fatal(err)
				}
				left--
			}
			m.Close()
		case <-bound:
			s.t.Fatalf("what came of %q is only %v", ids, all)
		}
	}
	return all
}

func code(text string) map[string]any {
	return map[string]any{"code": text, "silent": false, "store_history": true, "allow_stdin": false, "stop_on_error": true, "user_expressions": map[string]any{}}
}

func (s *serving) run(text string) outcome {
	s.t.Helper()
	return s.collect(s.send(jupyter.Shell, "execute_request", code(text), nil))[0]
}

// want compares what was published, between busy and idle.
func (o outcome) want(t *testing.T, status string, iopub ...string) {
	t.Helper()
	if o.reply["status"] != status {
		t.Errorf("reply %v, want %s", o.reply, status)
	}
	iopub = append(append([]string{`status {"execution_state":"busy"}`}, iopub...), `status {"execution_state":"idle"}`)
	if !slices.Equal(o.iopub, iopub) {
		t.Errorf("published\n%q, want\n%q", o.iopub, iopub)
	}
}

func input(n int, code string) string {
	return fmt.Sprintf(`execute_input {"code":%q,"execution_count":%d}`, code, n)
}

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

// A language that can list variables says so, and its list comes in order and within
// bounds; one that can't says nothing.
func TestVariables(t *testing.T) {
	lang := &listing{toy: &toy{}}
	s := serveLanguage(t, "ipc", lang.toy, lang)
	ask := func(s *serving, msgType string) map[string]any {
		return s.collect(s.send(jupyter.Shell, msgType, struct{}{}, nil))[0].reply
	}
	if info := ask(s, "kernel_info_request"); fmt.Sprint(info["supported_features"]) != "[cellard variables]" {
		t.Errorf("%v", info)
	}
	for i := range api.MaxVariables + 1 {
		lang.list = append(lang.list, api.Variable{Name: fmt.Sprintf("v%04d", api.MaxVariables-i), Type: "int"})
	}
	lang.total = 5000
	reply := ask(s, "variables_request")
	if data := reply["data"].([]any); reply["status"] != "ok" || reply["total"] != 5000.0 || len(data) != api.MaxVariables ||
		fmt.Sprint(data[0]) != "map[name:v0000 preview: shape:<nil> size:<nil> type:int]" {
		t.Errorf("%.300v", reply)
	}
	lang.list, lang.total = nil, 0
	if b, _ := json.Marshal(ask(s, "variables_request")); string(b) != `{"data":[],"status":"ok","total":0}` {
		t.Errorf("none: %s", b)
	}
	lang.err = errors.New("no idea")
	if reply := ask(s, "variables_request"); reply["status"] != "error" || reply["evalue"] != "no idea" {
		t.Errorf("%v", reply)
	}
	other := serve(t, "ipc")
	if info := other.collect(other.send(jupyter.Shell, "kernel_info_request", struct{}{}, nil))[0].reply; info["supported_features"] != nil {
		t.Errorf("%v", info)
	}
}

func TestQuestions(t *testing.T) {
	s := serve(t, "ipc")
	for _, c := range []struct {
		channel       jupyter.Channel
		msgType, want string
		content       any
	}{
		{jupyter.Shell, "complete_request", `{"cursor_end":1,"cursor_start":0,"matches":["a!"],"metadata":{"_jupyter_types_experimental":[{"end":1,"start":0,"text":"a!","type":"word"}]},"status":"ok"}`, jupyter.CompleteRequest{Code: "a", CursorPos: 1}},
		{jupyter.Shell, "complete_request", `{"ename":"KernelError","evalue":"panic: panic","status":"error","traceback":["KernelError: panic: panic"]}`, jupyter.CompleteRequest{Code: "panic"}},
		{jupyter.Shell, "inspect_request", `{"data":{"text/plain":"a"},"found":true,"metadata":{},"status":"ok"}`, jupyter.InspectRequest{Code: "a"}},
		{jupyter.Shell, "inspect_request", `{"data":{},"found":false,"metadata":{},"status":"ok"}`, jupyter.InspectRequest{}},
		{jupyter.Shell, "is_complete_request", `{"indent":"  ","status":"incomplete"}`, jupyter.IsCompleteRequest{Code: "a"}},
		{jupyter.Shell, "is_complete_request", `{"ename":"KernelError","evalue":"empty","status":"error","traceback":["KernelError: empty"]}`, jupyter.IsCompleteRequest{}},
		{jupyter.Shell, "history_request", `{"history":[],"status":"ok"}`, struct{}{}},
		{jupyter.Shell, "comm_info_request", `{"comms":{},"status":"ok"}`, struct{}{}},
		{jupyter.Control, "interrupt_request", `{"status":"ok"}`, struct{}{}},
	} {
		o := s.collect(s.send(c.channel, c.msgType, c.content, nil))[0]
		if b, _ := json.Marshal(o.reply); string(b) != c.want {
			t.Errorf("%s %v: %s, want %s", c.msgType, c.content, b, c.want)
		}
		if len(o.iopub) != 2 {
			t.Errorf("%s: published %q", c.msgType, o.iopub)
		}
	}
	// comm_* has no reply.
	id := s.send(jupyter.Shell, "comm_open", map[string]any{"comm_id": "x", "target_name": "y", "data": struct{}{}}, nil)
	for seen := 0; seen < 2; {
		m := <-s.client.Messages()
		if m.Parent.MsgID == id {
			seen++
		}
		m.Close()
	}
	for _, channel := range []jupyter.Channel{jupyter.Shell, jupyter.Control} {
		o := s.collect(s.send(channel, "kernel_info_request", struct{}{}, nil))[0]
		if o.reply["status"] != "ok" || o.reply["protocol_version"] != jupyter.ProtocolVersion || o.reply["implementation"] != "toy" {
			t.Errorf("kernel_info on %s: %v", channel, o.reply)
		}
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

func (l *toy) last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.ran) == 0 {
		return ""
	}
	return l.ran[len(l.ran)-1]
}

func (l *toy) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ran = nil
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

func TestInput(t *testing.T) {
	s := serve(t, "ipc")
	o := s.run("ask name?")
	if o.reply["ename"] != "NoInput" || !strings.Contains(o.reply["evalue"].(string), "without answers") {
		t.Errorf("a question that may not be asked: %v", o.reply)
	}
	asking := code("ask name?")
	asking["allow_stdin"] = true
	id := s.send(jupyter.Shell, "execute_request", asking, nil)
	for m := range s.client.Messages() {
		if m.Channel == jupyter.Stdin {
			var q jupyter.InputRequest
			if err := m.Content.Decode(&q, 1<<20); err != nil || q.Prompt != "name?" || m.Parent.MsgID != id {
				t.Errorf("the question is %v %v", q, err)
			}
			m.Close()
			break
		}
		m.Close()
	}
	for range 2 { // the second is nobody's
		s.send(jupyter.Stdin, "input_reply", jupyter.InputReply{Value: "Ada"}, nil)
	}
	for m := range s.client.Messages() {
		b, _ := m.Content.Raw(1 << 20)
		done := strings.Contains(string(b), `"text":"Ada"`)
		m.Close()
		if done {
			break
		}
	}
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

// connect2 connects without asking anything of shell.
func (s *serving) connect2() *jupyter.Client {
	s.t.Helper()
	c, err := jupyter.Dial(context.Background(), s.ci, jupyter.ClientOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	return c
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
