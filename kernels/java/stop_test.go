package java

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cellard/cellard/internal/procfs"
	"github.com/cellard/cellard/protocol/jupyter/kernel"
	"github.com/cellard/cellard/protocol/jupyter/kernel/kerneltest"
)

// stops runs a cell that would not end, and stops it a moment after it has said, where
// its code has §, that it is there: on a busy machine its compilation can take seconds.
// Without a § it says so first.
func (s *session) stops(t *testing.T, code string) *run {
	t.Helper()
	const there = `System.out.print("@"); `
	if strings.Contains(code, "§") {
		code = strings.Replace(code, "§", there, 1)
	} else {
		code = there + code
	}
	r := &run{Recorder: &kerneltest.Recorder{}}
	s.count++
	c := kernel.NewCell(code, r.Recorder)
	c.Count = s.count
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	over := make(chan struct{})
	go func() {
		defer close(over)
		r.err = s.Execute(ctx, c)
	}()
	for end := time.Now().Add(patience); !strings.Contains(r.Stream("stdout"), "@"); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it does not come to it: %s", code)
		}
	}
	time.Sleep(100 * time.Millisecond)
	begin := time.Now()
	cancel(kernel.ErrInterrupted)
	select {
	case <-over:
		t.Logf("stopped in %v", time.Since(begin).Round(time.Millisecond))
	case <-time.After(patience):
		t.Fatalf("it does not stop: %s", code)
	}
	if !errors.Is(r.err, kernel.ErrInterrupted) {
		t.Fatalf("%s: %v\n%s", code, r.err, r.trace())
	}
	return r
}

// endless are cells without an end, each of which must stop with the state kept.
var endless = map[string]string{
	"loop":                    `while (true) {}`,
	"for":                     `for (;;) counter++;`,
	"do":                      `do { counter++; } while (counter != -1);`,
	"switch":                  `while (true) switch ((int) counter % 3) { case 0: counter++; continue; case 1: counter += 2; continue; default: counter = 0; }`,
	"recursion":               "int spin(int n) { return n > 100 ? spin(0) : spin(n + 1); }\n§while (true) { try { spin(0); } catch (StackOverflowError e) { } }",
	"swallowed":               `while (true) { try { while (true) { counter++; } } catch (Throwable t) { } }`,
	"swallowed as Error":      `while (true) { try { counter++; Thread.sleep(1); } catch (Error | Exception t) { } }`,
	"sleep":                   `Thread.sleep(300_000);`,
	"sleep, swallowed":        `while (true) try { Thread.sleep(10); } catch (Throwable t) { }`,
	"sleep, finally":          `while (true) try { Thread.sleep(10); } finally { continue; }`,
	"latch":                   `new CountDownLatch(1).await();`,
	"wait":                    `Object o = new Object(); synchronized (o) { o.wait(); }`,
	"lock":                    "var lock = new java.util.concurrent.locks.ReentrantLock();\nThread holder = new Thread(() -> { lock.lock(); try { Thread.sleep(300_000); } catch (InterruptedException e) { } });\nholder.start(); Thread.sleep(50); § lock.lock();",
	"synchronized":            `synchronized (Object.class) { for (;;) { } }`,
	"park":                    `while (true) java.util.concurrent.locks.LockSupport.park();`,
	"lambda":                  `Runnable r = () -> { while (true) {} }; r.run();`,
	"stream":                  `Stream.iterate(1, i -> i).forEach(i -> {});`,
	"stream without a lambda": `Stream.generate("x"::length).filter(Objects::isNull).count()`,
	"parallel stream":         `List.of(1, 2, 3, 4).parallelStream().forEach(i -> { while (true) {} });`,
	"parallel library":        `IntStream.range(0, 1000).parallel().mapToObj(i -> java.math.BigInteger.TWO.pow(50_000_000 + i).pow(3).bitLength()).reduce(Integer::sum)`,
	"async":                   `CompletableFuture.supplyAsync(() -> { while (true) {} }).get();`,
	"BigInteger":              `BigInteger.TWO.pow(300_000_000).pow(7).toString().length()`,
	"regex":                   `"x".repeat(64).matches("(x*)*(x*)*(x*)*(x*)*(x*)*(x*)*(x*)*(x*)*(x*)*(x*)*(x*)*(x*)*(x*)*y\\1")`,
	"sort":                    `while (true) Arrays.sort(new Random(1).ints(3_000_000).toArray());`,
	"initializer":             "class Slow { static int v = count(); static int count() { int n = 0; while (true) { n++; } } }\n§;Slow.v",
	"threads":                 `for (int i = 0; i < 4; i++) new Thread(() -> { while (true) System.out.println("old"); }).start(); while (true) {}`,
	"threads that wait":       `for (int i = 0; i < 4; i++) new Thread(() -> { while (true) try { Thread.sleep(20); System.out.println("old"); } catch (Throwable e) { } }).start(); while (true) {}`,
	"pool":                    `Executors.newFixedThreadPool(2).submit(() -> { while (true) {} }).get();`,
	"timer":                   `new java.util.Timer().schedule(new java.util.TimerTask() { public void run() { System.out.println("old"); } }, 10, 10); while (true) {}`,
	"scheduled":               `Executors.newScheduledThreadPool(1).scheduleAtFixedRate(() -> System.out.println("old"), 1, 1, TimeUnit.MILLISECONDS); while (true) {}`,
	"child":                   `new ProcessBuilder("sleep", "300").start().waitFor();`,
	"child that is read":      `new ProcessBuilder("sleep", "300").start().getInputStream().read();`,
	"child that resists":      `new ProcessBuilder("sh", "-c", "trap '' INT TERM HUP; while :; do sleep 1; done").start().waitFor();`,
	"child of its own":        `new ProcessBuilder("setsid", "sh", "-c", "sleep 300 & sleep 300").start().waitFor();`,
	"children, one by one":    `while (true) { System.out.println("old"); new ProcessBuilder("true").start().waitFor(); }`,
	"children of threads":     `for (int i = 0; i < 4; i++) new Thread(() -> { while (true) try { System.out.println("old"); new ProcessBuilder("true").start().waitFor(); } catch (Throwable e) { } }).start(); while (true) {}`,
	"accept":                  `new ServerSocket(0).accept();`,
	"channel":                 `java.nio.channels.ServerSocketChannel.open().bind(new InetSocketAddress(0)).accept();`,
	"datagram":                `new DatagramSocket(0).receive(new DatagramPacket(new byte[9], 9));`,
	"printing":                `while (true) System.out.print("old");`,
	"displaying":              `while (true) display("old");`,
	"result":                  "class Long { public String toString() { while (true) {} } }\n§;new Long()",
	"hash":                    "class Key { public int hashCode() { while (true) {} } }\n§new HashMap<Key, Integer>().put(new Key(), 1);",
	"exit hook":               `Runtime.getRuntime().addShutdownHook(new Thread(() -> { })); while (true) {}`,
	"class loading":           `while (true) new java.net.URLClassLoader(new java.net.URL[0]).loadClass("java.lang.String");`,
	"reflection":              "class Refl { static void loop() { while (true) {} } }\n§Refl.class.getDeclaredMethod(\"loop\").invoke(null);",
}

// virtual are those that need virtual threads.
var virtual = map[string]string{
	"virtual loop":  `Thread.ofVirtual().start(() -> { while (true) {} }).join();`,
	"virtual sleep": `Thread.ofVirtual().start(() -> { while (true) try { Thread.sleep(20); System.out.println("old"); } catch (Throwable t) { } }).join();`,
	"virtual many":  `try (var e = Executors.newVirtualThreadPerTaskExecutor()) { for (int i = 0; i < 1000; i++) e.submit(() -> { while (true) { Thread.sleep(1); counter++; } }); }`,
	"virtual park":  `Thread.ofVirtual().start(() -> { while (true) java.util.concurrent.locks.LockSupport.park(); }).join();`,
}

func TestStops(t *testing.T) {
	onEach(t, func(t *testing.T, s *session) {
		s.ok(t, "int kept = 7; long counter = 0;")
		cells := []map[string]string{endless}
		if s.o.Java.Major >= 21 {
			cells = append(cells, virtual)
		}
		for _, m := range cells {
			for name, code := range m {
				t.Run(name, func(t *testing.T) {
					since := procfs.Now()
					r := s.stops(t, code)
					if born := reaper.Born(since, nil); len(born) > 0 {
						t.Errorf("processes are left: %+v", born)
					}
					if old := strings.Count(r.Stream("stdout"), "old"); old > 0 {
						time.Sleep(50 * time.Millisecond)
						if now := strings.Count(r.Stream("stdout"), "old"); now > old {
							t.Errorf("it goes on printing: %d, then %d", old, now)
						}
					}
					after := s.cell(t, "Thread.sleep(30); kept", 0)
					if after.err != nil || after.text() != "7" || after.Stream("stdout") != "" {
						t.Errorf("the next cell: %v %s %q", after.err, after.text(), after.Stream("stdout"))
					}
				})
			}
		}
		if busy := s.ok(t, `Thread.getAllStackTraces().entrySet().stream().filter(e -> e.getKey() != Thread.currentThread() && e.getKey().getState() == Thread.State.RUNNABLE && Arrays.stream(e.getValue()).anyMatch(f -> f.getClassName().startsWith("REPL"))).count()`).text(); busy != "0" {
			t.Errorf("%s threads of old cells run", busy)
		}
		if s.stopped() {
			t.Error("a thread had to be left behind")
		}
	})
}

// stopped tells whether Java has more than one thread for cells: those that were given up.
func (s *session) stopped() bool {
	names, _ := filepath.Glob("/proc/" + itoa(s.m.pid()) + "/task/*/comm")
	n := 0
	for _, name := range names {
		if readString(name) == "main\n" {
			n++
		}
	}
	return n > 1
}

// A class of the JDK that a cell is stopped in while it is initialized could not be used
// again, by any cell.
func TestStopsInInitializer(t *testing.T) {
	onEach(t, func(t *testing.T, s *session) {
		s.ok(t, `import java.util.concurrent.atomic.AtomicBoolean;
AtomicBoolean begun = new AtomicBoolean(), done = new AtomicBoolean();
public class Manager extends java.util.logging.LogManager {
	public Manager() {
		begun.set(true);
		Stream.generate(done::get).anyMatch(Boolean.TRUE::equals);
	}
}
System.setProperty("java.util.logging.manager", Manager.class.getName());
Thread clock = new Thread(() -> { while (!begun.get()) Thread.onSpinWait(); try { Thread.sleep(250); } catch (InterruptedException e) { } done.set(true); });
clock.start();`)
		s.stops(t, `java.util.logging.LogManager.getLogManager(); while (true) { }`)
		s.is(t, `java.util.logging.Logger.getLogger("named").getName()`, `"named"`)
		s.is(t, `java.util.logging.LogManager.getLogManager().getClass() == Manager.class`, "true")
	})
}

// A cell that waits for a child doesn't go on when that is ended.
func TestStopsBeforeTheNextStep(t *testing.T) {
	onEach(t, func(t *testing.T, s *session) {
		s.ok(t, `int steps = 0; void step() { steps++; System.out.println("step"); }`)
		for _, code := range []string{
			`new ProcessBuilder("sleep", "300").start().waitFor(); steps++; System.out.println("step");`,
			`try { new ProcessBuilder("sleep", "300").start().waitFor(); } catch (Exception e) { } steps++; System.out.println("step");`,
			`try { new ProcessBuilder("sleep", "300").start().getInputStream().readAllBytes(); } catch (Throwable e) { } steps++; System.out.println("step");`,
			`var in = new BufferedReader(new InputStreamReader(new ProcessBuilder("sleep", "300").start().getInputStream())); in.readLine(); steps++;`,
			`new String(new ProcessBuilder("sleep", "300").redirectErrorStream(true).start().getInputStream().readAllBytes()); steps++;`,
			`Process p = new ProcessBuilder("sh", "-c", "trap '' INT; sleep 300").start(); p.onExit().join(); steps++;`,
			`Thread t = new Thread(() -> { try { new ProcessBuilder("sleep", "300").start().waitFor(); } catch (Exception e) { } steps++; }); t.start(); t.join();`,
		} {
			for range 3 {
				if r := s.stops(t, code); strings.Contains(r.Stream("stdout"), "step") {
					t.Errorf("%s: %q", code, r.Stream("stdout"))
				}
				s.is(t, "steps", "0")
				s.ok(t, "steps = 0;")
			}
		}
	})
}

// What threads were stopped in printing is not printed by the next cell.
func TestStopsPrinting(t *testing.T) {
	onEach(t, func(t *testing.T, s *session) {
		for range 20 {
			s.stops(t, `for (int i = 0; i < 4; i++) new Thread(() -> { while (true) System.out.println("old"); }).start(); while (true) { System.out.print("old"); System.err.print("old"); }`)
			if r := s.ok(t, `System.out.println("new"); System.err.print("new");`); r.Stream("stdout") != "new\n" || r.Stream("stderr") != "new" {
				t.Fatalf("%q %q", r.Stream("stdout"), r.Stream("stderr"))
			}
		}
	})
}

// What can't be stopped is left behind: the next cells run on another thread, and the
// old one does nothing any more.
func TestLeftBehind(t *testing.T) {
	onEach(t, func(t *testing.T, s *session) {
		fifo := filepath.Join(t.TempDir(), "fifo")
		s.ok(t, `int kept = 7; new ProcessBuilder("mkfifo", "`+fifo+`").start().waitFor();`)
		r := s.stops(t, `new FileInputStream("`+fifo+`").read(); System.out.println("old"); while (true) {}`)
		s.is(t, "kept", "7")
		// It comes to life, in this cell, and stops.
		after := s.ok(t, `new FileOutputStream("`+fifo+`").write(65); Thread.sleep(200); kept`)
		if after.text() != "7" || after.Stream("stdout") != "" || r.Stream("stdout") != "@" {
			t.Errorf("%s %q %q", after.text(), after.Stream("stdout"), r.Stream("stdout"))
		}
		s.stops(t, "while (true) {}")
	})
}

// What an earlier cell has started lives on when a later one is stopped.
func TestServersLive(t *testing.T) {
	onEach(t, func(t *testing.T, s *session) {
		s.ok(t, `Process child = new ProcessBuilder("sleep", "300").start();
java.util.concurrent.atomic.AtomicLong beats = new java.util.concurrent.atomic.AtomicLong();
Thread heart = new Thread(() -> { while (true) { beats.incrementAndGet(); try { Thread.sleep(1); } catch (InterruptedException e) { return; } } });
heart.setDaemon(true);
heart.start();`)
		s.stops(t, "while (true) {}")
		s.is(t, "long seen = beats.get(); Thread.sleep(200); child.isAlive() && heart.isAlive() && beats.get() > seen", "true")
		s.ok(t, "child.destroy(); heart.interrupt();")
	})
}

// A cell whose time is up before it has begun, and one that is being compiled.
func TestStopsEarly(t *testing.T) {
	onEach(t, func(t *testing.T, s *session) {
		if r := s.cell(t, "Thread.sleep(300_000);", time.Nanosecond); !errors.Is(r.err, kernel.ErrInterrupted) {
			t.Error(r.err)
		}
		r := s.cell(t, strings.Repeat("int v = 1;\n", 3000), 300*time.Millisecond)
		if !errors.Is(r.err, kernel.ErrInterrupted) {
			t.Error(r.err)
		}
		s.is(t, "1 + 1", "2")
	})
}
