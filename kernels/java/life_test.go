package java

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cellard/cellard/protocol/jupyter/kernel"
)

// Without memory a cell fails, and the session lives.
func TestOutOfMemory(t *testing.T) {
	for _, j := range javas(t) {
		// Little memory, so that it is soon gone.
		s := start(t, Options{Java: j, Env: append(os.Environ(), "CELLARD_JAVA_OPTIONS=-Xmx96m", "XDG_CACHE_HOME="+t.TempDir())})
		s.ok(t, "int kept = 7;")
		s.fails(t, "var all = new ArrayList<long[]>(); while (true) all.add(new long[1 << 24]);", "java.lang.OutOfMemoryError", "")
		s.ok(t, "all = null;")
		s.is(t, "kept", "7")
		s.fails(t, "{ var own = new ArrayList<byte[]>(); while (true) own.add(new byte[1 << 14]); }", "java.lang.OutOfMemoryError", "")
		s.is(t, "kept", "7")
	}
}

// A machine that dies ends the kernel as it has ended itself.
func TestDies(t *testing.T) {
	for _, j := range javas(t) {
		t.Run(j.Version, func(t *testing.T) {
			for name, c := range map[string]struct {
				code   string
				signal syscall.Signal
				exit   int
			}{
				"killed":      {`new ProcessBuilder("sh", "-c", "kill -KILL $PPID").start().waitFor(); Thread.sleep(100000);`, syscall.SIGKILL, -1},
				"crash":       {`new ProcessBuilder("kill", "-SEGV", "" + ProcessHandle.current().pid()).start().waitFor(); Thread.sleep(100000);`, syscall.SIGABRT, -1},
				"halt":        {`Runtime.class.getMethod("halt", int.class).invoke(Runtime.getRuntime(), 7);`, 0, 7},
				"own channel": {`try (var out = new FileOutputStream("/proc/self/fd/4")) { out.write("nonsense, and more of it".getBytes()); } Thread.sleep(100000);`, syscall.SIGKILL, -1},
				"huge frame":  {`try (var out = new FileOutputStream("/proc/self/fd/4")) { out.write(new byte[]{0x7f, -1, -1, -1, 'o'}); } Thread.sleep(100000);`, syscall.SIGKILL, -1},
			} {
				t.Run(name, func(t *testing.T) {
					s := start(t, Options{Java: j})
					r := s.cell(t, `System.out.println("before");`+"\n"+c.code, 0)
					if r.err == nil || !strings.HasPrefix(r.Stream("stdout"), "before\n") {
						t.Fatalf("%v %q", r.err, r.Stream("stdout"))
					}
					if e := (*kernel.Error)(nil); errors.As(r.err, &e) {
						t.Fatalf("the cell's error: %v", r.err)
					}
					var died *kernel.DiedError
					switch {
					case strings.Contains(name, "own") || strings.Contains(name, "frame"):
						if !errors.Is(r.err, errFrame) {
							t.Errorf("%v", r.err)
						}
					case !errors.As(r.err, &died) || died.Signal() != c.signal || died.ExitCode() != c.exit:
						t.Errorf("%v", r.err)
					}
					leavesNothing(t)
				})
			}
		})
	}
}

// leavesNothing looks for what a machine that crashes may write into its directory.
func leavesNothing(t *testing.T) {
	t.Helper()
	for _, pattern := range []string{"hs_err*", "core*", "replay*"} {
		if files, _ := filepath.Glob(pattern); len(files) > 0 {
			t.Errorf("%q are left", files)
		}
	}
}

// What is no Java is an error with its last words, and leaves nothing.
func TestNoMachine(t *testing.T) {
	j := *javas(t)[0]
	s := New(Options{Java: &j, Reaper: reaper, Env: append(os.Environ(), "CELLARD_JAVA_OPTIONS=-XX:+NoSuchOption")})
	if _, err := s.Info(); err == nil {
		t.Error("it starts with an option that there is not")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	j.Executable = "/bin/false"
	s = New(Options{Java: &j, Reaper: reaper})
	if _, err := s.Info(); err == nil {
		t.Error("/bin/false is Java")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	j.Executable = "/no/such/program"
	s = New(Options{Java: &j, Reaper: reaper})
	if _, err := s.Info(); err == nil {
		t.Error("/no/such/program is Java")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestAssist(t *testing.T) {
	onEach(t, func(t *testing.T, s *session) {
		s.ok(t, "String text = \"é\"; /** Doubles. */ int twice(int n) { return 2 * n; }")
		c, err := s.Complete(t.Context(), "var é = \"🎉\"; text.leng", 22)
		if err != nil || len(c.Matches) != 1 || !strings.HasPrefix(c.Matches[0], "length(") || c.Start != 18 || c.End != 22 {
			t.Errorf("%+v %v", c, err)
		}
		if c, err := s.Complete(t.Context(), "nothing.at.all.", 15); err != nil || len(c.Matches) != 0 {
			t.Errorf("%+v %v", c, err)
		}
		if c, err := s.Complete(t.Context(), "twi", 99); err != nil || len(c.Matches) != 1 {
			t.Errorf("%+v %v", c, err)
		}
		for code, want := range map[string]string{"twice(1)": "int twice(int n)", "Math.max": "Math.max(int", "text": "text"} {
			i, err := s.Inspect(t.Context(), code, len(code)-1, 0)
			if text, _ := i.Data["text/plain"].(string); err != nil || !i.Found || !strings.Contains(text, want) {
				t.Errorf("%s: %+v %v", code, i, err)
			}
		}
		if i, err := s.Inspect(t.Context(), "noSuchThing", 3, 1); err != nil || i.Found {
			t.Errorf("%+v %v", i, err)
		}
		for code, want := range map[string]string{
			"1 + 1": "complete", "int x = 1;": "complete", "": "complete", "int f() {": "incomplete", "if (true) {": "incomplete",
			"int x = 1;\nfor (": "incomplete", "x = = 1": "invalid", "}": "invalid", "f(": "incomplete",
		} {
			got, err := s.IsComplete(t.Context(), code)
			if err != nil || got.Status != want || (want == "incomplete" && code == "int f() {" && got.Indent != "    ") {
				t.Errorf("%q: %+v %v", code, got, err)
			}
		}
	})
}
