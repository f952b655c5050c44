package endtoend

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cellard/cellard/internal/fixture"
	"github.com/cellard/cellard/internal/gocache"
	"github.com/cellard/cellard/internal/pythons"
	"github.com/cellard/cellard/protocol/api"
)

// A kernel that dies under a cell is told in full, those that waited never run, and
// the next cell has a fresh one.
func TestDeathUnderACell(t *testing.T) {
	a := start(t, config{})
	for i, c := range []struct {
		code   string
		reason api.LostReason
		signal string
		words  string
	}{
		{"os._exit(3)", api.LostExit, "", "exit code 3"},
		{"os.kill(os.getpid(), 9)", api.LostSignal, "SIGKILL", "SIGKILL"},
		{"import ctypes; ctypes.string_at(0)", api.LostSignal, "SIGSEGV", "Segmentation fault"},
		{"os.write(2, b'famous last words\\n'); os.abort()", api.LostSignal, "SIGABRT", "famous last words"},
	} {
		a.cell("python", "import os, time\nos.write(2, b'of an earlier cell\\n')\nv = 1")
		s := a.stream(object{"code": "print('in', flush=True)\nos.write(1, b'raw\\n')\ntime.sleep(0.5)\n" + c.code})
		s.text(api.KindStdout, "in")
		queued := a.stream(object{"code": "open('ran', 'w')"})
		x := s.rest()
		if x.Status != api.StatusLost || x.State != api.StateLost || x.Generation != i+1 || x.Error == nil || x.Error.Name != "KernelDied" ||
			!strings.Contains(x.Stdout, "in\n") || !strings.Contains(x.Stdout, "raw\n") {
			t.Errorf("%s: %s", c.code, show(x))
		}
		if l := x.Lost; l == nil || l.Reason != c.reason || (l.Signal == nil) != (c.signal == "") || l.Signal != nil && *l.Signal != c.signal ||
			!strings.Contains(l.Message, c.words) || strings.Contains(l.Message, "of an earlier cell") || (c.reason == api.LostExit) != (l.ExitCode != nil) {
			t.Errorf("%s: %s", c.code, show(x.Lost))
		}
		if q := queued.rest(); q.Status != api.StatusInterrupted || q.Error == nil || q.Error.Name != "ContextLost" {
			t.Errorf("%s: the queued one: %s", c.code, show(q))
		}
		next := a.run(object{"code": "'v' in globals()"})
		if next.Status != api.StatusOK || !next.ContextStarted || next.State != api.StateKept || next.Generation != i+2 || plain(next.Results[0]) != "False" {
			t.Errorf("%s: the next: %s", c.code, show(next))
		}
	}
	if _, err := os.Stat(filepath.Join(a.workspace, "ran")); err == nil {
		t.Error("a cell ran unasked on an empty state")
	}
}

// One that died while idle is told by the next cell, which runs all the same.
func TestDeathWhileIdle(t *testing.T) {
	a := start(t, config{})
	a.cell("python", "v = 1")
	pid := a.context("python").ProcessID
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	// A cell that is sent while it dies is lost with it: nobody knows what ran of it.
	a.eventually("it is gone", func() error {
		if err := syscall.Kill(pid, 0); err == nil {
			return errString("it is there")
		}
		return nil
	})
	x := a.run(object{"code": "'v' in globals()"})
	if x.Status != api.StatusOK || x.State != api.StateLost || x.Lost == nil || x.Lost.Reason != api.LostSignal || !x.ContextStarted || x.Generation != 2 || plain(x.Results[0]) != "False" {
		t.Errorf("%s", show(x))
	}
	if x = a.run(object{"code": "1"}); x.State != api.StateKept || x.Lost != nil || x.ContextStarted {
		t.Errorf("%s", show(x))
	}
}

func TestRestartAndDelete(t *testing.T) {
	a := start(t, config{})
	for _, c := range []struct {
		method, path, name string
		reason             api.LostReason
	}{
		{"POST", ":restart", "ContextRestarted", api.LostRestart},
		{"DELETE", "", "ContextDeleted", api.LostDeleted},
	} {
		old := a.create("c")
		a.refused(409, api.CodeConflict, "POST", "/v1/interpreter/contexts", object{"id": "c"})
		a.cell("c", "v = 1\nimport subprocess, time\nchild = subprocess.Popen(['setsid', 'sleep', '1000'])")
		s := a.stream(object{"context": "c", "code": "print('in', flush=True)\nwhile True: time.sleep(1)"})
		s.text(api.KindStdout, "in")
		if got := a.context("c"); got.State != api.ContextBusy {
			t.Errorf("%s", show(got))
		}
		queued := a.stream(object{"context": "c", "code": "open('ran', 'w')"})
		var into map[string]any
		a.get(c.method, "/v1/interpreter/contexts/c"+c.path, nil, &into)
		if x := s.rest(); x.Status != api.StatusLost || x.State != api.StateLost || x.Lost == nil || x.Lost.Reason != c.reason || x.Stdout != "in\n" {
			t.Errorf("%s", show(x))
		}
		if x := queued.rest(); x.Status != api.StatusInterrupted || x.Error == nil || x.Error.Name != c.name || x.Lost != nil {
			t.Errorf("%s", show(x))
		}
		for _, pid := range marked(a.instance) {
			if b, _ := os.ReadFile(filepath.Join("/proc", itoa(int64(pid)), "cmdline")); pid == old.ProcessID || strings.HasPrefix(string(b), "sleep") {
				t.Errorf("%d %q is left", pid, b)
			}
		}
		if c.path == "" {
			a.refused(404, api.CodeNotFound, "GET", "/v1/interpreter/contexts/c", nil)
			a.refused(404, api.CodeNotFound, "POST", "/v1/interpreter:run", object{"context": "c", "code": "1"})
			a.create("c") // free at once
		} else if got := a.context("c"); got.Generation != 2 || got.State != api.ContextIdle || got.ExecutionCount != 0 {
			t.Errorf("%s", show(got))
		}
		if got := a.cell("c", "'v' in globals()"); got != "False" {
			t.Error(got)
		}
		a.remove("c")
	}
	if _, err := os.Stat(filepath.Join(a.workspace, "ran")); err == nil {
		t.Error("a cell ran unasked on an empty state")
	}
	var list api.ContextList
	if a.get("GET", "/v1/interpreter/contexts", nil, &list); list.Data == nil || len(list.Data) != 0 {
		t.Errorf("%+v", list)
	}
	// An agent picks an id where none was asked for.
	var own api.Context
	a.get("POST", "/v1/interpreter/contexts", object{}, &own)
	if got := a.cell(own.ID, "1"); got != "1" {
		t.Error(got)
	}
}

func TestKernelsAnswers(t *testing.T) {
	a := start(t, config{})
	a.cell("python", "some_long_name = 1\ndef documented():\n  'what it does'")
	const c = "/v1/interpreter/contexts/python"
	var r struct {
		Status  string
		Matches []string
		Found   bool
		Data    map[string]string
		Indent  string
	}
	a.get("POST", c+":complete", object{"code": "some_lo + ü", "cursor": 7}, &r)
	if r.Status != "ok" || len(r.Matches) != 1 || r.Matches[0] != "some_long_name" {
		t.Errorf("%+v", r)
	}
	a.get("POST", c+":inspect", object{"code": "documented"}, &r)
	if !r.Found || !strings.Contains(r.Data["text/plain"], "what it does") {
		t.Errorf("%+v", r)
	}
	for code, want := range map[string]string{"1": "complete", "def f():": "incomplete", "1 +* 1": "invalid"} {
		if a.get("POST", c+":isComplete", object{"code": code}, &r); r.Status != want {
			t.Errorf("%s: %+v", code, r)
		}
	}
	a.refused(400, api.CodeInvalidRequest, "POST", c+":complete", object{"code": "x", "cursor": 2})
	a.refused(400, api.CodeInvalidRequest, "POST", c+":complete", object{"code": "x", "cursor": -1})
	a.refused(422, api.CodeInvalidRequest, "POST", c+":complete", object{})
	a.refused(404, api.CodeNotFound, "POST", "/v1/interpreter/contexts/none:complete", object{"code": "x"})
	for _, path := range []string{":fork", ":rollback"} {
		a.refused(409, api.CodeUnsupported, "POST", c+path, object{})
	}
}

// The variables of a real kernel, on either end of what is supported.
func TestVariables(t *testing.T) {
	for _, python := range pythons.All(t) {
		t.Run(python.Name, func(t *testing.T) {
			a := start(t, config{python: python.Path})
			const c = "/v1/interpreter/contexts/python"
			a.refused(404, api.CodeNotFound, "GET", c+"/variables", nil)
			a.cell("python", "x, names = 6 * 7, ['a']\nclass Loop:\n  def __repr__(self):\n    while True: pass\nloop = Loop()")
			var list api.VariableList
			a.get("GET", c+"/variables", nil, &list)
			if got := show(list); got != `{"data":[{"name":"Loop","type":"type","size":null,"shape":null,"preview":""},`+
				`{"name":"loop","type":"Loop","size":null,"shape":null,"preview":""},`+
				`{"name":"names","type":"list","size":1,"shape":null,"preview":"['a']"},`+
				`{"name":"x","type":"int","size":null,"shape":null,"preview":"42"}],"total":4,"generation":1}` {
				t.Error(got)
			}
			if got := a.cell("python", "len(In) - 1"); got != "2" {
				t.Errorf("the question counts as a cell: %s", got)
			}
			a.get("POST", c+":restart", nil, new(api.Context))
			if a.get("GET", c+"/variables", nil, &list); list.Total != 0 || list.Generation != 2 {
				t.Error(show(list))
			}
		})
	}
}

// A host need not know which language it asks: each tells its variables, between cells and
// without a trace.
func TestVariablesOfEachLanguage(t *testing.T) {
	if err := gocache.Setup(); err != nil {
		t.Fatal(err)
	}
	a := start(t, config{})
	for _, l := range []struct{ name, cell, want, look, seen, long string }{
		{"python", "n = 42; text = 'a b'; many = [1, 2, 3]", `many list 3 [] [1, 2, 3]; n int - [] 42; text str 3 [] 'a b'`, "n", "42", "while True: pass"},
		{"bash", "declare -i n=42; text='a b'; many=(1 2 3)", `many array 3 [] 1 2 3; n integer - [] 42; text string 3 [] a b`, "echo $n", "42\n", "while :; do :; done"},
		{"javascript", "let n = 42; const text = 'a b'; var many = [1, 2, 3]", `many Array 3 [] [1, 2, 3]; n number - [] 42; text string 3 [] "a b"`, "n", "42", "while (true);"},
		{"typescript", "let n: number = 42; const text: string = 'a b'; var many: number[] = [1, 2, 3]", `many Array 3 [] [1, 2, 3]; n number - [] 42; text string 3 [] "a b"`, "n", "42", "while (true);"},
		{"java", `int n = 42; String text = "a b"; List<Integer> many = List.of(1, 2, 3);`, `many List<Integer> 3 [] [1, 2, 3]; n int - [] 42; text String 3 [] "a b"`, "n", "42", "while (true);"},
		{"r", "n <- 42L; text <- 'a b'; many <- data.frame(a = 1:3, b = 4:6)", `many data.frame - [3 2] a, b; n integer 1 [] 42; text character 1 [] "a b"`, "n", "[1] 42", "repeat {}"},
		{"go", `n := 42; text := "a b"; many := []int{1, 2, 3}`, `many []int 3 [] [1 2 3]; n int - [] 42; text string 3 [] "a b"`, "n", "42", "for {}"},
	} {
		t.Run(l.name, func(t *testing.T) {
			path := "/v1/interpreter/contexts/" + l.name
			a.get("POST", "/v1/interpreter/contexts", object{"id": l.name, "language": l.name}, new(api.Context))
			var list api.VariableList
			if a.get("GET", path+"/variables", nil, &list); list.Total != 0 || len(list.Data) != 0 || list.Generation != 1 {
				t.Errorf("before the first cell: %s", show(list))
			}
			a.cell(l.name, l.cell)
			for range 2 {
				a.get("GET", path+"/variables", nil, &list)
				var got []string
				for _, v := range list.Data {
					size := "-"
					if v.Size != nil {
						size = fmt.Sprint(*v.Size)
					}
					got = append(got, fmt.Sprint(v.Name, " ", v.Type, " ", size, " ", v.Shape, " ", v.Preview))
				}
				if got := strings.Join(got, "; "); got != l.want || list.Total != 3 {
					t.Errorf("of %d, got %s\nwant %s", list.Total, got, l.want)
				}
			}
			if got := a.cell(l.name, l.look); got != l.seen {
				t.Errorf("after: %q", got)
			}
			var c api.Context
			if a.get("GET", path, nil, &c); c.ExecutionCount != 2 {
				t.Errorf("the questions count as cells: %s", show(c))
			}
			x := a.run(object{"context": l.name, "code": l.long, "waitMs": 1})
			a.refused(503, api.CodeUnavailable, "GET", path+"/variables", nil)
			a.get("POST", "/v1/executions/"+x.ID+":interrupt", nil, &struct{}{})
			a.over(x.ID)
			a.get("DELETE", path, nil, &struct{}{})
		})
	}
}

func TestLanguagesAndHealth(t *testing.T) {
	a := start(t, config{})
	var l api.LanguageList
	a.get("GET", "/v1/languages", nil, &l)
	ready := false
	for _, one := range l.Data {
		if ready = ready || one.Name == "python" && one.State == api.LanguageReady && one.Path != ""; one.State == "" {
			t.Errorf("%s", show(one))
		}
	}
	if !ready {
		t.Errorf("%s", show(l))
	}
	h := a.health()
	if h.Status != "ok" || h.API != 1 || h.InstanceID == "" || h.Version == "" || h.Features == nil || h.Running != 0 {
		t.Errorf("%s", show(h))
	}
	before := h.IdleMs
	a.eventually("idleMs grows", func() error {
		if now := a.health().IdleMs; now <= before {
			return errString(itoa(now))
		}
		return nil
	})
	ans := a.call("GET", "/metrics", nil)
	for _, name := range []string{"go_goroutines ", "cellard_contexts{state=\"idle\"} 0", "process_resident_memory_bytes "} {
		if !strings.Contains(string(ans.body), "\n"+name) {
			t.Errorf("no %s in %s", name, ans.body)
		}
	}
}

func TestRefusals(t *testing.T) {
	a := start(t, config{args: []string{"--max-body", "100KiB", "--max-queue", "2", "--max-contexts", "2"}})
	const run = "/v1/interpreter:run"
	for _, c := range []struct {
		status int
		code   api.Code
		method string
		path   string
		body   any
		names  string // what the message must name
	}{
		{422, api.CodeInvalidRequest, "POST", run, object{}, "code"},
		{422, api.CodeInvalidRequest, "POST", run, object{"code": 1}, "code"},
		{422, api.CodeInvalidRequest, "POST", run, object{"code": nil}, "code"},
		{400, api.CodeInvalidRequest, "POST", run, object{"code": "1", "timeoutMs": "x"}, "timeoutMs"},
		{400, api.CodeInvalidRequest, "POST", run, object{"code": "1", "stdin": "dead"}, "stdin"},
		{400, api.CodeInvalidRequest, "POST", run, object{"code": "1", "env": []int{1}}, "env"},
		{400, api.CodeInvalidRequest, "POST", run, object{"code": "1", "timeoutMs": -1}, "timeoutMs"},
		{400, api.CodeInvalidRequest, "POST", run, []byte("{"), ""},
		{422, api.CodeInvalidRequest, "POST", run, []byte(""), "code"},
		{400, api.CodeInvalidRequest, "POST", run, object{"code": "1", "context": "python", "language": "r"}, "python"},
		{404, api.CodeNotFound, "POST", run, object{"code": "1", "context": "nobody"}, "nobody"},
		{404, api.CodeNotFound, "POST", run, object{"code": "1", "language": "klingon"}, "klingon"},
		{413, api.CodeTooLarge, "POST", run, object{"code": strings.Repeat("1", 200<<10)}, ""},
		{400, api.CodeInvalidRequest, "POST", "/v1/interpreter/contexts", object{"id": "Not OK"}, "Not OK"},
		{404, api.CodeNotFound, "GET", "/v1/executions/e_0", nil, "e_0"},
		{404, api.CodeNotFound, "POST", "/v1/executions/e_0:interrupt", nil, "e_0"},
		{404, api.CodeNotFound, "POST", "/v1/executions/e_0:input", object{"value": "x"}, "e_0"},
		{404, api.CodeNotFound, "DELETE", "/v1/interpreter/contexts/nobody", nil, "nobody"},
		{404, api.CodeNotFound, "GET", "/v1/nothing", nil, "/v1/nothing"},
		{405, api.CodeInvalidRequest, "GET", run, nil, ""},
	} {
		if e := a.refused(c.status, c.code, c.method, c.path, c.body); !strings.Contains(e.Message+e.Hint, c.names) {
			t.Errorf("%s %s %.100v: %v", c.method, c.path, c.body, e)
		}
	}
	// Unknown fields are ignored.
	if x := a.run(object{"code": "1", "novelty": true}); x.Status != api.StatusOK {
		t.Errorf("%s", show(x))
	}
	a.refused(400, api.CodeInvalidRequest, "GET", "/v1/executions/"+a.run(object{"code": "1"}).ID+"/events?after=x", nil)
	// Past its bound a queue takes no more.
	s := a.stream(object{"code": "print('in', flush=True)\nimport time; time.sleep(1000)"})
	s.text(api.KindStdout, "in")
	q := []*stream{a.stream(object{"code": "1"}), a.stream(object{"code": "2"})}
	e := a.refused(429, api.CodeBusy, "POST", run, object{"code": "3"})
	if !strings.Contains(e.Message, "python") {
		t.Errorf("%v", e)
	}
	a.create("second")
	a.refused(429, api.CodeBusy, "POST", "/v1/interpreter/contexts", object{"id": "third"})
	a.get("POST", "/v1/interpreter/contexts/python:interrupt", nil, &struct{}{})
	s.rest()
	for i, q := range q {
		if x := q.rest(); x.Status != api.StatusOK || plain(x.Results[0]) != itoa(int64(i+1)) {
			t.Errorf("%s", show(x))
		}
	}
}

// A kernel that doesn't start is told with its last words, leaves nothing, and the next
// run tries again.
func TestKernelThatDoesNotStart(t *testing.T) {
	a := start(t, config{})
	bad := fixture.Dir(t, 0o777)
	module := filepath.Join(bad, "sitecustomize.py")
	if err := os.WriteFile(module, []byte("import os\nos.write(2, b'no today\\n')\nos._exit(9)\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	body := object{"id": "bad", "env": map[string]string{"PYTHONPATH": bad}}
	for range 2 {
		e := a.refused(502, api.CodeKernelFailed, "POST", "/v1/interpreter/contexts", body)
		if !strings.Contains(e.Message, "no today") || !strings.Contains(e.Message, "exit code 9") {
			t.Errorf("%v", e)
		}
		if left := marked(a.instance); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
	if err := os.Remove(module); err != nil {
		t.Fatal(err)
	}
	var c api.Context
	a.get("POST", "/v1/interpreter/contexts", body, &c)
	b, err := json.Marshal(c)
	if err != nil || !strings.Contains(string(b), `"checkpoint":"off"`) {
		t.Errorf("%s %v", b, err)
	}
}
