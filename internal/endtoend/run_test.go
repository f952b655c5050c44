package endtoend

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cellard/cellard/internal/fixture"
	"github.com/cellard/cellard/protocol/api"
)

// With one key the code runs once, however often it is sent, at once or later.
func TestIdempotencyKey(t *testing.T) {
	a := start(t, config{})
	a.cell("python", "n = 0")
	body := func() object { return object{"code": "n += 1\nimport time; time.sleep(0.3)\nn", "idempotencyKey": "k"} }
	var wg sync.WaitGroup
	ids := make([]string, 8)
	for i := range ids {
		wg.Add(1)
		go func() {
			defer wg.Done()
			x, err := a.tryRun(body())
			if err != nil || len(x.Results) != 1 || plain(x.Results[0]) != "1" {
				t.Errorf("%s, %v", show(x), err)
			}
			ids[i] = x.ID
		}()
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] || id == "" {
			t.Fatalf("several executions: %q", ids)
		}
	}
	b := body()
	delete(b, "idempotencyKey")
	ans := a.call("POST", "/v1/interpreter:run", b, "Idempotency-Key", "k")
	if id := ans.header.Get("Cellard-Execution"); ans.status != http.StatusOK || id != ids[0] {
		t.Errorf("by the header: %d %s", ans.status, id)
	}
	// How the answer is wanted is no part of what the key stands for.
	if x := a.stream(body()).rest(); x.ID != ids[0] {
		t.Errorf("as a stream: %s", show(x))
	}
	a.refused(409, api.CodeConflict, "POST", "/v1/interpreter:run", object{"code": "1", "idempotencyKey": "k"})
	a.refused(400, api.CodeInvalidRequest, "POST", "/v1/interpreter:run", object{"code": "1", "idempotencyKey": "k"}, "Idempotency-Key", "other")
	if got := a.cell("python", "n"); got != "1" {
		t.Errorf("it ran %s times", got)
	}
	// A refused run leaves the key free.
	gone := object{"code": "1", "idempotencyKey": "free", "ifGeneration": 7}
	a.refused(409, api.CodeGeneration, "POST", "/v1/interpreter:run", gone)
	if x := a.run(object{"code": "1", "idempotencyKey": "free"}); x.Status != api.StatusOK {
		t.Errorf("%s", show(x))
	}
	// With a key, nobody's absence stops the cell.
	s := a.stream(object{"code": "time.sleep(3); n = 'ran on'", "idempotencyKey": "on"})
	s.until(isKind(api.KindStart))
	s.close()
	if x := a.over(s.res.Header.Get("Cellard-Execution")); x.Status != api.StatusOK {
		t.Errorf("%s", show(x))
	}
}

func TestWaitMs(t *testing.T) {
	a := start(t, config{})
	x := a.run(object{"code": "import time\nprint('in', flush=True)\ntime.sleep(4)\n'done'", "waitMs": 1500})
	if x.Status != api.StatusRunning || x.ID == "" {
		t.Errorf("%s", show(x))
	}
	if h := a.health(); h.Running != 1 || h.IdleMs != 0 {
		t.Errorf("%+v", h)
	}
	// Who got an answer is no reader that went away.
	if x = a.over(x.ID); x.Status != api.StatusOK || x.Stdout != "in\n" || plain(x.Results[0]) != "'done'" {
		t.Errorf("%s", show(x))
	}
	s := a.stream(object{"code": "time.sleep(2)", "waitMs": 100})
	if x := s.rest(); x.Status != api.StatusRunning {
		t.Errorf("%s", show(x))
	}
	if x := a.run(object{"code": "1", "waitMs": 60000}); x.Status != api.StatusOK {
		t.Errorf("%s", show(x))
	}
	a.eventually("idle", func() error {
		if h := a.health(); h.Running != 0 {
			return errString(show(h))
		}
		return nil
	})
}

type errString string

func (e errString) Error() string { return string(e) }

func TestIfGeneration(t *testing.T) {
	a := start(t, config{})
	a.refused(409, api.CodeGeneration, "POST", "/v1/interpreter:run", object{"code": "1", "ifGeneration": 1})
	if x := a.run(object{"code": "v = 1"}); x.Generation != 1 || !x.ContextStarted {
		t.Errorf("%s", show(x))
	}
	if x := a.run(object{"code": "v", "ifGeneration": 1}); x.Status != api.StatusOK || x.ContextStarted {
		t.Errorf("%s", show(x))
	}
	// One that waits behind a death is refused, too: its variables are gone.
	running := a.stream(object{"code": "import time, os\nprint('in', flush=True)\ntime.sleep(1)\nos._exit(3)"})
	running.text(api.KindStdout, "in")
	waits := a.stream(object{"code": "open('ran', 'w')", "ifGeneration": 1})
	x := running.rest()
	if x.Status != api.StatusLost || x.State != api.StateLost || x.Lost == nil || x.Lost.Reason != api.LostExit || *x.Lost.ExitCode != 3 {
		t.Errorf("%s", show(x))
	}
	for {
		if _, err := waits.next(); err != nil {
			break
		}
	}
	last := waits.events[len(waits.events)-1]
	if refused := last.Failure != nil && last.Failure.Code == api.CodeGeneration; !refused && (last.Execution == nil || last.Execution.Status != api.StatusInterrupted || last.Execution.Error.Name != "ContextLost") {
		t.Errorf("%s", &waits.raw)
	}
	a.refused(409, api.CodeGeneration, "POST", "/v1/interpreter:run", object{"code": "open('ran', 'w')", "ifGeneration": 1})
	if x := a.run(object{"code": "v"}); x.Status != api.StatusError || x.Generation != 2 || !x.ContextStarted {
		t.Errorf("%s", show(x))
	}
	if _, err := os.Stat(filepath.Join(a.workspace, "ran")); err == nil {
		t.Error("code ran on other variables")
	}
}

func TestInterruptOnDisconnect(t *testing.T) {
	a := start(t, config{args: []string{"--disconnect-grace", "700ms"}})
	const code = "import time\nprint('in', flush=True)\ntime.sleep(3)\nprint('whole')"
	leave := func(body object) *api.Execution {
		s := a.stream(body)
		s.text(api.KindStdout, "in")
		s.close()
		return a.over(s.res.Header.Get("Cellard-Execution"))
	}
	if x := leave(object{"code": code}); x.Status != api.StatusInterrupted || x.State != api.StateKept {
		t.Errorf("%s", show(x))
	}
	if x := leave(object{"code": code, "interruptOnDisconnect": false}); x.Status != api.StatusOK || x.Stdout != "in\nwhole\n" {
		t.Errorf("%s", show(x))
	}
	if x := leave(object{"code": code, "idempotencyKey": "k", "interruptOnDisconnect": true}); x.Status != api.StatusInterrupted {
		t.Errorf("%s", show(x))
	}
	// Another reader in time, and all is well.
	s := a.stream(object{"code": code})
	s.text(api.KindStdout, "in")
	s.close()
	if x := a.attach(s.res.Header.Get("Cellard-Execution"), 0).rest(); x.Status != api.StatusOK {
		t.Errorf("%s", show(x))
	}
	// One that waits in the queue is taken out.
	running := a.stream(object{"code": code})
	running.text(api.KindStdout, "in")
	queued := a.stream(object{"code": "open('ran', 'w')"})
	queued.close()
	if x := a.over(queued.res.Header.Get("Cellard-Execution")); x.Status != api.StatusInterrupted || x.Generation != 1 {
		t.Errorf("%s", show(x))
	}
	running.rest()
	if _, err := os.Stat(filepath.Join(a.workspace, "ran")); err == nil {
		t.Error("a cell that was taken out of the queue ran")
	}
}

func TestInterrupt(t *testing.T) {
	a := start(t, config{})
	interrupt := func(path string) bool {
		t.Helper()
		var did struct{ Interrupted bool }
		a.get("POST", path+":interrupt", nil, &did)
		return did.Interrupted
	}
	const context = "/v1/interpreter/contexts/python"
	a.cell("python", "v = 'kept'")
	if interrupt(context) {
		t.Error("nothing ran")
	}
	for name, code := range map[string]string{
		"sleep":     "import time\nprint('in', flush=True)\ntime.sleep(1000)",
		"loop":      "print('in', flush=True)\nwhile True: pass",
		"child":     "import subprocess\nprint('in', flush=True)\nsubprocess.run(['sleep', '1000'])",
		"deaf":      "import subprocess\nprint('in', flush=True)\nsubprocess.run(['sh', '-c', 'trap \"\" INT; sleep 1000; sleep 1000'])",
		"magic":     "print('in', flush=True)\n!sleep 1000",
		"await":     "import asyncio\nprint('in', flush=True)\nawait asyncio.sleep(1000)",
		"swallowed": "import time\nprint('in', flush=True)\ntry:\n  time.sleep(1000)\nexcept KeyboardInterrupt:\n  time.sleep(1000)",
	} {
		s := a.stream(object{"code": code, "timeoutMs": 0})
		s.text(api.KindStdout, "in")
		queued := a.stream(object{"code": "'next'"})
		taken := a.stream(object{"code": "v = 'never'"})
		if !interrupt("/v1/executions/" + taken.res.Header.Get("Cellard-Execution")) {
			t.Errorf("%s: the queued one was not taken out", name)
		}
		if x := taken.rest(); x.Status != api.StatusInterrupted {
			t.Errorf("%s: %s", name, show(x))
		}
		path := context
		if len(name)%2 == 0 {
			path = "/v1/executions/" + s.res.Header.Get("Cellard-Execution")
		}
		if !interrupt(path) {
			t.Errorf("%s: not interrupted", name)
		}
		if x := s.rest(); x.Status != api.StatusInterrupted || x.State != api.StateKept || x.Error == nil || x.Lost != nil {
			t.Errorf("%s: %s", name, show(x))
		}
		if x := queued.rest(); x.Status != api.StatusOK || plain(x.Results[0]) != "'next'" {
			t.Errorf("%s: the next: %s", name, show(x))
		}
		if interrupt("/v1/executions/" + s.res.Header.Get("Cellard-Execution")) {
			t.Errorf("%s: it had ended", name)
		}
	}
	if got := a.cell("python", "v"); got != "'kept'" {
		t.Error(got)
	}
}

func TestDeadline(t *testing.T) {
	a := start(t, config{args: []string{"--interrupt-grace", "4s"}})
	a.cell("python", "v = 'kept'")
	x := a.run(object{"code": "import time\nprint('some')\ntime.sleep(1000)", "timeoutMs": 400})
	if x.Status != api.StatusTimeout || x.State != api.StateKept || x.Stdout != "some\n" || x.Error == nil {
		t.Errorf("%s", show(x))
	}
	// The time in the queue does not count.
	slow := a.stream(object{"code": "time.sleep(2)"})
	if x := a.run(object{"code": "v", "timeoutMs": 1500}); x.Status != api.StatusOK || plain(x.Results[0]) != "'kept'" || x.QueuedMs == 0 {
		t.Errorf("%s", show(x))
	}
	slow.rest()
	// What nothing stops is killed, and is no timeout with its state gone.
	s := a.stream(object{"timeoutMs": 300, "code": "import itertools\nprint('before', flush=True)\nsum(itertools.repeat(1))"})
	x = s.rest()
	if x.Status != api.StatusLost || x.State != api.StateLost || x.Lost == nil || x.Lost.Reason != api.LostUnresponsive || x.Stdout != "before\n" {
		t.Errorf("%s", show(x))
	}
	if x := a.run(object{"code": "1"}); x.Status != api.StatusOK || x.Generation != 2 || x.State != api.StateKept || !x.ContextStarted {
		t.Errorf("%s", show(x))
	}
}

// Per-cell env and cwd hold for the cell, whatever is in them, and its traceback knows
// nothing of them.
func TestEnvAndCwd(t *testing.T) {
	a := start(t, config{})
	there := fixture.Dir(t, 0o777)
	value := "a'b\"c\n$d ü \\"
	x := a.run(object{"code": "import os\n(os.environ['E2E'], os.getcwd(), os.popen('echo \"$E2E\"; pwd').read())", "env": map[string]string{"E2E": value}, "cwd": there})
	if x.Status != api.StatusOK || !strings.Contains(plain(x.Results[0]), there) {
		t.Errorf("%s", show(x))
	}
	if got := a.cell("python", "print(os.environ.get('E2E'), os.getcwd())"); got != "None "+a.workspace+"\n" {
		t.Error(got)
	}
	if got := a.run(object{"code": "print(os.environ['E2E'], end='')", "env": map[string]string{"E2E": value}}).Stdout; got != value {
		t.Errorf("%q", got)
	}
	x = a.run(object{"code": "%%time\nos.chdir('/')", "env": map[string]string{"E2E": "1"}, "cwd": there})
	if x.Status != api.StatusOK {
		t.Errorf("%s", show(x))
	}
	if got := a.cell("python", "print(os.getcwd())"); got != "/\n" {
		t.Errorf("the cell changed it itself: %s", got)
	}
	if x := a.run(object{"code": "open('ran', 'w')", "cwd": "/nowhere"}); x.Status != api.StatusError || !strings.Contains(x.Error.Value, "/nowhere") {
		t.Errorf("%s", show(x))
	}
	a.refused(400, api.CodeInvalidRequest, "POST", "/v1/interpreter:run", object{"code": "1", "env": map[string]string{"A=": "1"}})

	var c api.Context
	a.get("POST", "/v1/interpreter/contexts", object{"id": "there", "cwd": there, "env": map[string]string{"E2E": value}}, &c)
	if c.Cwd != there || c.State != api.ContextIdle || c.Generation != 1 || c.ProcessID == 0 || c.Kernel.Name == "" {
		t.Errorf("%s", show(c))
	}
	check := func() {
		t.Helper()
		if got := a.cell("there", "import os\nprint(os.getcwd(), os.environ['E2E'], end='')"); got != there+" "+value {
			t.Errorf("%q", got)
		}
	}
	check()
	a.get("POST", "/v1/interpreter/contexts/there:restart", nil, &c)
	check()
	if c.Generation != 2 {
		t.Errorf("%s", show(c))
	}
	a.refused(400, api.CodeInvalidRequest, "POST", "/v1/interpreter/contexts", object{"cwd": "/nowhere"})
}

// An execution is kept for a while after its end, and no longer.
func TestRetention(t *testing.T) {
	a := start(t, config{args: []string{"--retention", "2s"}})
	x := a.run(object{"code": "print('kept')"})
	if y := a.execution(x.ID); show(y) != show(x) {
		t.Errorf("%s", show(y))
	}
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if ans := a.call("GET", "/v1/executions/"+x.ID, nil); ans.status == http.StatusNotFound {
			break
		} else if time.Now().After(end) {
			t.Fatal("it is still kept")
		}
	}
	a.refused(404, api.CodeNotFound, "GET", "/v1/executions/"+x.ID+"/events", nil)
}

// An interrupt that comes when its cell is over is nobody's: the kernel lives, and the next
// cell is not interrupted by it.
func TestLateInterrupt(t *testing.T) {
	a := start(t, config{})
	for _, c := range []struct{ language, set, wait, tell string }{
		{"python", "v = 7", "import time; time.sleep(1000)", "print(v, end='')"},
		{"r", "v <- 7", "Sys.sleep(1000)", "cat(v)"},
		{"r", "v <- 7", "tryCatch(Sys.sleep(1000), interrupt = function(e) NULL)", "cat(v)"},
	} {
		a.cell(c.language, c.set)
		if x := a.run(object{"language": c.language, "code": c.wait, "timeoutMs": 300}); x.Status != api.StatusTimeout || x.State != api.StateKept {
			t.Errorf("%s: %s", c.wait, show(x))
		}
		for range 3 {
			if err := syscall.Kill(a.context(c.language).ProcessID, syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			time.Sleep(50 * time.Millisecond)
		}
		if x := a.run(object{"language": c.language, "code": c.tell}); x.Status != api.StatusOK || x.Stdout != "7" {
			t.Errorf("%s: then %s", c.wait, show(x))
		}
	}
}

// An interpreter that waits for the other end of a FIFO is let go at a deadline.
func TestDeadlineInFIFO(t *testing.T) {
	a := start(t, config{})
	for _, c := range []struct{ language, set, wait, tell string }{
		{"r", "v <- 7; system('mkfifo r.fifo')", "readLines('r.fifo')", "cat(v)"},
		{"r", "v <- 7", "f <- file('r.fifo', 'wb')", "cat(v)"},
		{"python", "import os; v = 7; os.mkfifo('py.fifo')", "open('py.fifo').read()", "print(v, end='')"},
		{"javascript", "var v = 7; require('node:child_process').execSync('mkfifo js.fifo')", "require('node:fs').readFileSync('js.fifo')", "process.stdout.write(String(v))"},
	} {
		a.cell(c.language, c.set)
		x := a.run(object{"language": c.language, "code": c.wait, "timeoutMs": 300})
		if x.Status != api.StatusTimeout || x.State != api.StateKept {
			t.Errorf("%s: %s", c.wait, show(x))
			continue
		}
		if got := a.run(object{"language": c.language, "code": c.tell}).Stdout; got != "7" {
			t.Errorf("%s: then %q", c.wait, got)
		}
	}
}
