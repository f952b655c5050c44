package endtoend

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/cellard/cellard/internal/pythons"
	"github.com/cellard/cellard/protocol/api"
)

// What went wrong in a session is in its notebook, which is valid by nbformat's own rules.
func TestNotebookOfASessionThatWentWrong(t *testing.T) {
	python := pythons.Named(t, "notebook")
	a := start(t, config{python: python})
	const run, c = "/v1/interpreter:run", "/v1/interpreter/contexts/python"
	cell := func(code string, timeoutMs int) {
		t.Helper()
		if ans := a.call("POST", run, object{"code": code, "timeoutMs": timeoutMs}); ans.status != 200 {
			t.Fatalf("%d %s", ans.status, ans.body)
		}
	}
	cell("import os\nfrom IPython.display import display\nprint('well')\nshown = display('one', display_id=True)", 0)
	cell("shown.update('two')\n1 / 0", 0)
	cell("while True: pass", 300)
	cell("display({'image/png': 'AAAA' * 50_000}, raw=True)", 0)
	// libzmq sends what was flushed a moment later.
	cell("import time\nprint('last', flush=True)\ntime.sleep(0.5)\nos.kill(os.getpid(), 9)", 0)
	cell("'again'", 0)
	a.get("POST", c+":restart", nil, new(any))
	cell("'and again'", 0)
	running := a.stream(object{"code": "print('so far', flush=True)\nimport time\ntime.sleep(1000)"})
	running.text(api.KindStdout, "so far")

	ans := a.call("GET", c+"/notebook", nil)
	if ans.status != 200 || ans.header.Get("Content-Type") != "application/x-ipynb+json" {
		t.Fatalf("%d %v %s", ans.status, ans.header, ans.body)
	}
	a.get("POST", c+":interrupt", nil, new(any))
	running.rest()
	file := filepath.Join(t.TempDir(), "session.ipynb")
	if err := os.WriteFile(file, ans.body, 0o600); err != nil {
		t.Fatal(err)
	}
	check := "import nbformat, sys; nbformat.validate(nbformat.read(sys.argv[1], as_version=4))"
	if b, err := exec.Command(python, "-c", check, file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, b)
	}
	var nb struct {
		Cells []struct {
			CellType       string `json:"cell_type"`
			ExecutionCount any    `json:"execution_count"`
			Outputs        []struct {
				OutputType string `json:"output_type"`
				EName      string
				Text       []string
				Data       map[string]any
			}
			Metadata struct{ Cellard map[string]any }
		}
		Metadata map[string]any
	}
	if err := json.Unmarshal(ans.body, &nb); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range nb.Cells {
		line := fmt.Sprintf("%s %v %v", c.CellType, c.ExecutionCount, c.Metadata.Cellard["status"])
		for _, o := range c.Outputs {
			png, _ := o.Data["image/png"].(string)
			line += fmt.Sprintf(" %s%s%q%v/%d", o.OutputType, o.EName, o.Text, o.Data["text/plain"], len(png))
		}
		got = append(got, line)
	}
	want := []string{
		`code 1 ok stream["well\n"]<nil>/0 display_data[]['two']/0`,
		`code 2 error errorZeroDivisionError[]<nil>/0`,
		`code 3 timeout errorKeyboardInterrupt[]<nil>/0`,
		`code 4 ok display_data[]<nil>/200000`,
		`code 5 lost stream["last\n"]<nil>/0 errorKernelDied[]<nil>/0`,
		`markdown <nil> <nil>`,
		`code 1 ok execute_result[]['again']/0`,
		`markdown <nil> <nil>`,
		`code 1 ok execute_result[]['and again']/0`,
		`code 2 running stream["so far\n"]<nil>/0`,
	}
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Errorf("cell %d of %d: %v", i, len(got), got[min(i, len(got)-1)])
		}
	}
	if lost, _ := json.Marshal(nb.Cells[4].Metadata.Cellard["lost"]); len(lost) < 10 {
		t.Errorf("%s", lost)
	}
}
