package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/cellard/cellard/protocol/api"
)

// listing makes a context whose kernel answers variables_request with what a cell sets.
func (a *agent) listing(id string) {
	a.t.Helper()
	a.context(id, func(r *api.ContextRequest) { r.Language = "lists" })
}

func (a *agent) variables(id string) (api.VariableList, error) {
	return a.Variables(context.Background(), id)
}

func TestVariables(t *testing.T) {
	t.Parallel()
	a := newAgent(t, nil)
	a.listing("c")
	set := func(answer string) { t.Helper(); a.ok(a.cell("set answer "+answer, in("c"))) }
	set(`{"status":"ok","total":3,"data":[{"name":"a","type":"int","size":null,"shape":null,"preview":"1"},{"name":"b","type":"ndarray","size":4,"shape":[2,2],"preview":""}]}`)
	four := int64(4)
	want := api.VariableList{Generation: 1, Total: 3, Data: []api.Variable{{Name: "a", Type: "int", Preview: "1"},
		{Name: "b", Type: "ndarray", Size: &four, Shape: []int64{2, 2}}}}
	if got, err := a.variables("c"); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	set(`{"status":"ok"}`)
	if got, err := a.variables("c"); err != nil || got.Data == nil || len(got.Data) != 0 || got.Total != 0 {
		t.Errorf("none: %+v, %v", got, err)
	}

	// What a stranger's kernel may say.
	long := strings.Repeat("ü", 10_000)
	one, _ := json.Marshal(api.Variable{Name: long, Type: long, Preview: long, Shape: make([]int64, 1000)})
	set(`{"status":"ok","total":-1,"data":[` + string(one) + strings.Repeat(",{}", 200_000) + `]}`)
	got, err := a.variables("c")
	if err != nil || len(got.Data) != api.MaxVariables || got.Total != api.MaxVariables {
		t.Fatalf("%d of %d, %v", len(got.Data), got.Total, err)
	}
	first := got.Data[0]
	for text, most := range map[string]int{first.Name: api.MaxVariableName, first.Type: api.MaxVariableName, first.Preview: api.MaxPreview} {
		if len(text) > most || len(text) < most-4 || !utf8.ValidString(text) || !strings.HasSuffix(text, "…") {
			t.Errorf("%d bytes: %q", len(text), text)
		}
	}
	if len(first.Shape) != maxDimensions {
		t.Errorf("%d dimensions", len(first.Shape))
	}
	for _, answer := range []string{`{"status":"ok","data":[1]}`, `{"status":"ok","data":[{"name":1}]}`, `{"status":"ok","total":"x"}`, `[]`,
		`{"status":"error","ename":"E","evalue":"why"}`, `{}`} {
		set(answer)
		if got, err := a.variables("c"); code(err) != api.CodeUnavailable {
			t.Errorf("%s: %+v, %v", answer, got, err)
		}
	}
}

// Whoever asks gets an answer, whatever the context does.
func TestVariablesWithout(t *testing.T) {
	t.Parallel()
	a := newAgent(t, nil)
	if _, err := a.variables("none"); code(err) != api.CodeNotFound {
		t.Errorf("no context: %v", err)
	}
	a.context("plain")
	if _, err := a.variables("plain"); code(err) != api.CodeUnsupported {
		t.Errorf("a kernel that can't: %v", err)
	}
	a.listing("c")
	r := a.queue(lines("print a", "sleep 3600000"), in("c"))
	a.shows(r, "a")
	if _, err := a.variables("c"); code(err) != api.CodeUnavailable || !strings.Contains(err.Error(), "runs a cell") {
		t.Errorf("while a cell runs: %v", err)
	}
	if _, err := a.InterruptExecution(r.ID()); err != nil {
		t.Error(err)
	}
	a.end(r)
	a.end(a.queue("exit 0", in("c")))
	if got, err := a.variables("c"); err != nil || len(got.Data) != 0 || got.Data == nil || a.info("c").State != api.ContextDead {
		t.Errorf("a dead context: %+v, %v", got, err)
	}
}

// A kernel that can't end its list is interrupted, and the next cell finds it idle.
func TestVariablesThatHang(t *testing.T) {
	t.Parallel()
	a := newAgent(t, func(o *Options) { o.listWithin = 300 * time.Millisecond })
	a.listing("c")
	a.ok(a.cell(lines("set x 1", "set answer hang"), in("c")))
	if _, err := a.variables("c"); code(err) != api.CodeUnavailable || !strings.Contains(fmt.Sprint(err), "was interrupted") {
		t.Errorf("%v", err)
	}
	a.kept(in("c"))
}

func (a *agent) info(id string) api.Context {
	a.t.Helper()
	c, err := a.Manager.Context(id)
	if err != nil {
		a.t.Error(err)
	}
	return c
}
