package endtoend

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cellard/cellard/internal/fixture"
	"github.com/cellard/cellard/internal/pythons"
	"github.com/cellard/cellard/protocol/api"
)

// secret marks what must be in no log. Each use of it has a name of its own behind it.
const secret = "s3cret-"

// withSecrets has an agent do all that could bring a secret into its log.
func withSecrets(t *testing.T, a *agent) {
	t.Helper()
	const run = "/v1/interpreter:run"
	dir := filepath.Join(a.workspace, secret+"cwd")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	var c api.Context
	a.get("POST", "/v1/interpreter/contexts", object{"id": "own", "env": object{"A": secret + "context-env"}, "cwd": dir}, &c)
	a.cell("own", "import os; os.environ['A'], os.getcwd()")
	a.cell("python", "x = '"+secret+"code'")
	a.cell("python", "import sys, os; print('"+secret+"stdout'); sys.stderr.write('"+secret+"stderr'); os.system('echo "+secret+"raw')")
	a.cell("python", "from IPython.display import display; display({'text/html': '"+secret+"result' * 9000, '"+secret+"type/x': 'y'}, raw=True)")
	a.cell("python", "open('"+secret+"file.csv', 'w').write('a'); import pathlib; display(pathlib.Path('"+secret+"file.csv'))")
	a.run(object{"code": "class S3cretError(Exception): pass\nraise S3cretError('" + secret + "error')"})
	a.run(object{"code": "x", "env": object{"A": secret + "env"}, "cwd": secret + "no-dir"})
	a.run(object{"code": "input('" + secret + "prompt')", "stdin": []string{secret + "answer"}})
	a.run(object{"code": "input('" + secret + "unanswered')"})
	a.run(object{"code": "while True: print('" + secret + "loop')", "timeoutMs": 200, "idempotencyKey": secret + "key"})
	var live api.Execution
	a.get("POST", run, object{"code": "input()", "stdin": "live", "waitMs": 0, "interruptOnDisconnect": false}, &live)
	a.eventually("the answer is taken", func() error {
		if ans := a.call("POST", "/v1/executions/"+live.ID+":input", object{"value": secret + "live"}); ans.status != http.StatusOK {
			return errString(string(ans.body))
		}
		return nil
	})
	a.over(live.ID)
	// Output while no cell runs, and the last words of a kernel.
	start := filepath.Join(a.workspace, "start")
	a.cell("python", "import subprocess; p = subprocess.Popen(['sh', '-c', 'until [ -e "+start+" ]; do sleep 0.05; done; echo "+secret+"between'])")
	if err := os.WriteFile(start, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	a.eventually("what came between cells is logged", func() error {
		if !strings.Contains(a.log.String(), "between cells") && strings.Contains(strings.Join(a.c.Args, " "), "debug") {
			return errString("no such line")
		}
		return nil
	})
	a.run(object{"code": "import os; os.write(2, b'" + secret + "words'); os._exit(1)"})
	a.cell("python", "1")
	// On a slow machine that is within the cell still, which is as well.
	a.run(object{"code": "import os, threading; threading.Timer(0.5, lambda: (os.write(2, b'" + secret + "idle-words'), os._exit(1))).start()"})
	a.eventually("it has died", func() error {
		if s := a.context("python").State; s != api.ContextDead {
			return errString(string(s))
		}
		return nil
	})
	// Refusals, of all that a request has.
	a.refused(502, api.CodeKernelFailed, "POST", run, object{"code": "1", "language": "no-start"})
	a.refused(400, api.CodeInvalidRequest, "POST", run, []byte(`{"`+secret+`json`))
	a.refused(400, api.CodeInvalidRequest, "POST", run, object{"code": "1", "env": object{"A": 1, secret + "name": "x"}})
	a.refused(400, api.CodeInvalidRequest, "POST", "/v1/interpreter/contexts", object{"cwd": secret + "missing"})
	a.refused(404, api.CodeNotFound, "POST", run, object{"code": "1", "context": secret + "context"})
	a.refused(404, api.CodeNotFound, "POST", run, object{"code": "1", "language": secret + "language"})
	a.refused(404, api.CodeNotFound, "GET", "/"+secret+"path?"+secret+"query=1", nil)
	a.refused(404, api.CodeNotFound, "GET", "/v1/executions/S-"+secret+"id", nil)
	a.refused(404, api.CodeNotFound, "GET", "/v1/interpreter/contexts/python/results/"+secret+"result.png", nil)
	a.refused(404, api.CodeNotFound, "GET", "/nothing", nil, "Authorization", "Bearer "+secret+"token", api.RequestIDHeader, "not one: "+secret+"header")
	a.refused(405, api.CodeInvalidRequest, "S3CRET", run, nil)
	a.remove("own")
}

// secrets are the lines of a log that have one.
func secrets(log string) (lines []string) {
	for line := range strings.Lines(log) {
		if strings.Contains(strings.ToLower(line), "s3cret") {
			lines = append(lines, line)
		}
	}
	return lines
}

// badKernel is a directory for JUPYTER_PATH with a kernel that says something and ends.
func badKernel(t *testing.T) string {
	t.Helper()
	dir := fixture.Dir(t, 0o755) // cells of another user read it too
	spec := filepath.Join(dir, "kernels", "no-start")
	if err := os.MkdirAll(spec, 0o755); err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(object{"argv": []string{pythons.Newest(t), "-c", "raise SystemExit('" + secret + "start')", "{connection_file}"},
		"display_name": "x", "language": "x"})
	if err := os.WriteFile(filepath.Join(spec, "kernel.json"), text, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// What cells, kernels and hosts wrote is in no log, at no level and in no format, unless
// the operator asks for it.
func TestLogTellsNoSecrets(t *testing.T) {
	env := []string{"JUPYTER_PATH=" + badKernel(t), "CELLARD_TOKEN=" + secret + "token"}
	for _, c := range []struct {
		args []string
		told bool
	}{
		{[]string{"--log-level", "debug"}, false},
		{[]string{"--log-level", "debug", "--log-format", "json"}, false},
		{[]string{"--log-level", "debug", "--log-content"}, true},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			a := start(t, config{env: env, args: append(c.args, "--listen", "tcp://127.0.0.1:0")})
			withSecrets(t, a)
			a.c.Process.Signal(os.Interrupt)
			a.waitEnd()
			log := a.log.String()
			if lines := secrets(log); !c.told && len(lines) > 0 {
				t.Errorf("%d lines of %d:\n%s", len(lines), strings.Count(log, "\n"), strings.Join(lines[:min(len(lines), 20)], ""))
			}
			if c.told {
				// With it the same cells show what the others must not: the looking works.
				for _, s := range []string{"code", "error", "words", "idle-words", "between", "start", "id"} {
					if !strings.Contains(log, secret+s) {
						t.Errorf("%s is not in the log, where it was asked for", secret+s)
					}
				}
				if strings.Contains(log, secret+"token") || strings.Contains(log, secret+"env") || strings.Contains(log, secret+"answer") {
					t.Error("the log has a token, a value of env or an answer, which nothing asks for")
				}
			}
		})
	}
}

// Each cell has a line with all that finds it again, and what its Execution says.
func TestLogTellsOfEachCell(t *testing.T) {
	a := start(t, config{args: []string{"--log-format", "json"}})
	type line struct {
		Msg, Level, Request, Execution, Context, Language, Status, State, Reason string
		Generation                                                               int
		QueuedMs, DurationMs                                                     *int64
		ExitCode                                                                 *int
	}
	var want []line
	cell := func(request string, o object) {
		t.Helper()
		ans := a.call("POST", "/v1/interpreter:run", o, api.RequestIDHeader, request)
		var x api.Execution
		if err := json.Unmarshal(ans.body, &x); err != nil || ans.status != http.StatusOK || ans.header.Get(api.RequestIDHeader) != request {
			t.Fatalf("%v %v %d %v: %s", o, err, ans.status, ans.header, ans.body)
		}
		w := line{Msg: "a cell ended", Level: "INFO", Request: request, Execution: x.ID, Context: x.ContextID, Language: x.Language, Status: string(x.Status),
			State: string(x.State), Generation: x.Generation, QueuedMs: &x.QueuedMs, DurationMs: &x.DurationMs}
		if x.Lost != nil {
			w.Reason, w.ExitCode = string(x.Lost.Reason), x.Lost.ExitCode
		}
		want = append(want, w)
	}
	cell("r-1", object{"code": "1"})
	cell("3f2a/B:4@x=~+_.-", object{"code": "1/0"})
	cell("r-3", object{"code": "while True: pass", "timeoutMs": 100})
	cell("r-4", object{"code": "import os; os._exit(7)"})
	cell("r-5", object{"code": "1"})
	ready := []line{{Msg: "a kernel is ready", Level: "INFO", Request: "r-1", Context: "python", Language: "python", Generation: 1},
		{Msg: "a kernel is ready", Level: "INFO", Request: "r-5", Context: "python", Language: "python", Generation: 2}}
	a.call("POST", "/v1/interpreter/contexts/python:restart", nil, api.RequestIDHeader, "r-6")
	ready = append(ready, line{Msg: "a kernel is ready", Level: "INFO", Request: "r-6", Context: "python", Language: "python", Generation: 3})
	a.eventually("the log has a line of each", func() error {
		var cells, kernels []line
		for text := range strings.Lines(a.log.String()) {
			var l line
			if err := json.Unmarshal([]byte(text), &l); err != nil {
				return errString(err.Error() + ": " + text)
			}
			switch l.Msg {
			case "a cell ended":
				cells = append(cells, l)
			case "a kernel is ready":
				l.DurationMs = nil
				kernels = append(kernels, l)
			}
		}
		if got, want := show(cells), show(want); got != want {
			return errString("cells:\n" + got + "\n" + want)
		}
		if got, want := show(kernels), show(ready); got != want {
			return errString("kernels:\n" + got + "\n" + want)
		}
		return nil
	})
}

// A request has an id: the caller's if it is one, else a new one; a refusal has it too.
func TestRequestIDs(t *testing.T) {
	a := start(t, config{args: []string{"--log-level", "debug"}})
	seen := map[string]bool{}
	for _, given := range []string{"", "mine", "not one", "né", strings.Repeat("x", 128), strings.Repeat("x", 129)} {
		ans := a.call("GET", "/v1/executions/none", nil, api.RequestIDHeader, given)
		id := ans.header.Get(api.RequestIDHeader)
		var body api.ErrorBody
		if err := json.Unmarshal(ans.body, &body); err != nil || body.Error == nil || body.Error.RequestID != id {
			t.Errorf("%q: %q and %s", given, id, ans.body)
		}
		if api.ValidRequestID(given) != (id == given) || !api.ValidRequestID(id) || seen[id] {
			t.Errorf("%q became %q", given, id)
		}
		seen[id] = true
		a.eventually("the request's line has it", func() error {
			if !strings.Contains(a.log.String(), " request="+id+" ") && !strings.Contains(a.log.String(), ` request="`+id+`" `) {
				return errString(id)
			}
			return nil
		})
	}
}
