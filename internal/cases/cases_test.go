package cases

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cellard/cellard/protocol/api"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is an agent that gives the answers it was told to give.
type fake struct {
	t *testing.T
	// executions are the bodies of the answers to the runs, in order; a run that
	// asks for a stream gets a stream that ends in last or, without one, in it.
	executions []string
	last       string
	// later is what GET /v1/executions/ answers.
	later string
	// file, and its type, are what a ref gives.
	file, fileType string

	runs []map[string]any
	log  []string
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.log = append(f.log, r.Method+" "+r.URL.EscapedPath())
	var body map[string]any
	_ = json.NewDecoder(r.Body).Decode(&body)
	switch {
	case r.URL.Path == "/v1/interpreter:run":
		f.runs = append(f.runs, body)
		if len(f.executions) < len(f.runs) {
			http.Error(w, `{"error":{"code":"internal","message":"no more","hint":""}}`, 500)
			return
		}
		ex := f.executions[len(f.runs)-1]
		if body["stream"] != true {
			fmt.Fprint(w, ex)
			return
		}
		fmt.Fprintln(w, `{"k":"start","id":"e_1","n":1,"seq":1}`)
		if f.last != "" {
			fmt.Fprintln(w, f.last)
		} else {
			fmt.Fprintf(w, `{"k":"execution","execution":%s,"seq":2}`+"\n", ex)
		}
	case strings.HasPrefix(r.URL.Path, "/v1/executions/"):
		fmt.Fprint(w, f.later)
	case strings.Contains(r.URL.Path, "/results/"):
		w.Header().Set("Content-Type", f.fileType)
		fmt.Fprint(w, f.file)
	default:
		fmt.Fprint(w, `{}`)
	}
}

// serve starts f and returns the agent that reaches it.
func (f *fake) serve() *Agent {
	socket := filepath.Join(f.t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		f.t.Fatal(err)
	}
	s := http.Server{Handler: f}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	f.t.Cleanup(func() { s.Close(); <-done })
	return Dial(socket)
}

// execution is an ok Execution with the fields changed that fields names, as JSON.
func execution(t *testing.T, fields string) string {
	t.Helper()
	ex := api.Execution{ID: "e_1", Status: api.StatusOK, State: api.StateKept, Generation: 1, Results: []api.Result{}, Overflow: []api.Overflow{}}
	if err := json.Unmarshal([]byte(fields), &ex); err != nil {
		t.Fatalf("%s: %v", fields, err)
	}
	b, err := api.Marshal(ex)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// oneStep is a case of one step with this expectation.
func oneStep(t *testing.T, expect string) Case {
	t.Helper()
	var c Case
	if err := json.Unmarshal([]byte(`{"name":"x","language":"python","steps":[{"code":"x","expect":`+expect+`}]}`), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// Each check passes on a right answer and, which is what it is there for, fails on
// each wrong one.
func TestChecks(t *testing.T) {
	const table = "application/vnd.runtime.table+json"
	frame := func(t string) string {
		return `{"results":[{"main":true,"data":{"` + table + `":` + t + `},"refs":{}}]}`
	}
	main := func(text string) string {
		return `{"results":[{"main":true,"data":{"text/plain":` + text + `},"refs":{}}]}`
	}
	shown := `{"results":[{"main":false,"data":{"text/plain":"2"},"refs":{}}]}`
	oops := func(value, traceback string) string {
		return `{"status":"error","error":{"name":"KeyError","value":"` + value + `","traceback":"` + traceback + `"}}`
	}
	for _, c := range []struct {
		expect, right string
		wrong         []string
	}{
		{`{"status":"ok"}`, `{}`, []string{`{"status":"error"}`, `{"status":"timeout"}`}},
		{`{"status":["timeout","lost"]}`, `{"status":"lost"}`, []string{`{"status":"ok"}`}},
		{`{"state":"kept"}`, `{}`, []string{`{"state":"lost"}`, `{"state":""}`}},
		{`{"stdout":"a\n"}`, `{"stdout":"a\n"}`, []string{`{"stdout":"a"}`, `{"stdout":"a\na\n"}`}},
		{`{"stdout":""}`, `{"stdout":""}`, []string{`{"stdout":" "}`}},
		{`{"stderr":"a"}`, `{"stderr":"a"}`, []string{`{"stdout":"a"}`}},
		{`{"stdoutHas":["a","b"]}`, `{"stdout":"bxa"}`, []string{`{"stdout":"a"}`, `{"stderr":"ab"}`}},
		{`{"stdoutNot":["a"]}`, `{"stdout":"b"}`, []string{`{"stdout":"bab"}`}},
		{`{"stderrHas":["a"]}`, `{"stderr":"a"}`, []string{`{}`}},
		{`{"stderrNot":["a"]}`, `{}`, []string{`{"stderr":"a"}`}},
		{`{"results":0}`, `{}`, []string{shown}},
		{`{"text":"2"}`, main(`"2"`), []string{main(`"3"`), shown, `{}`}},
		{`{"mimes":["text/plain"]}`, shown, []string{`{}`, frame(`{}`)}},
		{`{"mimes":["image/png"]}`, `{"results":[{"main":false,"data":{},"refs":{"image/png":{"path":"/x","bytes":1,"sha256":""}}}]}`, []string{shown}},
		{`{"previewHas":["ab","yz"]}`, main(`"ab...yz"`), []string{main(`"ab..."`), `{}`}},
		{`{"table":{"columns":["a"],"rows":[[1],[null]],"rowCount":2}}`, frame(`{"columns":["a"],"rows":[[1.0],[null]],"rowCount":2,"x":0}`),
			[]string{frame(`{"columns":["a"],"rows":[[1],[2]],"rowCount":2}`), frame(`{"columns":["a"],"rows":[[1],[null]],"rowCount":3}`), frame(`{}`), shown}},
		{`{"error":null}`, `{}`, []string{oops("", "")}},
		{`{"error":{"name":"KeyError","has":["in f","'a'"]}}`, oops("'a'", "in f"),
			[]string{`{}`, oops("'a'", "in g"), oops("'b'", "in f"), oops("'a'", `\u001b[0min f`), `{"error":{"name":"Other","value":"'a'","traceback":"in f"}}`}},
		{`{"error":{"name":["KeyError","X"],"has":[]}}`, oops("", ""), []string{`{}`}},
		{`{"overflow":{"stream":"stdout","bytes":3}}`, `{"overflow":[{"stream":"stderr","bytes":1},{"stream":"stdout","bytes":3}]}`,
			[]string{`{}`, `{"overflow":[{"stream":"stdout","bytes":4}]}`, `{"overflow":[{"stream":"stderr","bytes":3}]}`}},
		{`{"underMs":60000}`, `{}`, nil},
		{`{"underMs":-1}`, ``, []string{`{}`}},
	} {
		run := func(answer string) []string {
			f := &fake{t: t, executions: []string{execution(t, answer)}}
			return f.serve().Run(t.Context(), oneStep(t, c.expect), "c", "/")
		}
		if c.right != "" {
			if faults := run(c.right); faults != nil {
				t.Errorf("%s on %s: %q", c.expect, c.right, faults)
			}
		}
		for _, w := range c.wrong {
			if faults := run(w); len(faults) == 0 {
				t.Errorf("%s passes on %s", c.expect, w)
			}
		}
	}
}

func TestRefsAreFetchedAndHashed(t *testing.T) {
	const file = "some bytes"
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte(file)))
	for _, c := range []struct {
		name, file, fileType, sha string
		bytes                     int
		fault                     bool
	}{
		{"right", file, "image/png", sum, len(file), false},
		{"right, with a parameter", file, "image/png; x=y", sum, len(file), false},
		{"other bytes", "same bytes", "image/png", sum, len(file), true},
		{"cut", file[1:], "image/png", sum, len(file), true},
		{"other length", file, "image/png", sum, len(file) + 1, true},
		{"other hash", file, "image/png", strings.Repeat("0", 64), len(file), true},
		{"other type", file, "text/html", sum, len(file), true},
	} {
		ex := execution(t, fmt.Sprintf(`{"results":[{"main":false,"data":{},"refs":{"image/png":{"path":"/w/out/1-a b.png","bytes":%d,"sha256":%q}}}]}`, c.bytes, c.sha))
		f := &fake{t: t, executions: []string{ex}, file: c.file, fileType: c.fileType}
		faults := f.serve().Run(t.Context(), oneStep(t, `{"refs":["image/png"]}`), "c", "/")
		if (len(faults) > 0) != c.fault {
			t.Errorf("%s: %q", c.name, faults)
		}
		if want := "GET /v1/interpreter/contexts/c/results/1-a%20b.png"; !strings.Contains(strings.Join(f.log, "\n"), want) {
			t.Errorf("%s: no %s in %q", c.name, want, f.log)
		}
	}
	f := &fake{t: t, executions: []string{execution(t, `{}`)}}
	if faults := f.serve().Run(t.Context(), oneStep(t, `{"refs":["image/png"]}`), "c", "/"); len(faults) != 1 {
		t.Errorf("no ref at all: %q", faults)
	}
}

func TestStepsGoToOneContextInOrder(t *testing.T) {
	var c Case
	err := json.Unmarshal([]byte(`{"name":"x","language":"python","steps":[
		{"code":"a","expect":{"results":1}},
		{"code":"b","timeoutMs":5,"env":{"A":"1"},"expect":{},"then":{"step":1,"shown":["'two'"]}}]}`), &c)
	if err != nil {
		t.Fatal(err)
	}
	one := func(text string) string {
		return execution(t, `{"results":[{"main":false,"data":{"text/plain":"'`+text+`'"},"refs":{}}]}`)
	}
	f := &fake{t: t, executions: []string{one("one"), execution(t, `{"id":"e_2"}`)}, later: one("two")}
	if faults := f.serve().Run(t.Context(), c, "ctx", "/tmp"); faults != nil {
		t.Error(faults)
	}
	want := []string{"POST /v1/interpreter/contexts", "POST /v1/interpreter:run", "POST /v1/interpreter:run",
		"GET /v1/executions/e_1", "DELETE /v1/interpreter/contexts/ctx"}
	if strings.Join(f.log, "\n") != strings.Join(want, "\n") {
		t.Errorf("requests %q, wanted %q", f.log, want)
	}
	if got := fmt.Sprint(f.runs); got != fmt.Sprint([]map[string]any{
		{"code": "a", "context": "ctx"}, {"code": "b", "context": "ctx", "timeoutMs": 5., "env": map[string]any{"A": "1"}}}) {
		t.Errorf("bodies %s", got)
	}

	f = &fake{t: t, executions: []string{one("one"), execution(t, `{"id":"e_2"}`)}, later: one("one")}
	if faults := f.serve().Run(t.Context(), c, "ctx", "/tmp"); len(faults) != 1 {
		t.Errorf("the old text is still shown: %q", faults)
	}
}

func TestStall(t *testing.T) {
	c := oneStep(t, `{"status":"ok"}`)
	c.Steps[0].Stall = 50 * time.Millisecond
	for last, fault := range map[string]bool{
		"": false,
		`{"k":"end","id":"e_1","status":"ok","ms":1,"seq":2}`:                                         true,
		`{"k":"failure","code":"kernel_failed","message":"died","hint":"","status":502,"seq":2}`:      true,
		`{"k":"execution","execution":` + execution(t, `{"status":"error"}`) + `,"seq":2}`:            true,
		`{"k":"execution","seq":3,"execution":{"id":"e_1","status":"ok","state":"kept","stdout":""}}`: true,
	} {
		f := &fake{t: t, executions: []string{execution(t, `{}`)}, last: last}
		faults := f.serve().Run(t.Context(), c, "c", "/")
		if (len(faults) > 0) != fault {
			t.Errorf("last line %s: %q", last, faults)
		}
		if len(f.runs) != 1 || f.runs[0]["stream"] != true {
			t.Errorf("no stream was asked for: %v", f.runs)
		}
	}
}

func TestAnAnswerThatIsNoExecutionIsAFault(t *testing.T) {
	for _, answer := range []string{"", "{}", "null", `{"id":"e_1","status":"ok"}`,
		strings.Replace(execution(t, `{}`), `"lostBytes":0,`, "", 1),
		execution(t, `{"results":[{"main":true,"data":{}}]}`)} {
		answer = strings.Replace(answer, `"refs":null`, `"x":0`, 1)
		f := &fake{t: t, executions: []string{answer}}
		if faults := f.serve().Run(t.Context(), oneStep(t, `{}`), "c", "/"); len(faults) != 1 {
			t.Errorf("%s: %q", answer, faults)
		}
	}
	f := &fake{t: t} // HTTP 500
	if faults := f.serve().Run(t.Context(), oneStep(t, `{}`), "c", "/"); len(faults) != 1 {
		t.Errorf("a refusal: %q", faults)
	}
	if faults := Dial(filepath.Join(t.TempDir(), "none")).Run(t.Context(), oneStep(t, `{}`), "c", "/"); len(faults) != 1 {
		t.Errorf("no agent: %q", faults)
	}
}

func TestLoad(t *testing.T) {
	files, err := filepath.Glob("../../testdata/cases/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no case files: %v", err)
	}
	for _, f := range files {
		if _, err := Load(f); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{
		``, `[]`, `[{"name":"x","language":"python","steps":[]}]`,
		`[{"name":"x","language":"python","steps":[{"code":"1"}]}]`,
		`[{"name":"x","language":"python","steps":[{"code":"1","expect":{"stautus":"ok"}}]}]`,
		`[{"name":"x","language":"python","steps":[{"code":"1","expect":{"status":1}}]}]`,
		`[{"name":"x","language":"python","steps":[{"code":"1","expect":{},"then":{"step":2,"shown":[]}}]}]`,
	} {
		f := filepath.Join(t.TempDir(), "cases.json")
		if err := os.WriteFile(f, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(f); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}
