package kernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cellard/cellard/protocol/api"
	"github.com/cellard/cellard/protocol/jupyter"
	"github.com/cellard/cellard/protocol/jupyter/kernel"
)

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

// mortal is a toy that may end between cells.
type mortal struct {
	*toy
	dies chan error
	over bool // Ended has returned
}

func (l *mortal) Ended(ctx context.Context) error {
	defer func() { l.over = true }()
	select {
	case err := <-l.dies:
		return err
	case <-ctx.Done():
		return nil
	}
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
