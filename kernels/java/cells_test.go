package java

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cellard/cellard/protocol/jupyter/kernel"
	"github.com/cellard/cellard/protocol/jupyter/kernel/kerneltest"
)

func TestCells(t *testing.T) {
	onEach(t, func(t *testing.T, s *session) {
		s.is(t, "int x = 41; int f(int a) { return a + 1; }", "(none)")
		s.is(t, "f(x)", "42")
		s.is(t, "f(x);", "(none)") // a statement
		s.is(t, "x = 5", "5")
		s.is(t, "record P(int a, String b) {}\nvar l = List.of(new P(1, \"é\"), new P(2, \"z\"));\nl.size()", "2")
		s.is(t, "enum E { A, B }\ninterface I { int v(); }\nI i = () -> 3;\nsealed interface S permits T {} record T() implements S {}\ni.v()", "3")
		s.is(t, "import java.time.Duration;", "(none)")
		s.is(t, "Duration.ofSeconds(61)", "PT1M1S")
		s.is(t, "String x = \"now\"; x", `"now"`) // of another type
		s.is(t, "int f(int a) { return a + 2; }\nf(1)", "3")
		s.is(t, "\"tab\\t\\\"quoted\\\" 猫\"", `"tab\t\"quoted\" 猫"`)
		s.is(t, "'c'", "'c'")
		s.is(t, "System.console()", "null")
		s.is(t, "new int[][]{{1,2},{3}}", "int[2][] { int[2] { 1, 2 }, int[1] { 3 } }")
		s.is(t, "\n\n// a comment\nx.length() // another\n", "3")
		s.is(t, "", "(none)")
		s.is(t, "// nothing", "(none)")
		s.is(t, ";", "(none)")
		s.is(t, "for (int i = 0; i < 3; i++) { }\nif (x == null) x = \"\"; else x += \"!\";\nx", `"now!"`)
		s.is(t, "int[] a = {1, 2}; a[0] = 7; a[0]", "7")
		s.is(t, "<T> T same(T t) { return t; }\nsame(4)", "4")
		s.is(t, "switch (f(0)) { case 2 -> \"two\"; default -> \"other\"; }", `"two"`)
		s.is(t, "String text = \"\"\"\n    a;\n    // b\n    \"\"\";\ntext.lines().count()", "2")
		s.is(t, "int late() { return later() * 2; }", "(none)")
		s.is(t, "int later() { return 4; }", "(none)")
		s.is(t, "late()", "8")
		s.is(t, "ThreadLocal<Integer> mine = new ThreadLocal<>(); mine.set(3);", "(none)")
		s.is(t, "mine.get()", "3") // cells run on one thread
		s.is(t, "class C { private int v = 1; public String toString() { return \"C\" + v; } }\nnew C()", "C1")
		s.is(t, "class D {}\nnew D().toString().split(\"@\")[0].length() > 0", "true")
		if got := s.ok(t, "new D()").text(); !strings.HasPrefix(got, "D@") {
			t.Errorf("%q", got)
		}
	})
}

func TestStreams(t *testing.T) {
	onEach(t, func(t *testing.T, s *session) {
		r := s.ok(t, `System.out.println("out é 猫 🎉"); System.err.println("err"); System.out.write(0xc3); System.out.write(0xa9); System.out.flush();`)
		if o, e := r.Stream("stdout"), r.Stream("stderr"); o != "out é 猫 🎉\né" || e != "err\n" {
			t.Errorf("%q %q", o, e)
		}
		r = s.ok(t, `for (int i = 0; i < 100_000; i++) System.out.println(i);`)
		if o := r.Stream("stdout"); len(o) != 588_890 || !strings.HasSuffix(o, "\n99999\n") {
			t.Errorf("%d bytes", len(o))
		}
		if n := len(r.Messages()); n > 10_000 {
			t.Errorf("%d messages", n)
		}
		r = s.ok(t, `int code = new ProcessBuilder("sh", "-c", "echo child; echo other >&2; exit 3").inheritIO().start().waitFor(); code`)
		if o, e := r.Stream("stdout"), r.Stream("stderr"); o != "child\n" || e != "other\n" || r.text() != "3" {
			t.Errorf("%q %q %s", o, e, r.text())
		}
		// Halves of a character that are printed one by one are a character.
		r = s.ok(t, `for (char c : "a\uD83D\uDE00b".toCharArray()) System.out.print(c); System.out.print("\uD83D"); System.out.print("x"); System.out.println((Object) null); System.out.printf("%s %5.1f%n", "é", 1.25); System.out.append("s").append('c').println(new char[] {'o', 'k'});`)
		if o := r.Stream("stdout"); o != "a😀b?xnull\né   1.3\nscok\n" {
			t.Errorf("%q", o)
		}
		// A thread's output is its own cell's, whoever runs meanwhile.
		first := s.ok(t, `new Thread(() -> { while (!Thread.interrupted()) { System.out.print("1"); try { Thread.sleep(1); } catch (InterruptedException e) { return; } } }, "printer").start(); Thread.sleep(50);`)
		second := s.ok(t, `System.out.print("2"); Thread.sleep(100); for (var t : Thread.getAllStackTraces().keySet()) if (t.getName().equals("printer")) t.interrupt();`)
		if o := second.Stream("stdout"); o != "2" {
			t.Errorf("the second's: %q", o)
		}
		if o := first.Stream("stdout"); !strings.Contains(o, "1") || strings.Contains(o, "2") {
			t.Errorf("the first's: %q", o)
		}
		// A pool's work is of the cell that gave it.
		s.ok(t, `var pool = Executors.newFixedThreadPool(1); pool.submit(() -> 1).get();`)
		if o := s.ok(t, `pool.submit(() -> System.out.print("given")).get();`).Stream("stdout"); o != "given" {
			t.Errorf("the pool's: %q", o)
		}
		s.ok(t, "pool.shutdown();")
		// What a thread throws is told, on stderr, and costs nothing.
		r = s.ok(t, `var t1 = new Thread(() -> { throw new RuntimeException("lost"); }); t1.start(); t1.join();`)
		if e := r.Stream("stderr"); !strings.Contains(e, "RuntimeException: lost") {
			t.Errorf("%q", e)
		}
	})
}

// What a cell puts out in several ways comes in its order, also where the front end is
// slower than the cell.
func TestOrder(t *testing.T) {
	const start = `new ProcessBuilder("echo", "b", "" + i).inheritIO().start().waitFor();`
	onEach(t, func(t *testing.T, s *session) {
		for name, turn := range map[string]string{
			"text, child":         `System.out.println("a " + i); ` + start,
			"stderr, child":       `System.err.println("a " + i); ` + start,
			"display, child":      `display("text/html", "a " + i); ` + start,
			"child, text":         strings.Replace(start, `"b"`, `"a"`, 1) + ` System.out.println("b " + i);`,
			"child, display":      strings.Replace(start, `"b"`, `"a"`, 1) + ` display("text/html", "b " + i);`,
			"stderr, stdout":      `System.err.println("a " + i); System.out.println("b " + i);`,
			"display, text":       `display("text/html", "a " + i); System.out.println("b " + i);`,
			"text, pipeline":      `System.out.println("a " + i); var p = ProcessBuilder.startPipeline(List.of(new ProcessBuilder("echo", "b", "" + i), new ProcessBuilder("cat").redirectOutput(ProcessBuilder.Redirect.INHERIT))); p.get(1).waitFor();`,
			"text, Runtime":       `System.out.println("a " + i); Runtime.getRuntime().exec(new String[] {"sh", "-c", "echo b " + i + " >/proc/$PPID/fd/1"}).waitFor();`,
			"text, reference":     `System.out.println("a " + i); Callable<Process> start = new ProcessBuilder("echo", "b", "" + i).inheritIO()::start; start.call().waitFor();`,
			"text, interrupted":   `System.out.println("a " + i); Thread.currentThread().interrupt(); Process p = new ProcessBuilder("echo", "b", "" + i).inheritIO().start(); if (!Thread.interrupted()) throw new Exception("no longer interrupted"); p.waitFor();`,
			"text, other threads": `int n = i; Thread t = new Thread(() -> { System.out.println("a " + n); try { new ProcessBuilder("echo", "b", "" + n).inheritIO().start().waitFor(); } catch (Exception e) { } }); t.start(); t.join();`,
		} {
			t.Run(name, func(t *testing.T) {
				code := fmt.Sprintf("for (int i = 0; i < %d; i++) { %s }", kerneltest.Turns, turn)
				for _, slow := range []time.Duration{0, 5 * time.Millisecond} {
					s.ok(t, code, func(_ *kernel.Cell, r *kerneltest.Recorder) { r.Slow = slow }).Turned(t)
				}
			})
		}
		// A reference to each of the methods does what the method does.
		s.is(t, `interface Exec { Process of(String[] command, String[] env, File dir) throws IOException; }
interface Pipeline { List<Process> of(List<ProcessBuilder> builders) throws IOException; }
Exec exec = Runtime.getRuntime()::exec; Pipeline pipeline = ProcessBuilder::startPipeline;
String said(Process p) throws IOException { return new String(p.getInputStream().readAllBytes()); }
said(exec.of(new String[] {"sh", "-c", "echo $V; pwd"}, new String[] {"V=v"}, new File("/proc"))) + said(pipeline.of(List.of(new ProcessBuilder("echo", "x"), new ProcessBuilder("tr", "x", "y"))).get(1))`, `"v\n/proc\ny\n"`)
		// One that can't be started fails where it was, with the cell's lines alone.
		r := s.fails(t, "\n"+`new ProcessBuilder("/no/such").start();`, "java.io.IOException", "/no/such")
		if got := r.trace(); strings.Contains(got, "cellard") || !strings.Contains(got, "\tat (In[") {
			t.Errorf("%s", got)
		}
		s.fails(t, "ProcessBuilder none = null; none.start();", "java.lang.NullPointerException", "")
	})
}

// A cell whose time is up while the start of a process waits for the front end starts
// none, and the state is kept.
func TestStopsWhileSettling(t *testing.T) {
	onEach(t, func(t *testing.T, s *session) {
		s.ok(t, "int kept = 7; int started = 0;")
		h := kerneltest.NewHeld()
		ctx, cancel := context.WithCancelCause(context.Background())
		defer cancel(nil)
		over := make(chan error, 1)
		go func() {
			over <- s.Execute(ctx, kernel.NewCell(`display("text/html", "a"); new ProcessBuilder("echo", "b").inheritIO().start(); started++;`, h))
		}()
		<-h.Asked
		cancel(kernel.ErrInterrupted)
		time.Sleep(200 * time.Millisecond) // for Java to hear of it
		h.LetGo()
		select {
		case err := <-over:
			if !errors.Is(err, kernel.ErrInterrupted) {
				t.Error(err)
			}
		case <-time.After(patience):
			t.Fatal("it does not stop")
		}
		if got := h.Stream("stdout"); got != "" {
			t.Errorf("a process was started: %q", got)
		}
		s.is(t, "kept + started", "7")
	})
}

func TestErrors(t *testing.T) {
	onEach(t, func(t *testing.T, s *session) {
		r := s.fails(t, "int g(int n) {\n  return 1 / n;\n}\n\ng(0)", "java.lang.ArithmeticException", "/ by zero")
		if got := r.trace(); got != "java.lang.ArithmeticException: / by zero\n\tat g (In[1]:2)\n\tat (In[1]:5)" {
			t.Errorf("%s", got)
		}
		r = s.fails(t, "int before = 1;\nSystem.out.print(before);\n\nif (before == 1)\n  g(0);\nSystem.out.print(2);", "java.lang.ArithmeticException", "")
		if got := r.trace(); !strings.HasSuffix(got, "\tat g (In[1]:2)\n\tat (In[2]:5)") || r.Stream("stdout") != "1" {
			t.Errorf("%s %q", got, r.Stream("stdout"))
		}
		s.fails(t, `throw new IllegalStateException("boom");`, "java.lang.IllegalStateException", "boom")
		r = s.fails(t, `throw new RuntimeException("outer", new java.io.IOException("inner"));`, "java.lang.RuntimeException", "outer")
		if got := r.trace(); !strings.Contains(got, "Caused by: java.io.IOException: inner\n\tat (In[4]:1)") {
			t.Errorf("%s", got)
		}
		s.fails(t, "class Mine extends Exception { Mine(String m) { super(m); } }\nthrow new Mine(\"x\");", "Mine", "x")
		s.fails(t, "String z = null; z.length()", "java.lang.NullPointerException", `because "z" is null`)
		r = s.fails(t, "int deep(int n) { return deep(n + 1) + 1; }\ndeep(0)", "java.lang.StackOverflowError", "")
		if got := r.trace(); len(got) > 2000 || !strings.Contains(got, "times more") {
			t.Errorf("%s", got)
		}
		r = s.fails(t, `Integer.parseInt("x")`, "java.lang.NumberFormatException", "x")
		if got := r.trace(); !strings.Contains(got, "java.lang.Integer.parseInt") || !strings.HasSuffix(got, "(In[8]:1)") || strings.Contains(got, "cellard") {
			t.Errorf("%s", got)
		}
		s.fails(t, "void k() { notYet(); }\nk()", "UnresolvedReferenceException", "method notYet()")
		if e := s.ok(t, "void m() { neither(); }").Stream("stderr"); !strings.Contains(e, "method neither()") {
			t.Errorf("%q", e)
		}
		s.fails(t, "class Bad { public String toString() { throw new RuntimeException(\"own\"); } }\nnew Bad()", "java.lang.RuntimeException", "own")
		s.fails(t, "class Worse extends RuntimeException { public String getMessage() { throw new RuntimeException(); } }\nthrow new Worse();", "Worse", "getMessage threw")
		// What of the kernel a cell calls is not told, and hides nothing.
		r = s.fails(t, "Bad bad = new Bad();\ndisplay(bad);", "java.lang.RuntimeException", "own")
		if got := r.trace(); !strings.Contains(got, "own\n\tat Bad.toString (In[11]:1)\n") || !strings.HasSuffix(got, "\n\tat (In[13]:2)") {
			t.Errorf("%s", got)
		}
		r = s.fails(t, "\nSystem.in.read();", "StdinNotImplementedError", "")
		if got := r.trace(); !strings.HasSuffix(got, "\n\tat (In[14]:2)") {
			t.Errorf("%s", got)
		}
		s.is(t, "1 + 1", "2")
	})
}

func TestCompileErrors(t *testing.T) {
	onEach(t, func(t *testing.T, s *session) {
		r := s.fails(t, "int a = 1;\nint y = \"s\";", "CompileError", "incompatible types: java.lang.String cannot be converted to int (line 2, column 9)")
		if got := r.trace(); !strings.Contains(got, "    int y = \"s\";\n            ^") {
			t.Errorf("%s", got)
		}
		s.fails(t, "y", "CompileError", "cannot find symbol: variable y")
		s.fails(t, "System.out.println(1);\nSystem.out.println(nope);", "CompileError", "variable nope (line 2, column 20)")
		s.fails(t, "Lst<String> l = null;", "CompileError", "class Lst")
		s.fails(t, "l", "CompileError", "variable l")
		// What can't be parsed runs in no part.
		r = s.fails(t, "System.out.print(\"ran\");\nint q = ;", "CompileError", "line 2")
		if r.Stream("stdout") != "" {
			t.Errorf("ran: %q", r.Stream("stdout"))
		}
		for _, code := range []string{"x = = 1", "int v = (", "class A {", "\"open", "}", "if (true) {", "for (", "@", "import ;", "/* open", "\x00", "int \u202e = 1", "€"} {
			if r := s.cell(t, code, 0); r.err == nil || !strings.HasPrefix(r.err.Error(), "CompileError") {
				t.Errorf("%q: %v", code, r.err)
			}
		}
		// A variable whose first value could not be made is not there.
		s.fails(t, "int half = Integer.parseInt(\"x\");", "java.lang.NumberFormatException", "")
		s.fails(t, "half", "CompileError", "variable half")
		s.is(t, "a", "1")
		// As deep as this, javac's own stack does not reach.
		s.fails(t, "int nested = "+strings.Repeat("(", 20_000)+"1"+strings.Repeat(")", 20_000)+";", "CompileError", "")
		s.is(t, "a + 1", "2")
	})
}

func TestInput(t *testing.T) {
	onEach(t, func(t *testing.T, s *session) {
		answers := func(a ...string) func(*kernel.Cell, *kerneltest.Recorder) {
			return func(c *kernel.Cell, r *kerneltest.Recorder) { c.AllowStdin, r.Answers = true, a }
		}
		s.fails(t, "new Scanner(System.in).nextLine()", "StdinNotImplementedError", "without answers")
		s.fails(t, "new BufferedReader(new InputStreamReader(System.in)).readLine()", "StdinNotImplementedError", "")
		if got := s.ok(t, "var in = new Scanner(System.in); in.nextLine() + in.nextInt()", answers("é b", "12")).text(); got != `"é b12"` {
			t.Errorf("%s", got)
		}
		s.fails(t, "new Scanner(System.in).nextLine()", "StdinNotImplementedError", "", answers())
		s.is(t, "1", "1")
	})
}

func TestExit(t *testing.T) {
	onEach(t, func(t *testing.T, s *session) {
		s.ok(t, "int kept = 7;")
		for code, want := range map[string]string{
			"System.exit(3);":                                               "3",
			"Runtime.getRuntime().halt(5);":                                 "5",
			"Runtime.getRuntime().exit(6);":                                 "6",
			"java.util.function.IntConsumer e = System::exit; e.accept(8);": "8",
			"try { System.exit(7); } catch (Throwable t) { System.out.println(\"caught\"); }":            "7",
			"new Thread(() -> System.exit(4)).start(); Thread.sleep(100000);":                            "4",
			"Runnable r = () -> System.exit(9); r.run(); System.out.println(\"caught\");":                "9",
			"for (int i = 0; i < 4; i++) new Thread(() -> { while (true) {} }).start(); System.exit(2);": "2",
		} {
			r := s.fails(t, code, "ExitStatus", want)
			if o := r.Stream("stdout"); o != "" {
				t.Errorf("%s: went on: %q", code, o)
			}
		}
		for _, code := range []string{"System.exit(0); System.out.println(1);", "new Thread(() -> System.exit(0)).start(); Thread.sleep(100000);", "System.exit(0);\nint never = 1;\n1"} {
			r := s.ok(t, code)
			if o := r.Stream("stdout"); o != "" || len(r.Messages()) != 0 {
				t.Errorf("%s: went on: %q %v", code, o, r.Messages())
			}
		}
		s.is(t, "kept", "7")
	})
}
