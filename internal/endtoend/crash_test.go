package endtoend

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cellard/cellard/internal/fixture"
	"github.com/cellard/cellard/internal/procfs"
	"github.com/cellard/cellard/protocol/api"
)

// crashing are the languages whose processes are killed, each with a cell that sets v,
// one that sets it and works for a while, with a child, and one that prints v or "none".
var crashing = []struct {
	language        string
	rounds          int // a start takes some languages long
	set, work, tell string
}{
	{"bash", 12, "v=%d", "v=%d; for ((i = 0; i < 60; i++)); do echo $i; sleep 0.005; done", "printf %s ${v-none}"},
	{"javascript", 6, "v = %d", "v = %d; for (let i = 0; i < 60; i++) { console.log(i); await new Promise(done => require('node:child_process').spawn('sleep', ['0.005']).on('exit', done)) }",
		"process.stdout.write(String(globalThis.v ?? 'none'))"},
	{"typescript", 4, "v = %d", "v = %d; for (let i: number = 0; i < 150; i++) { console.log(i); await new Promise(done => setTimeout(done, 2)) }", "process.stdout.write(String(globalThis.v ?? 'none'))"},
	{"java", 4, "int v = %d;", "v = %d; for (int i = 0; i < 30; i++) { System.out.println(i); new ProcessBuilder(\"sleep\", \"0.01\").start().waitFor(); }", "System.out.print(v);"},
	{"r", 3, "v <- %d", "v <- %d; for (i in 1:30) { cat(i, fill = TRUE); system('sleep 0.01') }", "cat(if (exists('v')) v else 'none')"},
	{"python", 4, "v = %d", "v = %d\nimport subprocess\nfor i in range(30):\n  print(i, flush=True)\n  subprocess.run(['sleep', '0.01'])", "print(globals().get('v', 'none'), end='')"},
}

// seeded are the rounds of a test that kills at random moments: what fails is done again
// by its seed.
func seeded(t *testing.T, rounds int, f func(random *rand.Rand, round int)) {
	seed := uint64(time.Now().UnixNano())
	if v := os.Getenv("CELLARD_SEED"); v != "" {
		if _, err := fmt.Sscan(v, &seed); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("CELLARD_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for round := range rounds {
		f(random, round)
	}
}

// Whatever process of a kernel is killed, and whenever: what became of the cell and of
// the variables is told, and is so, and the next cell runs.
func TestKernelProcessesAreKilled(t *testing.T) {
	a := start(t, config{})
	for _, c := range crashing {
		t.Run(c.language, func(t *testing.T) {
			seeded(t, c.rounds, func(random *rand.Rand, round int) {
				before, within := 1000+round, 2000+round
				if x := a.run(object{"language": c.language, "code": fmt.Sprintf(c.set, before)}); x.Status != api.StatusOK {
					t.Fatalf("%s", show(x))
				}
				pid := a.context(c.language).ProcessID
				killed := make(chan string)
				go func() {
					time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
					all := append(procfs.Family(pid, ""), procfs.Stat{PID: pid})
					victim := all[random.IntN(len(all))].PID
					name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", victim))
					_ = syscall.Kill(victim, syscall.SIGKILL)
					killed <- strings.ReplaceAll(string(name[:min(len(name), 60)]), "\x00", " ")
				}()
				x, err := a.tryRun(object{"language": c.language, "code": fmt.Sprintf(c.work, within)})
				victim := <-killed
				if err != nil {
					t.Fatalf("%s: %v", victim, err)
				}
				next := a.run(object{"language": c.language, "code": c.tell})
				v := next.Stdout
				if c.language == "java" && next.Status == api.StatusError {
					v = "none"
				} else if next.Status != api.StatusOK {
					t.Fatalf("%s: %s: the next: %s", victim, show(x), show(next))
				}
				t.Logf("%q: %s, %s, then %s", victim, x.Status, x.State, v)
				lost := x.State == api.StateLost || next.Lost != nil || next.ContextStarted
				ok := v == fmt.Sprint(within)
				switch {
				case x.Status == api.StatusOK && x.State == api.StateLost: // killed before the cell came to it
					ok = ok && x.Lost != nil && x.ContextStarted
				case lost:
					ok = v == "none" && (x.Status == api.StatusLost || x.State == api.StateKept && next.ContextStarted)
				case x.State == api.StateRestored:
					ok = v == fmt.Sprint(before) && x.Status == api.StatusError
				case x.Status != api.StatusOK: // a child's end may be the cell's own error
					ok = ok || v == fmt.Sprint(before)
				}
				if !ok {
					t.Errorf("%s was killed: %s\nthen %s", victim, show(x), show(next))
				}
			})
		})
	}
}

// An agent that is killed at any moment leaves nothing, and the next one runs.
func TestAgentIsKilledAtRandom(t *testing.T) {
	seeded(t, 4, func(random *rand.Rand, round int) {
		place := fixture.Dir(t, 0o777)
		o := config{workspace: fixture.Dir(t, 0o777), runtime: fixture.Dir(t, 0o711), env: []string{"TMPDIR=" + place}}
		a := start(t, o)
		var wg sync.WaitGroup
		for _, c := range crashing {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for i := 0; !a.hasEnded(); i++ {
					_, _ = a.tryRun(object{"language": c.language, "code": fmt.Sprintf(c.set, i)})
					_, _ = a.tryRun(object{"language": c.language, "code": fmt.Sprintf(c.work, i)})
				}
			}()
		}
		after := time.Duration(random.IntN([]int{700, 4000}[round%2])) * time.Millisecond
		time.Sleep(after)
		n := len(marked(a.instance))
		a.signal(syscall.SIGKILL)
		a.waitEnd()
		wg.Wait()
		t.Logf("after %v, %d processes", after, n)
		if n > 0 {
			a.nothingLeft()
		} // else there was no keeper yet: the next agent removes what is left
		o.socket = a.socket
		b := start(t, o)
		if got := b.cell("bash", "echo again"); got != "again\n" {
			t.Errorf("%q", got)
		}
		b.signal(syscall.SIGTERM)
		b.waitEnd()
		a.nothingLeft()
		a.eventually("no temporary file is left", func() error {
			left, err := filepath.Glob(filepath.Join(place, "*"))
			if err == nil && len(left) > 0 {
				err = fmt.Errorf("left: %q", left)
			}
			return err
		})
	})
}

// fill fills the disk that a directory lies on; the file that is returned makes room.
func fill(t *testing.T, dir string) (hog string) {
	t.Helper()
	hog = filepath.Join(dir, "hog")
	f, err := os.Create(hog)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, piece := range []int{1 << 20, 1 << 10, 1} {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, piece))
		}
		if !errors.Is(err, unix.ENOSPC) {
			t.Fatalf("the disk doesn't get full: %v", err)
		}
	}
	return hog
}

// disk is a small disk of the test's own.
func disk(t *testing.T, megabytes int) string {
	t.Helper()
	dir := fixture.Dir(t, 0o777)
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm,mode=777", megabytes)); err != nil {
		t.Skipf("mounting a disk takes root: %v", err)
	}
	t.Cleanup(func() {
		for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
			if err := unix.Unmount(dir, 0); err == nil {
				return
			} else if time.Now().After(end) {
				t.Errorf("the disk is still used: %v", err)
				_ = unix.Unmount(dir, unix.MNT_DETACH)
				return
			}
		}
	})
	return dir
}

// full are the languages on a full disk: a cell that prints much and then a last line, one
// that writes a file, and the error's text where there is no room.
var full = []struct{ language, much, file string }{
	{"bash", "for ((i = 0; i < 300; i++)); do printf '%08192d\\n' $i; done; echo last", "head -c 300000 /dev/zero > big && echo written"},
	{"javascript", "for (let i = 0; i < 300; i++) console.log('x'.repeat(8192)); console.log('last')", "require('node:fs').writeFileSync('big', 'x'.repeat(300000)); console.log('written')"},
	{"typescript", "for (let i: number = 0; i < 300; i++) console.log('x'.repeat(8192)); console.log('last')", "require('node:fs').writeFileSync('big', 'x'.repeat(300000)); console.log('written')"},
	{"java", "for (int i = 0; i < 300; i++) System.out.println(\"x\".repeat(8192)); System.out.println(\"last\");", "Files.writeString(Path.of(\"big\"), \"x\".repeat(300000)); System.out.println(\"written\");"},
	{"r", "for (i in 1:300) cat(strrep('x', 8192), fill = TRUE); cat('last\\n')", "options(warn = 2); f <- file('big', 'wb'); writeBin(raw(300000), f); close(f); cat('written\\n')"},
	{"python", "for i in range(300): print('x' * 8192)\nprint('last')", "with open('big', 'w') as f: n = f.write('x' * 300000)\nprint('written')"},
}

// Where the disk is full (workspace, runtime directory and temporary files at once), kernels
// start or say why not, output comes to its end, nothing hangs, and once there is room all
// is as ever.
func TestFullDisk(t *testing.T) {
	place := disk(t, 24)
	for _, dir := range []string{"w", "t", "r"} {
		if err := errors.Join(os.Mkdir(filepath.Join(place, dir), 0o777), os.Chmod(filepath.Join(place, dir), 0o777)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(place, "r"), 0o711); err != nil {
		t.Fatal(err)
	}
	a := start(t, config{workspace: filepath.Join(place, "w"), runtime: filepath.Join(place, "r"),
		env: []string{"TMPDIR=" + filepath.Join(place, "t"), "HOME=" + filepath.Join(place, "t"), "XDG_CACHE_HOME="}})
	for _, c := range full {
		t.Run(c.language, func(t *testing.T) {
			run := func(code string) *api.Execution {
				t.Helper()
				return a.run(object{"language": c.language, "code": code})
			}
			much := func(when string) *api.Execution {
				t.Helper()
				x := run(c.much)
				if x.Status != api.StatusOK || !strings.HasSuffix(x.Stdout, "last\n") && len(x.Overflow) == 0 {
					t.Errorf("%s: %s", when, show(x))
				}
				return x
			}
			// It starts on a full disk, or says that it can't for that reason.
			hog := fill(t, place)
			x, err := a.tryRun(object{"language": c.language, "code": "1"})
			t.Logf("a start: %v %v", x != nil && x.Status == api.StatusOK, err)
			if err != nil && !strings.Contains(err.Error(), "no space left") {
				t.Errorf("a start: %v", err)
			}
			if err == nil && x.Status != api.StatusOK && c.language != "bash" { // of which 1 is no command
				t.Errorf("a start: %s", show(x))
			}
			// A fresh kernel, with room; then none while it prints and writes.
			must(t, os.Remove(hog))
			much("with room")
			if x := run(c.file); x.Stdout != "written\n" {
				t.Errorf("with room: %s", show(x))
			}
			must(t, os.Remove(filepath.Join(place, "w", "big")))
			hog = fill(t, place)
			x = much("without room")
			t.Logf("without room: %d bytes, lost %d, overflow %+v", len(x.Stdout), x.LostBytes, x.Overflow)
			// The oldest results have made room for what was kept of the output.
			must(t, os.Remove(hog))
			hog = fill(t, place)
			if x := run(c.file); x.Stdout == "written\n" || x.State != api.StateKept || x.Status == api.StatusOK && c.language != "r" {
				t.Errorf("a file without room: %s", show(x))
			} else {
				t.Logf("a file without room: %s %.100q", x.Status, fmt.Sprint(x.Error)+x.Stderr)
			}
			must(t, os.Remove(hog))
			_ = os.Remove(filepath.Join(place, "w", "big"))
			much("with room again")
			if x := run(c.file); x.Stdout != "written\n" {
				t.Errorf("with room again: %s", show(x))
			}
			must(t, os.Remove(filepath.Join(place, "w", "big")))
			a.remove(c.language)
		})
	}
}

// Where the disk of the workspace and of temporary files is full, but not that of the runtime
// directory, kernels start, and cells run.
func TestFullWorkspace(t *testing.T) {
	place := disk(t, 24)
	a := start(t, config{workspace: place, env: []string{"TMPDIR=" + place, "HOME=" + place, "XDG_CACHE_HOME="}})
	hog := fill(t, place)
	for _, c := range full {
		t.Run(c.language, func(t *testing.T) {
			x, err := a.tryRun(object{"language": c.language, "code": c.much})
			if err != nil {
				// Those that need files of their own there say so.
				if t.Logf("%v", err); !strings.Contains(strings.ToLower(err.Error()), "no space left") {
					t.Errorf("%v", err)
				}
				must(t, os.Remove(hog))
				x, err = a.tryRun(object{"language": c.language, "code": c.much})
				must(t, err)
				hog = fill(t, place)
			}
			if x.Status != api.StatusOK || len(x.Overflow) != 1 {
				t.Errorf("%s", show(x))
			}
			a.remove(c.language)
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
