package bash

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cellard/cellard/internal/procfs"
	"github.com/cellard/cellard/protocol/jupyter/kernel"
	"github.com/cellard/cellard/protocol/jupyter/kernel/kerneltest"
)

func TestMain(m *testing.M) {
	// A shell can't take back that it was started with SIGINT ignored; the kernel's own process
	// listens for it, so that none is.
	if signal.Ignored(os.Interrupt) {
		signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	}
	goleak.VerifyTestMain(m)
}

const patience = time.Minute

// session is a kernel and what its cells put out.
type session struct {
	t *testing.T
	k *Kernel
}

func start(t *testing.T) *session {
	t.Helper()
	k := New(Options{})
	s := &session{t: t, k: k}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
		for _, p := range procfs.Family(os.Getpid(), "") {
			b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.PID))
			t.Errorf("left: %d %q", p.PID, b)
		}
	})
	if _, err := k.Info(); err != nil {
		t.Fatal(err)
	}
	return s
}

// shell is the process that runs cells.
func (s *session) shell() int {
	s.k.shell.mu.Lock()
	defer s.k.shell.mu.Unlock()
	return s.k.shell.main
}

// done is what came of a cell.
type done struct {
	*kerneltest.Recorder
	err error
}

func (d done) String() string {
	return fmt.Sprintf("error %v, stdout %q, stderr %q, displays %v", d.err, d.Stream("stdout"), d.Stream("stderr"), d.Shown("display_data"))
}

func (s *session) run(code string, change ...func(*kernel.Cell)) done {
	s.t.Helper()
	return s.runFor(0, code, change...)
}

// runFor runs a cell that is interrupted after a time; 0: never.
func (s *session) runFor(after time.Duration, code string, change ...func(*kernel.Cell)) done {
	s.t.Helper()
	r := &kerneltest.Recorder{}
	c := kernel.NewCell(code, r)
	for _, f := range change {
		f(c)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	if after > 0 {
		defer time.AfterFunc(after, func() { cancel(kernel.ErrInterrupted) }).Stop()
	}
	ended := make(chan error, 1)
	go func() { ended <- s.k.Execute(ctx, c) }()
	select {
	case err := <-ended:
		return done{r, err}
	case <-time.After(patience):
		s.t.Fatalf("%q doesn't end: %v", code, done{r, nil})
		return done{}
	}
}

// ok runs a cell that must go well, and put out just that.
func (s *session) ok(code, stdout string, change ...func(*kernel.Cell)) {
	s.t.Helper()
	if d := s.run(code, change...); d.err != nil || d.Stream("stdout") != stdout || d.Stream("stderr") != "" {
		s.t.Errorf("%q: %v; want stdout %q", code, d, stdout)
	}
}

// fails runs a cell that must end with that error.
func (s *session) fails(name, value, code string, change ...func(*kernel.Cell)) done {
	s.t.Helper()
	d := s.run(code, change...)
	e := (*kernel.Error)(nil)
	if !errors.As(d.err, &e) || e.Name != name || !strings.Contains(e.Value, value) {
		s.t.Errorf("%q: %v; want %s %s", code, d, name, value)
	}
	return d
}

// stopped runs a cell that is interrupted and must stop, and have put out just that.
func (s *session) stopped(name, code, stdout string) {
	s.t.Helper()
	d := s.runFor(300*time.Millisecond, code)
	e := (*kernel.Error)(nil)
	if !errors.As(d.err, &e) || e.Name != name || d.Stream("stdout") != stdout {
		s.t.Errorf("%q: %v; want %s", code, d, name)
	}
}

func TestState(t *testing.T) {
	s := start(t)
	s.ok("x=41; f(){ echo $(($1+1)); }; declare -A m=([a]=1); declare -r ro=7; cd /usr; export E=1; alias hi='echo hello'", "")
	s.ok("f $x; pwd; echo $E ${m[a]} $ro; hi; env | grep ^E=", "42\n/usr\n1 1 7\nhello\nE=1\n")
	s.fails("ExitStatus", "1", "false")
	s.ok("echo $?", "1\n")
	s.ok("echo $?; echo $LINENO\necho $LINENO; set -- a 'b c'", "0\n1\n2\n")
	s.ok("echo $# \"$2\"; exec 5>/tmp/cellard-bash-test; echo to-file >&5", "2 b c\n")
	s.ok("echo more >&5; cat /tmp/cellard-bash-test; rm /tmp/cellard-bash-test; exec 5>&-", "to-file\nmore\n")
	s.ok("for i in 1 2 3; do [ $i = 2 ] && continue; echo $i; done; break; echo after", "1\n3\n") // break ends the cell
	s.ok("continue", "")
	s.ok("break 2", "")
	s.ok("echo $x", "41\n")
	s.ok("exec 3>&1; echo a >&3", "a\n")
	s.ok("echo b >&3; exec 3>&-", "b\n")
	s.ok("cat; read y; echo done$y", "done\n")
	s.ok("printf 'é☃\\n'; echo 'a\\'", "é☃\na\\\n")
	s.ok("cat <<END\n$x\nEND", "41\n")
}

func TestErrors(t *testing.T) {
	s := start(t)
	d := s.fails("ExitStatus", "2", "echo out; ls /nonexistent")
	if d.Stream("stdout") != "out\n" || !strings.Contains(d.Stream("stderr"), "No such file") {
		t.Error(d)
	}
	if d = s.fails("ExitStatus", "", "echo a\nif then"); !strings.HasPrefix(d.Stream("stderr"), "bash: line 2: syntax error") {
		t.Error(d)
	}
	if d = s.fails("ExitStatus", "127", "\nnosuch"); d.Stream("stderr") != "bash: line 2: nosuch: command not found\n" {
		t.Error(d)
	}
	s.ok("return 0", "")
	s.fails("ExitStatus", "3", "return 3")
	s.fails("InvalidCode", "zero byte", "echo \x00")
	s.ok("echo alive", "alive\n")
}

// What ends the shell costs the cell, and nothing else.
func TestHandover(t *testing.T) {
	s := start(t)
	s.ok("x=41; f(){ echo fn; }; trap 'echo usr1' USR1; set -- a b; shopt -s nullglob; umask 027; alias hi='echo hello'", "")
	for i, c := range []struct{ code, status string }{
		{"y=1; exit 3", "3"},
		{"y=2; set -e; false; echo no", "1"},
		{"y=3; true; false; echo no", "1"}, // set -e is still on
		{"set +e; y=4; set -u; echo $undefined; echo no", "1"},
		{"y=5; echo $undefined", "1"},
		{"set +u; y=6; g(){ exit 4; }; g 1 2 3", "4"},
		{"y=7; kill $BASHPID; sleep 10", "143"},
		{"y=8; { exit 8; } >/dev/null", "8"},
		{"y=9; : ${undefined?message}", "1"},
		{"y=10; trap 'echo bye $y' EXIT; exit 5", "5"},
	} {
		d := s.fails("ExitStatus", c.status, c.code)
		want := ""
		if i == 9 {
			want = "bye 10\n"
		}
		if d.Stream("stdout") != want {
			t.Errorf("%q: %v", c.code, d)
		}
		s.ok("echo $x $y $1 $#; f; hi; umask; shopt -q nullglob && kill -USR1 $BASHPID", fmt.Sprintf("41 %d a 2\nfn\nhello\n0027\nusr1\n", i+1))
	}
	s.run("set -- c; exit 7")
	s.ok("echo $1", "c\n")
	s.ok("exit", "")
	s.ok("echo $x; sleep 1000 & echo $! >/dev/null", "41\n")
	s.fails("ExitStatus", "1", "exit 1")
	s.ok("kill -0 $! && kill $! && echo alive", "alive\n") // what it had started lives on
}

// Where no trap is run, the copy from before the cell takes over.
func TestCopyTakesOver(t *testing.T) {
	s := start(t)
	s.ok("x=41; trap 'echo usr1' USR1", "")
	for i, c := range []struct{ code, how string }{
		{"y=1; kill -9 $BASHPID", "SIGKILL"},
		{"echo out; y=1; exec false", "exit status 1"},
		{"y=1; exec sh -c 'echo replaced'", "exit status 0"},
	} {
		s.fails("KernelDied", c.how, c.code)
		s.ok("echo $x ${y-none}; kill -USR1 $BASHPID", "41 none\nusr1\n")
		if i%2 == 0 {
			s.fails("ExitStatus", "2", "exit 2") // a copy hands over too
		}
	}
	// Killed while idle: nothing is lost.
	s.ok("z=5", "")
	s.ok("(sleep 0.2; kill -9 $$ 2>/dev/null; kill -9 "+fmt.Sprint(s.shell())+") & ", "")
	time.Sleep(500 * time.Millisecond)
	s.ok("echo $x $z", "41 5\n")
	// The signal that stops a cell, taken away.
	s.ok("trap '' USR2", "")
	s.stopped("Interrupted", "echo a; sleep 300", "a\n")
	// Without a copy it is the end.
	s.ok("exec 7> >(cat >/dev/null)", "")
	d := s.run("kill -9 $BASHPID")
	if died := (*kernel.DiedError)(nil); !errors.As(d.err, &died) || died.Signal() != 9 {
		t.Errorf("without a copy: %v", d)
	}
}

func TestInterrupt(t *testing.T) {
	s := start(t)
	s.ok("x=41; sleep 1000 & p=$!", "")
	for _, code := range []string{
		"echo before; sleep 300; echo AFTER",
		"echo before; while :; do :; done",
		"echo before; (trap '' INT; exec sleep 300)",
		"echo before; (trap '' INT TERM; while :; do :; done)",
		"echo before; sleep 300 & sleep 301 & wait",
		"echo before; sleep 300 | cat; echo AFTER",
		"echo before; y=$(sleep 300); echo AFTER",
		"echo before; trap 'echo INT' INT; sleep 300; trap - INT",
		"echo before; read -r z < <(sleep 300); echo AFTER",
		"echo before; set -m; sleep 300; set +m",
		"echo before; trap '' USR2; sleep 300; trap - USR2",
		"echo before; kill -STOP $BASHPID",
		"echo before; f(){ while :; do sleep 0.01; done; }; f",
		"echo before; (setsid sleep 302 &); sleep 300",
	} {
		s.stopped("Interrupted", code, "before\n")
		s.ok("trap - INT; set +m; echo $x; kill -0 $p && echo lives", "41\nlives\n")
	}
	s.stopped("KernelDied", "echo before; trap '' USR2 INT; y=1; while :; do :; done", "before\n")
	s.ok("echo $x ${y-none}; kill -0 $p && echo lives", "41 none\nlives\n")
	for _, p := range procfs.Family(os.Getpid(), "") {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.PID))
		if strings.Contains(string(b), "sleep\x0030") {
			t.Errorf("goes on: %q", b)
		}
	}
	s.ok("kill $p", "")
}

func TestTrace(t *testing.T) {
	s := start(t)
	for range 2 {
		d := s.run("set -x; echo a; b=$(echo c)\nset +x")
		if want := "+ echo a\n++ echo c\n+ b=c\n+ set +x\n"; d.Stream("stderr") != want {
			t.Errorf("%q, want %q", d.Stream("stderr"), want)
		}
		s.fails("ExitStatus", "1", "exit 1") // the nesting grows
	}
	s.run("set -x")
	if d := s.run("echo next"); d.Stream("stderr") != "+ echo next\n" {
		t.Errorf("set -x stays: %v", d)
	}
	s.run("set +x")
	if d := s.run("trap 'echo dbg' DEBUG; echo a; trap - DEBUG"); d.Stream("stdout") != "dbg\na\ndbg\n" {
		t.Errorf("DEBUG: %v", d)
	}
	s.run("trap 'echo dbg' DEBUG")
	if d := s.run("echo a"); d.Stream("stdout") != "dbg\na\n" {
		t.Errorf("DEBUG stays: %v", d)
	}
	s.run("trap - DEBUG; trap 'echo \"it'\\''s\nERR\"' ERR")
	if d := s.run("false; true"); d.Stream("stdout") != "it's\nERR\n" {
		t.Errorf("ERR stays: %v", d)
	}
}

func TestSurroundings(t *testing.T) {
	s := start(t)
	dir := t.TempDir()
	with := func(c *kernel.Cell) {
		c.Env = map[string]string{"A": "it's \"x\" $HOME\n\\", "B": "2", "PATHX": "", "KEPT": "given"}
		c.Cwd = dir
	}
	s.ok("cd /usr; B=old; export KEPT=before", "")
	s.ok("printf '%s|' \"$A\" \"$B\" \"${PATHX-none}\"; printenv B; pwd; KEPT=changed", "it's \"x\" $HOME\n\\|2||2\n"+dir+"\n", with)
	s.ok("echo ${A-none} $B ${PATHX-none} $KEPT; pwd; printenv B || echo not exported", "none old none changed\n/usr\nnot exported\n")
	s.ok("cd /etc", "", with)
	s.ok("pwd", "/etc\n")
	s.fails("ExitStatus", "1", "exit 1", with)
	s.ok("echo ${A-none} $B; pwd", "none old\n/etc\n")
	s.fails("InvalidEnvironment", "letters", "echo no", func(c *kernel.Cell) { c.Env = map[string]string{"a-b": "x"} })
	s.ok("readonly RO=1", "")
	s.fails("InvalidEnvironment", "RO", "echo no", func(c *kernel.Cell) { c.Env = map[string]string{"RO": "x"} })
	s.fails("InvalidDirectory", "/nonexistent", "echo no", func(c *kernel.Cell) { c.Cwd = "/nonexistent" })
	s.ok("pwd", "/etc\n")
	s.ok("pwd", "/\n", func(c *kernel.Cell) { c.Cwd = ".." })
}

func TestInput(t *testing.T) {
	s := start(t)
	answers := func(a ...string) func(*kernel.Cell) {
		return func(c *kernel.Cell) { c.AllowStdin = true }
	}
	run := func(code string, given ...string) done {
		r := &kerneltest.Recorder{Answers: given}
		c := kernel.NewCell(code, r)
		answers(given...)(c)
		return done{r, s.k.Execute(context.Background(), c)}
	}
	d := run("read -p 'name? ' x; echo hello $x; read y; echo $y", "Ada", "two words")
	if d.err != nil || d.Stream("stdout") != "hello Ada\ntwo words\n" || fmt.Sprint(d.Prompts()) != "[name?  ]" {
		t.Errorf("%v %q", d, d.Prompts())
	}
	if d = run("cat; echo done", "a", "b"); d.err != nil || d.Stream("stdout") != "a\nb\ndone\n" {
		t.Errorf("cat: %v", d)
	}
	if d = run("echo nobody asks"); len(d.Prompts()) > 0 || d.err != nil {
		t.Errorf("%v asked %q", d, d.Prompts())
	}
	if d = run("head -1 | tr a-z A-Z", "abc"); d.Stream("stdout") != "ABC\n" {
		t.Errorf("a pipeline: %v", d)
	}
	// An orphan of the cell's that asks is the kernel's child by then.
	file := filepath.Join(t.TempDir(), "answer")
	if d = run("( (read x; echo got $x > "+file+") <&0 & ); until [ -s "+file+" ]; do sleep 0.01; done; cat "+file, "deep"); d.Stream("stdout") != "got deep\n" {
		t.Errorf("an orphan: %v", d)
	}
	s.ok("read z; echo [$z]", "[]\n")
}

func TestQuestions(t *testing.T) {
	s := start(t)
	s.ok("myvariable=1; myfunction(){ :; }; cd "+t.TempDir()+"; touch file-one 'file two'", "")
	for _, c := range []struct {
		code string
		want string
	}{{"echo $myvar", "myvariable"}, {"myfun", "myfunction"}, {"ls | myfun", "myfunction"}, {"cat file-", "file-one"}, {"ech", "echo"}, {"é; echo ${myvar", "myvariable"}} {
		got, err := s.k.Complete(context.Background(), c.code, len([]rune(c.code)))
		if err != nil || len(got.Matches) == 0 || !strings.Contains(" "+strings.Join(got.Matches, " ")+" ", " "+c.want+" ") {
			t.Errorf("%q: %v %v", c.code, got, err)
		}
		if got.End != len([]rune(c.code)) || string([]rune(c.code)[got.Start:got.End]) != c.want[:got.End-got.Start] {
			t.Errorf("%q: from %d to %d", c.code, got.Start, got.End)
		}
	}
	for code, want := range map[string]string{"myfunction": "is a function", "echo": "shell builtin", "myvariable": `myvariable="1"`} {
		got, err := s.k.Inspect(context.Background(), code, 2, 0)
		if text, _ := got.Data["text/plain"].(string); err != nil || !got.Found || !strings.Contains(text, want) {
			t.Errorf("%s: %v %v", code, got, err)
		}
	}
	if got, err := s.k.Inspect(context.Background(), "nosuchthing", 2, 0); err != nil || got.Found {
		t.Errorf("nothing: %v %v", got, err)
	}
	for code, want := range map[string]string{"echo a": "complete", "if true; then": "incomplete", "for i in 1 2": "incomplete", "echo 'a": "incomplete",
		"fi": "invalid", "cat <<E": "incomplete", "echo \\": "incomplete", "": "complete", "f() {": "incomplete"} {
		got, err := s.k.IsComplete(context.Background(), code)
		if err != nil || got.Status != want {
			t.Errorf("%q: %v %v, want %s", code, got, err, want)
		}
	}
	s.fails("ExitStatus", "3", "exit 3")
	s.k.Complete(context.Background(), "ec", 2)
	s.ok("echo $?", "3\n") // a question changes nothing
}

// An interrupt at any moment of a short cell costs no state: not before the shell has begun
// with it, nor as it ends, nor while the copy that the last cell has asked for is being made.
func TestInterruptOfShortCells(t *testing.T) {
	s := start(t)
	s.ok("x=41", "")
	for i := range 150 {
		code := []string{":", "echo a; echo b", "(:); echo $(:)"}[i%3]
		d := s.runFor(time.Duration(i/3)*100*time.Microsecond+1, code)
		if e := (*kernel.Error)(nil); d.err != nil && !errors.Is(d.err, kernel.ErrInterrupted) && (!errors.As(d.err, &e) || e.Name != "Interrupted") || d.Stream("stderr") != "" {
			t.Errorf("%d: %q: %v", i, code, d)
		}
		s.ok("echo $x", "41\n")
	}
	s.ok("set -o posix", "")
	for range 20 {
		s.runFor(1, ":")
		s.ok("echo $x", "41\n")
	}
}

// Of what a stopped cell has started nothing takes a further step where another ends: not what
// ignores the interrupt, as all in the background does.
func TestInterruptEndsAtOnce(t *testing.T) {
	s := start(t)
	file := filepath.Join(t.TempDir(), "on")
	for _, code := range []string{
		"(sleep 300; STEP) & while :; do :; done",
		"(sleep 300; STEP) & wait",
		"(sleep 300; STEP); STEP",
		"(((sleep 300; STEP) & wait; STEP) & wait; STEP) & wait; STEP",
		"coproc { sleep 300; STEP; }; wait",
		"sleep 300 | (trap '' INT; cat; STEP); STEP",
		"x=$(sleep 300; STEP); STEP",
		"nohup bash -c 'sleep 300; STEP' >/dev/null 2>&1 & wait",
		"(setsid bash -c '(sleep 300; STEP) & wait; STEP' &); sleep 300",
		"sh -c '(sleep 300; STEP) & wait; STEP'; STEP",
		"echo 'a b' | xargs -n 1 -P 2 sh -c 'sleep 300; STEP'; STEP",
		"find / -maxdepth 1 -exec sleep 300 ';' -exec sh -c 'STEP' ';' & wait",
		"bash -c '(trap \"\" INT; sleep 300; STEP); STEP'; STEP", // bash takes a command that SIGTERM ends for one that goes well
		"(trap '' INT TERM; sleep 300; STEP); STEP",
		"set -m; (sleep 300; STEP) & (sleep 300; STEP); STEP",
		"set +m; (kill -STOP $BASHPID; STEP) & wait",
	} {
		d := s.runFor(300*time.Millisecond, strings.ReplaceAll(code, "STEP", "echo step >>"+file))
		if e := (*kernel.Error)(nil); !errors.As(d.err, &e) || e.Name != "Interrupted" {
			t.Errorf("%q: %v", code, d)
		}
		if _, err := os.Stat(file); err == nil {
			t.Errorf("%q: a step was taken", code)
			_ = os.Remove(file)
		}
	}
	// What cleans up can.
	s.stopped("Interrupted", "bash -c 'trap \"echo cleaned; exit\" INT; sleep 300'", "cleaned\n")
	s.stopped("Interrupted", "bash -c 'trap \"echo cleaned; exit\" INT; sleep 300 & wait'", "cleaned\n")
	s.stopped("Interrupted", "bash -c 'trap \"echo cleaned; exit\" TERM; sleep 300 & wait' & wait", "cleaned\n")
}
