package front

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cellard/cellard/internal/environ"
	"github.com/cellard/cellard/internal/procfs"
	"github.com/cellard/cellard/kernels/r"
	"github.com/cellard/cellard/protocol/jupyter/kernel"
	"github.com/cellard/cellard/protocol/jupyter/kernel/kerneltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds what must not hang; it is no measure of speed.
const patience = 2 * time.Minute

// session is a kernel under test.
type session struct {
	t     *testing.T
	k     *Kernel
	temp  string
	count int
}

func start(t *testing.T, set ...func(*Kernel)) *session {
	t.Helper()
	found, err := r.NewFinder(environ.Search{}).Find(t.Context())
	if err != nil {
		t.Fatalf("%v: run scripts/setup-languages.sh", err)
	}
	s := &session{t: t, temp: t.TempDir()}
	s.k = New(Options{Argv: r.Argv(found.Program), Files: r.Files(), Env: r.Env(os.Environ()), Temp: s.temp})
	for _, f := range set {
		f(s.k)
	}
	t.Cleanup(s.close)
	if _, err := s.k.Info(); err != nil {
		t.Fatal(err)
	}
	return s
}

// close ends the kernel, which leaves nothing.
func (s *session) close() {
	if err := s.k.Close(); err != nil {
		s.t.Error(err)
	}
	if left, err := os.ReadDir(s.temp); err != nil || len(left) > 0 {
		s.t.Errorf("left behind: %v %v", left, err)
	}
	for _, p := range procfs.Children(os.Getpid()) {
		s.t.Errorf("a process is left: %+v", p)
	}
}

// ran is what came of a cell.
type ran struct {
	*kerneltest.Recorder
	err error
}

// run runs a cell; set may change it before.
func (s *session) run(code string, set ...func(*kernel.Cell)) *ran {
	s.t.Helper()
	return s.record(context.Background(), &kerneltest.Recorder{}, code, set...)
}

func (s *session) record(ctx context.Context, rec *kerneltest.Recorder, code string, set ...func(*kernel.Cell)) *ran {
	s.t.Helper()
	s.count++
	c := kernel.NewCell(code, rec)
	c.Count = s.count
	for _, f := range set {
		f(c)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.k.Execute(ctx, c) }()
	select {
	case err := <-ended:
		return &ran{rec, err}
	case <-time.After(patience):
		s.t.Fatalf("the cell does not end: %s", code)
		return nil
	}
}

// interrupted runs a cell and interrupts it once it has written "go".
func (s *session) interrupted(code string, set ...func(*kernel.Cell)) *ran {
	s.t.Helper()
	ctx, cancel := context.WithCancelCause(context.Background())
	rec := &kerneltest.Recorder{}
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		for !strings.Contains(rec.Stream("stdout")+rec.Stream("stderr"), "go") {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
		}
		cancel(kernel.ErrInterrupted)
	}()
	return s.record(ctx, rec, code, set...)
}

// shows wants the cell to end well, with that value.
func (r *ran) shows(t *testing.T, want string) {
	t.Helper()
	got := r.Shown("execute_result")
	if r.err != nil || len(got) != 1 || got[0]["text/plain"] != want {
		t.Errorf("got %v and %v, want %q\nstderr: %s", got, r.err, want, r.Stream("stderr"))
	}
}

// fails wants the cell to end with an error of that name.
func (r *ran) fails(t *testing.T, name string) *kernel.Error {
	t.Helper()
	e := (*kernel.Error)(nil)
	if !errors.As(r.err, &e) || e.Name != name {
		t.Errorf("got %v, want %s", r.err, name)
		return &kernel.Error{}
	}
	return e
}

func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not so: %s", what)
		}
	}
}

// What R writes, shows, and has its children write comes in that order, and all of it before
// the cell's end.
func TestOrder(t *testing.T) {
	s := start(t)
	html := func(text string) string { return fmt.Sprintf(`display(list("text/html" = paste("%s", i)))`, text) }
	written := func(text string) string { return fmt.Sprintf(`cat("%s ", i, "\n", sep = "")`, text) }
	for _, ways := range [][2]string{
		{written("a"), html("b")},
		{html("a"), written("b")},
		{html("a"), `system(paste("echo b", i))`},
		{`system(paste("echo a", i))`, `message("b ", i)`},
		{html("a"), `message("b ", i)`},
	} {
		code := fmt.Sprintf("for (i in 0:%d) { %s; %s }", kerneltest.Turns-1, ways[0], ways[1])
		got := s.run(code)
		if got.err != nil {
			t.Errorf("%s: %v", code, got.err)
		}
		got.Turned(t)
	}
	for range 20 { // the half of a character at the end
		if got := s.run(`1; system("printf 'before\\342\\230'")`); got.Stream("stdout") != "before\uFFFD" {
			t.Errorf("at the end of the cell %q", got.Messages())
		}
	}
}

// What a child writes after the cell's end is the cell's.
func TestLateOutput(t *testing.T) {
	s := start(t)
	file := filepath.Join(t.TempDir(), "go")
	first := s.run(fmt.Sprintf(`system("(until [ -e %s ]; do sleep 0.01; done; echo late) &"); cat("in time\n")`, file))
	if first.err != nil || first.Stream("stdout") != "in time\n" {
		t.Errorf("%v %q", first.err, first.Stream("stdout"))
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	until(t, "late output comes", func() bool { return first.Stream("stdout") == "in time\nlate\n" })
	if next := s.run("invisible()"); len(next.Messages()) > 0 {
		t.Errorf("the next cell has %v", next.Messages())
	}
}

// What is large comes whole.
func TestLargeOutput(t *testing.T) {
	s := start(t)
	got := s.run(`for (i in 1:8) cat(strrep("0123456789abcdef", 65536), "\n", sep = ""); system("head -c 3000000 /dev/zero | tr '\\0' x")`)
	want := strings.Repeat(strings.Repeat("0123456789abcdef", 65536)+"\n", 8) + strings.Repeat("x", 3000000)
	if text := got.Stream("stdout"); got.err != nil || text != want {
		t.Errorf("%v: %d bytes, want %d", got.err, len(text), len(want))
	}
	got = s.run(`display(list("text/html" = strrep("y", 4e6)))`)
	if shown := got.Shown("display_data"); got.err != nil || len(shown) != 1 || shown[0]["text/html"] != strings.Repeat("y", 4e6) {
		t.Errorf("%v: %d were shown", got.err, len(shown))
	}
}

// What is larger than a message may be is told of, and costs nothing else.
func TestTooLarge(t *testing.T) {
	s := start(t, func(k *Kernel) { k.most = 1 << 20 })
	got := s.run(`display(list("text/html" = strrep("z", 2^20))); cat(strrep("y", 2^21)); 1`)
	got.shows(t, "[1] 1")
	if text := got.Stream("stderr"); !strings.HasPrefix(text, "an output of 1048") || !strings.Contains(text, "was lost") {
		t.Errorf("stderr %q", text)
	}
	if text := got.Stream("stdout"); text != strings.Repeat("y", 1<<21) {
		t.Errorf("%d bytes of stdout", len(text))
	}
}

// An interrupt ends the cell and what it has started, wherever it meets it, and costs no
// variable; nothing of the cell runs after it.
func TestInterrupt(t *testing.T) {
	s := start(t)
	s.run("kept <- 41")
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, code := range []string{
		`cat("go\n"); repeat {}; cat("after\n")`,
		`cat("go\n"); Sys.sleep(1000); cat("after\n")`,
		`repeat { system("echo go; sleep 1000"); cat("after\n") }`,
		`x <- system("echo go >&2; sleep 1000; echo after", intern = TRUE); cat("after\n")`,
		`cat("go\n"); repeat tryCatch(Sys.sleep(1000), interrupt = function(e) NULL)`,
		`tryCatch({ cat("go\n"); Sys.sleep(1000) }, interrupt = function(e) system("sleep 1000")); cat("after\n")`,
		fmt.Sprintf(`cat("go\n"); readLines(%q); repeat {}`, fifo),
		`system(sprintf("(until grep -q '^State:.T' /proc/%d/status; do sleep 0.01; done; echo go) &", Sys.getpid()))
tools::pskill(Sys.getpid(), tools::SIGSTOP); Sys.sleep(1000)`,
		`system("trap '' INT; echo go; sleep 1000"); cat("after\n")`,
		`system("(trap '' INT TERM; sleep 1000) & echo go"); Sys.sleep(1000)`,
	} {
		got := s.interrupted(code)
		got.fails(t, "interrupt")
		if strings.Contains(got.Stream("stdout"), "after") {
			t.Errorf("the cell went on: %s: %q", code, got.Stream("stdout"))
		}
		for _, p := range procfs.Descendants(s.k.p.cmd.Process.Pid) {
			t.Errorf("%s: a process is left: %+v", code, p)
		}
		s.run("kept").shows(t, "[1] 41")
	}
	// An interrupt before the cell begins ends it too.
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(kernel.ErrInterrupted)
	s.record(ctx, &kerneltest.Recorder{}, "Sys.sleep(1000)").fails(t, "interrupt")
	// What an earlier cell has started lives on.
	s.run(`system("sleep 1000 &")`)
	s.interrupted(`cat("go\n"); repeat {}`).fails(t, "interrupt")
	if left := procfs.Children(os.Getpid()); len(left) != 2 {
		t.Errorf("of R and a child are left: %+v", left)
	}
	s.run("kept").shows(t, "[1] 41")
}

// raw keeps messages as they go on the wire.
type raw []string

func (r *raw) Publish(msgType string, content any) {
	b, err := json.Marshal(content)
	*r = append(*r, fmt.Sprint(msgType, " ", string(b)))
	if err != nil {
		*r = append(*r, err.Error())
	}
}

func (r *raw) Input(context.Context, string, bool) (string, error) {
	return "", kernel.ErrStdinNotAllowed
}

func TestCells(t *testing.T) {
	s := start(t)
	// What is said of the language is all that R says, for notebooks.
	info, err := s.k.Info()
	if b, _ := json.Marshal(info); err != nil || !strings.Contains(string(b), `"name":"R"`) || !strings.Contains(string(b), `"pygments_lexer":"r"`) {
		t.Errorf("%s %v", b, err)
	}
	if e := s.run(`f <- function() stop(structure(class = c("mine", "error", "condition"), list(message = "no", call = NULL))); f()`).fails(t, "mine"); e.Value != "no" || !strings.Contains(strings.Join(e.Traceback, "\n"), "f()") {
		t.Errorf("%+v", e)
	}
	s.run("1 1").fails(t, "parseError")
	s.run("quit(status = 3)").fails(t, "quit")
	s.run("x <- 1; quit(); x <- 2")
	s.run("x").shows(t, "[1] 1")
	got := s.run(`c(Sys.getenv("OWN"), basename(getwd()))`, func(c *kernel.Cell) {
		c.Env, c.Cwd = map[string]string{"OWN": "é"}, "/usr/lib"
	})
	got.shows(t, `[1] "é"   "lib"`)
	s.run(`Sys.getenv("OWN")`).shows(t, `[1] ""`)
	s.run("1", func(c *kernel.Cell) { c.Cwd = "/nosuch" }).fails(t, "InvalidDirectory")
	// Temporary files of children are not in the kernel's directory.
	s.run(`c(startsWith(tempdir(), "`+s.temp+`"), Sys.getenv("TMPDIR") == "`+os.Getenv("TMPDIR")+`")`).shows(t, "[1] TRUE TRUE")

	var sent raw
	code := `display(list("text/html" = "1"), display_id = "d", metadata = list("text/html" = list(isolated = TRUE))); display(list("application/json" = '{"n":9007199254740993}'), display_id = "d", update = TRUE)`
	if err := s.k.Execute(t.Context(), kernel.NewCell(code, &sent)); err != nil {
		t.Error(err)
	}
	if got := strings.Join(sent, "\n"); got != `display_data {"data":{"text/html":"1"},"metadata":{"text/html":{"isolated":true}},"transient":{"display_id":"d"}}
update_display_data {"data":{"application/json":{"n":9007199254740993}},"metadata":{},"transient":{"display_id":"d"}}` {
		t.Error(got)
	}
	if got := s.run("getOption('jupyter.clear_output_func')(TRUE)").Messages(); len(got) != 1 || got[0].Type != "clear_output" || got[0].Content["wait"] != true {
		t.Errorf("%v", got)
	}
	if got := s.run("1", func(c *kernel.Cell) { c.Silent = true }); got.err != nil || len(got.Messages()) > 0 {
		t.Errorf("silent: %v %v", got.err, got.Messages())
	}
}
