package endtoend

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cellard/cellard/internal/pythons"
	"github.com/cellard/cellard/protocol/api"
)

// soakCells is how many cells the soak runs; CELLARD_SOAK sets another number.
const soakCells = 600

// TestSoak runs many cells of all kinds on several contexts at once, with kernels
// that die, interrupts, deadlines and readers that stall or leave among them. Each
// cell's outputs hold a token of its own, and no other may be in any answer. At the
// end nothing may have grown: goroutines, descriptors, processes, files, memory.
func TestSoak(t *testing.T) {
	n := soakCells
	if v := os.Getenv("CELLARD_SOAK"); v != "" {
		var err error
		if n, err = strconv.Atoi(v); err != nil {
			t.Fatal(err)
		}
	}
	both := pythons.All(t)
	for _, p := range both {
		t.Run(p.Name, func(t *testing.T) {
			a := start(t, config{python: p.Path, args: []string{"--disconnect-grace", "200ms", "--interrupt-grace", "15s"}})
			s := &soak{a: a, done: map[string]int{}}
			begin := time.Now()
			// One round is what it takes once: pools, the keeper, the first directories.
			s.round(4 * len(kinds))
			before := s.state()
			s.round(n / len(both))
			t.Logf("%d cells in %v: %v", n/len(both), time.Since(begin).Round(time.Second), s.done)
			var after state
			a.eventually("all is as it was at the start", func() error {
				after = s.state()
				return after.grown(before)
			})
			t.Logf("before: %+v\nafter: %+v", before, after)
			if after.rss > before.rss+(64<<20)*raceFactor() {
				t.Errorf("memory grew from %s to %s", mib(before.rss), mib(after.rss))
			}
		})
	}
}

// raceFactor: the race detector's shadow memory is a multiple of the heap.
func raceFactor() int64 {
	if raceDetector {
		return 8
	}
	return 1
}

// state is what must not grow. Executions are still kept, within their budget, so
// memory and the descriptors of their logs may differ a little.
type state struct {
	goroutines, descriptors int
	processes               []int
	files                   []string
	rss                     int64
}

func (s state) grown(before state) error {
	switch {
	case s.goroutines > before.goroutines:
		return fmt.Errorf("%d goroutines, %d before", s.goroutines, before.goroutines)
	case s.descriptors > before.descriptors:
		return fmt.Errorf("%d descriptors, %d before", s.descriptors, before.descriptors)
	case len(s.processes) > 0:
		return fmt.Errorf("processes %v", s.processes)
	case !slices.Equal(s.files, before.files):
		return fmt.Errorf("files %q, before %q", s.files, before.files)
	}
	return nil
}

// soak is a run of it on one agent.
type soak struct {
	a    *agent
	mu   sync.Mutex
	n    int
	done map[string]int
}

func (s *soak) state() (x state) {
	s.a.t.Helper()
	m := regexp.MustCompile(`\ngo_goroutines (\d+)`).FindSubmatch(s.a.call("GET", "/metrics", nil).body)
	x.goroutines, _ = strconv.Atoi(string(m[1]))
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.a.c.Process.Pid))
	if err != nil {
		s.a.t.Fatal(err)
	}
	for _, fd := range fds {
		// The spilled part of the logs of executions that are still kept is no leak.
		if target, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", s.a.c.Process.Pid, fd.Name())); !strings.Contains(target, "(deleted)") {
			x.descriptors++
		}
	}
	x.processes = marked(s.a.instance)
	for _, dir := range []string{filepath.Join(s.a.workspace, ".runtime"), s.a.runtime} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if rel := strings.TrimPrefix(path, filepath.Join(s.a.workspace, ".runtime", "home")); rel == path {
				x.files = append(x.files, path)
			}
			return err
		})
		if err != nil {
			s.a.t.Fatal(err)
		}
	}
	x.rss, _ = s.a.memory()
	return x
}

// round runs n cells on four contexts, two hosts each, and deletes the contexts.
func (s *soak) round(n int) {
	const contexts, hosts = 4, 2
	var wg sync.WaitGroup
	for c := range contexts {
		id := fmt.Sprintf("soak-%d", c)
		s.a.create(id)
		for h := range hosts {
			wg.Add(1)
			go func() {
				defer wg.Done()
				random := rand.New(rand.NewPCG(uint64(c), uint64(h)))
				for i := h; i < n/contexts && !s.a.t.Failed(); i += hosts {
					k := kinds[random.IntN(len(kinds))]
					if i < len(kinds) {
						k = kinds[i] // each at least once
					} else if random.IntN(3) > 0 {
						k = kinds[random.IntN(quick)]
					}
					s.cell(id, k, random)
				}
			}()
		}
	}
	wg.Wait()
	for c := range contexts {
		s.a.remove(fmt.Sprintf("soak-%d", c))
	}
}

// kind is a sort of cell: TOKEN stands for its token.
type kind struct {
	name   string
	code   string
	status []api.Status // besides what another cell's kill of their kernel does to it
	how    func(s *soak, body object, random *rand.Rand) (*api.Execution, error)
	check  func(x *api.Execution, token string) error
}

var ok, stopped = []api.Status{api.StatusOK}, []api.Status{api.StatusInterrupted, api.StatusOK}

// quick is how many kinds, of the first ones, cost next to nothing.
const quick = 7

var kinds = []kind{
	{name: "prints", code: "import sys\nprint('TOKEN out')\nprint('TOKEN err', file=sys.stderr)\n'TOKEN value'", status: ok, check: whole},
	{name: "stream", code: "import sys\nprint('TOKEN out')\nprint('TOKEN err', file=sys.stderr)\n'TOKEN value'", status: ok, how: streamed, check: whole},
	{name: "raw", code: "import os\nos.write(1, b'TOKEN out\\n')\nos.write(2, b'TOKEN err\\n')\n'TOKEN value'", status: ok, check: whole},
	{name: "child", code: "!echo TOKEN out; echo TOKEN err >&2\n'TOKEN value'", status: ok, check: whole},
	{name: "forked", code: "import os, sys\nif os.fork() == 0:\n  os.write(1, b'TOKEN out\\n'); os.write(2, b'TOKEN err\\n'); os._exit(0)\nos.wait()\n'TOKEN value'", status: ok, check: whole},
	{name: "display", code: "from IPython.display import display\nfor i in range(20): display({'text/plain': 'TOKEN ' + str(i)}, raw=True)", status: ok, check: twenty},
	{name: "ref", code: "from IPython.display import display\ndisplay({'text/html': 'TOKEN' + 'x' * 60000}, raw=True)", status: ok, check: inRef},
	{name: "flood", code: "for i in range(20000): print('TOKEN', i, 'x' * 60)", status: ok, how: stalled, check: flood},
	{name: "late", code: "import threading, time\ndef late():\n  time.sleep(0.05); print('TOKEN late')\nthreading.Thread(target=late).start()\nprint('TOKEN out')", status: ok},
	{name: "late child", code: "import subprocess\nchild = subprocess.Popen('sleep 0.05; exec >/dev/null 2>&1; sleep 30', shell=True)\nprint('TOKEN out')", status: ok},
	{name: "error", code: "print('TOKEN out')\nraise ValueError('TOKEN raised')", status: []api.Status{api.StatusError}, check: raised},
	{name: "stdin", code: "print('TOKEN out')\ninput('TOKEN ?') == 'TOKEN'", status: ok},
	{name: "env", code: "import os\nprint('TOKEN out')\nprint(os.environ['SOAK'])", status: ok},
	{name: "deadline", code: "import time\nprint('TOKEN out', flush=True)\ntime.sleep(100)", status: []api.Status{api.StatusTimeout}},
	{name: "interrupt", code: "import time\nprint('TOKEN out', flush=True)\ntime.sleep(100)", status: stopped, how: interrupted},
	{name: "leaves", code: "import time\nprint('TOKEN out', flush=True)\ntime.sleep(100)", status: stopped, how: leaves},
	{name: "cut", code: "import time\nfor i in range(20): print('TOKEN', i, flush=True); time.sleep(0.005)", status: ok, how: cut},
	{name: "retry", code: "print('TOKEN out')\n'TOKEN value'", status: ok, how: retried},
	{name: "exit", code: "import os\nprint('TOKEN out', flush=True)\nos._exit(7)", status: []api.Status{api.StatusLost}},
	{name: "killed", code: "import os\nprint('TOKEN out', flush=True)\nos.kill(os.getpid(), 9)", status: []api.Status{api.StatusLost}},
	{name: "crash", code: "import ctypes\nprint('TOKEN out', flush=True)\nctypes.string_at(0)", status: []api.Status{api.StatusLost}},
	{name: "killed from outside", code: "import time\nprint('TOKEN out', flush=True)\ntime.sleep(100)", status: []api.Status{api.StatusLost}, how: killedFromOutside},
}

var tokens = regexp.MustCompile(`tok\d+ken`)

// cell runs one cell and holds that the answer is its own.
func (s *soak) cell(contextID string, k kind, random *rand.Rand) {
	s.mu.Lock()
	s.n++
	token := fmt.Sprintf("tok%dken", s.n)
	s.mu.Unlock()
	body := object{"context": contextID, "code": strings.ReplaceAll(k.code, "TOKEN", token), "timeoutMs": 60000, "stdin": []string{token}}
	switch k.name {
	case "deadline":
		body["timeoutMs"] = 200
	case "env":
		body["env"] = map[string]string{"SOAK": token}
	}
	how := k.how
	if how == nil {
		how = func(s *soak, body object, _ *rand.Rand) (*api.Execution, error) { return s.a.tryRun(body) }
	}
	x, err := how(s, body, random)
	if err != nil {
		s.a.t.Errorf("%s: %v", k.name, err)
		return
	}
	s.mu.Lock()
	s.done[k.name]++
	s.mu.Unlock()
	for _, other := range tokens.FindAllString(show2(x), -1) {
		if other != token {
			s.a.t.Errorf("%s: %s is in the answer to %s: %s", k.name, other, token, show(x))
			return
		}
	}
	// The context's other host may have ended the kernel, so that this one never ran.
	if x.Status == api.StatusInterrupted && x.Error != nil && x.Error.Name == "ContextLost" {
		return
	}
	if !slices.Contains(k.status, x.Status) || x.Incomplete || x.LostBytes != 0 || x.ContextID != contextID {
		s.a.t.Errorf("%s: %s", k.name, show(x))
		return
	}
	if x.Status == api.StatusOK || x.Status == api.StatusError {
		if k.check != nil {
			err = k.check(x, token)
		} else if !strings.Contains(x.Stdout, token) {
			err = errString("no token")
		}
	}
	if err != nil {
		s.a.t.Errorf("%s: %v: %s", k.name, err, show(x))
	}
}

func show2(x *api.Execution) string {
	b, _ := api.Marshal(x)
	return string(b)
}

func whole(x *api.Execution, token string) error {
	if x.Stdout != token+" out\n" || x.Stderr != token+" err\n" && x.Stderr != "" || len(x.Results) != 1 || plain(x.Results[0]) != "'"+token+" value'" {
		return errString("other outputs")
	}
	return nil
}

func twenty(x *api.Execution, token string) error {
	for i, r := range x.Results {
		if plain(r) != token+" "+strconv.Itoa(i) {
			return fmt.Errorf("result %d", i)
		}
	}
	if len(x.Results) != 20 {
		return fmt.Errorf("%d results", len(x.Results))
	}
	return nil
}

func inRef(x *api.Execution, token string) error {
	b, err := os.ReadFile(x.Results[0].Refs["text/html"].Path)
	if err == nil && string(b) != token+strings.Repeat("x", 60000) {
		err = errString("another's ref")
	}
	return err
}

func flood(x *api.Execution, token string) error {
	b, err := os.ReadFile(x.Overflow[0].Path)
	if err != nil {
		return err
	}
	if n := strings.Count(string(b), token); n != 20000 || len(tokens.FindAllIndex(b, -1)) != n {
		return fmt.Errorf("%d tokens", n)
	}
	return nil
}

func raised(x *api.Execution, token string) error {
	if x.Error == nil || x.Error.Value != token+" raised" || !strings.Contains(x.Error.Traceback, token) {
		return errString("another error")
	}
	return nil
}

func streamed(s *soak, body object, _ *rand.Rand) (*api.Execution, error) {
	return s.follow(body, func(*watch) {})
}

// stalled reads nothing of the stream for a while.
func stalled(s *soak, body object, random *rand.Rand) (*api.Execution, error) {
	return s.follow(body, func(*watch) { time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond) })
}

// interrupted has another request stop it, at some moment.
func interrupted(s *soak, body object, random *rand.Rand) (*api.Execution, error) {
	return s.follow(body, func(w *watch) {
		time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond)
		_, w.err = s.a.try("POST", "/v1/executions/"+w.id+":interrupt", nil)
	})
}

func leaves(s *soak, body object, _ *rand.Rand) (*api.Execution, error) {
	return s.follow(body, func(w *watch) { w.leave = true })
}

// cut breaks the connection in the midst of the stream, and attaches again.
func cut(s *soak, body object, _ *rand.Rand) (*api.Execution, error) {
	body["interruptOnDisconnect"] = false
	return s.follow(body, func(w *watch) { w.leave = true })
}

func retried(s *soak, body object, _ *rand.Rand) (*api.Execution, error) {
	body["idempotencyKey"] = body["code"]
	first, err := s.a.tryRun(body)
	if err != nil {
		return nil, err
	}
	again, err := s.a.tryRun(body)
	if err == nil && again.ID != first.ID {
		err = errString("it ran twice")
	}
	return again, err
}

func killedFromOutside(s *soak, body object, _ *rand.Rand) (*api.Execution, error) {
	return s.follow(body, func(w *watch) {
		// It runs, so the context's kernel is its own.
		for !w.over && w.err == nil && !strings.Contains(w.text, " out") {
			w.read()
		}
		ans, err := s.a.try("GET", "/v1/interpreter/contexts/"+body["context"].(string), nil)
		if err != nil {
			w.err = err
			return
		}
		var pid int
		if m := regexp.MustCompile(`"processId":(\d+)`).FindSubmatch(ans.body); m != nil {
			pid, _ = strconv.Atoi(string(m[1]))
		}
		if !w.over && pid > 1 {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
}

// watch is a stream that is followed outside the test's own goroutine.
type watch struct {
	*stream
	id    string
	text  string
	over  bool
	leave bool
	last  *api.Execution
	err   error
}

func (w *watch) read() {
	ev, err := w.next()
	switch {
	case err != nil:
		w.err = fmt.Errorf("the stream broke: %w after %s", err, tail(w.raw.String(), 300))
	case ev.Failure != nil:
		w.over, w.err = true, ev.Failure
	case ev.Execution != nil:
		w.over, w.last = true, ev.Execution
	default:
		w.text += ev.Text
	}
}

// follow runs a cell as a stream, does something once it has begun, and reads on to the
// last line: on another connection, where it left the first.
func (s *soak) follow(body object, during func(*watch)) (*api.Execution, error) {
	body["stream"] = true
	w, err := s.watch("POST", "/v1/interpreter:run", body)
	if err != nil {
		return nil, err
	}
	defer w.close()
	during(w)
	if w.leave {
		w.close()
		// Long enough for the grace of a reader that left, where the cell is one that ends by it.
		if body["interruptOnDisconnect"] == nil {
			for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
				ans, err := s.a.try("GET", "/v1/executions/"+w.id, nil)
				if err != nil || time.Now().After(end) {
					return nil, fmt.Errorf("it does not end: %w", err)
				}
				if !strings.Contains(string(ans.body), `"status":"running"`) {
					break
				}
			}
		}
		again, err := s.watch("GET", "/v1/executions/"+w.id+"/events", nil)
		if err != nil {
			return nil, err
		}
		defer again.close()
		again.id, w = w.id, again
	}
	for !w.over && w.err == nil {
		w.read()
	}
	if w.err != nil {
		return nil, w.err
	}
	for i, ev := range w.events {
		if ev.K != api.KindPing && ev.Seq != int64(i+1) {
			return nil, fmt.Errorf("event %d has seq %d", i+1, ev.Seq)
		}
	}
	return w.last, nil
}

func (s *soak) watch(method, path string, body any) (*watch, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	res, err := s.a.do(ctx, method, path, body)
	if err != nil {
		cancel()
		return nil, err
	}
	w := &watch{stream: newStream(s.a.t, res), id: res.Header.Get("Cellard-Execution")}
	w.close = func() { cancel(); res.Body.Close() }
	if res.StatusCode != http.StatusOK {
		w.close()
		return nil, fmt.Errorf("HTTP %d", res.StatusCode)
	}
	return w, nil
}
