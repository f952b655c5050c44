package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cellard/cellard/internal/drawing"
	"github.com/cellard/cellard/internal/fixture"
	"github.com/cellard/cellard/internal/pythons"
	"github.com/cellard/cellard/mime"
)

// terminal is a pseudoterminal with a command in it.
type terminal struct {
	*served
	master *os.File
	read   chan struct{}
}

func startTerminal(t *testing.T, env []string, args ...string) *terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 120})
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	c := cellard(t, env, args...)
	c.Stdin, c.Stdout, c.Stderr = slave, slave, slave
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	x := &terminal{served: &served{t: t, c: c, log: &fixture.Buffer{}, ended: make(chan error, 1)}, master: master, read: make(chan struct{})}
	go func() { x.ended <- c.Wait() }()
	go func() {
		defer close(x.read)
		for b := make([]byte, 4096); ; {
			n, err := master.Read(b)
			_, _ = x.log.Write(b[:n])
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = c.Process.Kill()
		<-x.read
		master.Close()
		if t.Failed() {
			t.Logf("the terminal:\n%q", x.log)
		}
	})
	return x
}

func (x *terminal) typed(s string) {
	x.t.Helper()
	if _, err := x.master.WriteString(s); err != nil {
		x.t.Fatal(err)
	}
}

func terminalEnv(t *testing.T) []string {
	return []string{"CELLARD_PYTHON=" + pythons.Newest(t), "TERM=xterm", "CELLARD_WORKSPACE=" + fixture.Dir(t, 0o777),
		"CELLARD_RUNTIME_DIR=" + fixture.Dir(t, 0o711), "TMPDIR=" + fixture.Dir(t, 0o755), "HOME=" + fixture.Dir(t, 0o755)}
}

// A conversation in a terminal: completion, lines that belong together, input, an
// interrupt, an end.
func TestReplInTerminal(t *testing.T) {
	env := terminalEnv(t)
	x := startTerminal(t, env, "repl")
	x.logged(`ipython [0-9.]+, context python`)
	x.logged(`\[1\]> `)
	x.typed("import os.path\r")
	x.logged(`\[2\]> `)
	x.typed("os.path.basena\t")
	x.logged(`os\.path\.basename`)
	x.typed("('/a/b')\r")
	x.logged(`'b'`)
	x.logged(`\[3\]> `)
	x.typed("for i in range(2):\r")
	x.logged(`\.\.\.> `)
	x.typed("print('line', i * 100)\r\r")
	x.logged(`line 100`)
	x.logged(`\[4\]> `)
	x.typed("input('name? ') * 2\r")
	x.logged(`\nname\? `)
	x.typed("Ada\r")
	x.logged(`'AdaAda'`)
	x.logged(`\[5\]> `)
	x.typed("import time; print('be' + 'gun'); time.sleep(1000)\r")
	x.logged(`begun`)
	x.typed("\x03")
	x.logged(`KeyboardInterrupt`)
	x.logged(`\[6\]> `)
	x.typed("half of a li\x03")
	x.typed("'still ' + 'here'\r")
	x.logged(`'still here'`)
	x.logged(`\[7\]> `)
	x.typed("\x04")
	if code := x.end(); code != 0 {
		t.Errorf("code %d", code)
	}
	file := filepath.Join(strings.TrimPrefix(env[5], "HOME="), ".local/state/cellard/history-python")
	if b, err := os.ReadFile(file); err != nil || !strings.Contains(string(b), "'still ' + 'here'\n") {
		t.Errorf("history: %q %v", b, err)
	}
}

// The prompt has the number of the kernel's next cell, whoever ran the last one and whatever
// became of the kernel.
func TestReplCounts(t *testing.T) {
	env := terminalEnv(t)
	address := "unix://" + filepath.Join(fixture.Dir(t, 0o755), "s")
	agent := startServe(t, env, "--listen", address)
	agent.logged("msg=serving")
	run := func(code string) {
		t.Helper()
		if code, _, stderr := output(t, env, "run", "--agent", address, "--language", "bash", "-c", code); code != 0 {
			t.Fatalf("code %d, %s", code, stderr)
		}
	}
	for _, language := range []string{"python", "bash"} { // ipykernel doesn't count a cell of nothing
		x := startTerminal(t, env, "repl", "--agent", address, "--language", language)
		x.logged(`\[1\]> $`)
		x.typed("\r")
		x.logged(`\[1\]> \r\n[^\n]*\[1\]> $`)
		x.typed(":help\r")
		x.logged(`:help  :quit[^\n]*\n[^\n]*\[1\]> $`)
		x.typed("x=1\r")
		x.logged(`\[2\]> $`)
		x.typed("half\x03")
		x.logged(`\^C\r\n\[2\]> $`)
		x.typed(":restart\r")
		x.logged(`generation 2\r\n[^\n]*\[1\]> $`)
		x.typed("x=2\r")
		x.logged(`generation 2(.|\n)*\[2\]> $`)
		x.typed(map[string]string{"python": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)\r", "bash": "kill -9 $PPID\r"}[language])
		x.logged(`ended as lost(.|\n)*\[1\]> $`)
		x.typed("x=3\r")
		x.logged(`ended as lost(.|\n)*\[2\]> $`)
		if language == "bash" {
			run("true")
			x.typed(":\r") // no command, and another has run a cell meanwhile
			x.logged(`there is no :;(.|\n)*\[3\]> $`)
		}
		x.typed("\x04")
		if code := x.end(); code != 0 {
			t.Errorf("code %d", code)
		}
	}
	// Who comes later finds the count of the kernel that is there.
	run("true")
	x := startTerminal(t, env, "repl", "--agent", address, "--context", "bash")
	x.logged(`\[4\]> $`)
	x.typed("exit\r")
	if code := x.end(); code != 0 {
		t.Errorf("code %d", code)
	}
}

// A cell that will not end is left by a second Ctrl-C.
func TestRunIsLeft(t *testing.T) {
	x := startTerminal(t, terminalEnv(t), "run", "--interrupt-grace", "10m", "-c",
		"print('in', flush=True)\nsum(range(10**14))") // which looks for no signal
	x.logged(`in\r\n`)
	x.typed("\x03")
	x.logged(`\^C`)
	time.Sleep(100 * time.Millisecond) // two at once are one signal
	x.typed("\x03")
	if code := x.end(); code != exitInterrupted || !strings.Contains(x.log.String(), "left;") {
		t.Errorf("code %d", code)
	}
}

// A question in a terminal: an answer that is not shown, and a Ctrl-C or an end of file in
// place of one, which the next question doesn't get.
func TestQuestionsInTerminal(t *testing.T) {
	x := startTerminal(t, terminalEnv(t), "run", "-c", "import getpass\nlen(getpass.getpass('word? '))", "-c", "'still ' + input('name? ')")
	x.logged(`word\? `)
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		if m, err := unix.IoctlGetTermios(int(x.master.Fd()), unix.TCGETS); err != nil || time.Now().After(end) {
			t.Fatalf("it still shows what is typed: %v", err)
		} else if m.Lflag&unix.ECHO == 0 {
			break
		}
	}
	x.typed("secret\r")
	x.logged(`6\r\nname\? `)
	x.typed("Ada\r")
	x.logged(`'still Ada'`)
	if code := x.end(); code != 0 || strings.Contains(x.log.String(), "secret") {
		t.Errorf("code %d, %q", code, x.log)
	}
	for _, typed := range []string{"\x03", "\x04"} {
		x := startTerminal(t, terminalEnv(t), "run", "-c", "input('name? ')")
		x.logged(`name\? `)
		x.typed(typed)
		if code := x.end(); code != exitInterrupted {
			t.Errorf("%q: code %d", typed, code)
		}
	}
	x = startTerminal(t, terminalEnv(t), "repl")
	x.logged(`\[1\]> `)
	x.typed("input('name? ')\r")
	x.logged(`\nname\? `)
	x.typed("\x03")
	x.logged(`KeyboardInterrupt`)
	x.logged(`\[2\]> `)
	x.typed("'still ' + 'here'\r")
	x.logged(`'still here'`)
	x.logged(`\[3\]> `)
	x.typed("\x04")
	if code := x.end(); code != 0 {
		t.Errorf("code %d", code)
	}
}

// A signal that ends programs ends these at once, whatever runs, with its own exit code.
func TestTerminated(t *testing.T) {
	for name, c := range map[string]struct {
		args   []string
		signal syscall.Signal
		when   string
	}{
		"run":    {[]string{"run", "-c", "import time; print('be' + 'gun', flush=True)\ntry: time.sleep(1000)\nexcept: print('inter' + 'rupted')"}, syscall.SIGTERM, "begun"},
		"hangup": {[]string{"run", "-c", "import time; print('be' + 'gun', flush=True); time.sleep(1000)"}, syscall.SIGHUP, "begun"},
		"repl":   {[]string{"repl"}, syscall.SIGTERM, `\[1\]> `},
	} {
		t.Run(name, func(t *testing.T) {
			x := startTerminal(t, terminalEnv(t), c.args...)
			x.logged(c.when)
			x.signal(c.signal)
			if code := x.end(); code != 128+int(c.signal) {
				t.Errorf("code %d", code)
			}
			<-x.read
			if log := x.log.String(); strings.Contains(log, "ended as") {
				t.Errorf("it was taken for a Ctrl-C: %q", log)
			}
		})
	}
}

// An image in a terminal that can show it.
func TestImagesInTerminal(t *testing.T) {
	const code = "from IPython.display import display\ndisplay({'image/png': 'AAAA' * 2000}, raw=True)"
	png := bytes.Repeat([]byte{0, 0, 0}, 2000)
	x := startTerminal(t, append(terminalEnv(t), "KITTY_WINDOW_ID=1"), "run", "-c", code)
	if code := x.end(); code != 0 {
		t.Errorf("code %d", code)
	}
	<-x.read
	var got strings.Builder
	for _, m := range regexp.MustCompile("\x1b_G[^;]*;([^\x1b]*)\x1b\\\\").FindAllStringSubmatch(x.log.String(), -1) {
		got.WriteString(m[1])
	}
	if b, err := base64.StdEncoding.DecodeString(got.String()); err != nil || !bytes.Equal(b, png) {
		t.Errorf("kitty: %d bytes, %v", len(b), err)
	}
	var b bytes.Buffer
	if !iterm(&b, "image/png", png) || !strings.HasPrefix(b.String(), "\x1b]1337;File=inline=1;size=6000:AAAA") || kitty(&b, "image/jpeg", png) {
		t.Errorf("%.100q", b.String())
	}
	for env, want := range map[string]bool{"TERM=xterm-kitty": true, "TERM_PROGRAM=iTerm.app": true, "TERM=xterm": false, "TMUX=x": false} {
		k, v, _ := strings.Cut(env, "=")
		if got := terminalGraphics(func(n string) string { return map[string]string{k: v}[n] }); (got != nil) != want {
			t.Errorf("%s: %v", env, got != nil)
		}
	}
}

func TestDrawTable(t *testing.T) {
	var table mime.Table
	err := json.Unmarshal([]byte(`{"columns":["name","日本","n"],"types":["string","string","integer"],
		"rows":[["a\tb","漢字",1],["long `+strings.Repeat("x", 100)+`",null,22]],"index":[["k",1],["k",2]],"rowCount":5,"truncated":true}`), &table)
	if err != nil {
		t.Fatal(err)
	}
	want := "" +
		"       name                                      日本   n\n" +
		"─────  ────────────────────────────────────────  ────  ──\n" +
		"k / 1  a b                                       漢字   1\n" +
		"k / 2  long " + strings.Repeat("x", 34) + "…  –     22\n" +
		"… 5 rows in all\n"
	if got := drawing.Table(table, 100); got != want {
		t.Errorf("drawn as\n%s\nwanted\n%s", got, want)
	}
	if got := drawing.Table(table, 30); !strings.Contains(got, "… 5 rows in all, 3 more columns\n") {
		t.Errorf("drawn narrow as\n%s", got)
	}
	// Rows that are shorter than the columns, and no columns at all.
	drawing.Table(mime.Table{Columns: []string{"a", "b"}, Rows: [][]any{{1.0}}, RowCount: 1}, 80)
	drawing.Table(mime.Table{Rows: [][]any{{}}, RowCount: 1}, 80)
}
