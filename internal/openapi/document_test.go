package openapi

import (
	"maps"
	"os"
	"reflect"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/cellard/cellard/protocol/api"
	"github.com/cellard/cellard/server"
)

// document is docs/openapi.yaml.
type document struct {
	root    map[string]any
	schemas *jsonschema.Compiler
}

const where = "openapi.json"

func load(t *testing.T) *document {
	t.Helper()
	b, err := os.ReadFile("../../docs/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d := &document{schemas: jsonschema.NewCompiler()}
	if err := yaml.Unmarshal(b, &d.root); err != nil {
		t.Fatal(err)
	}
	// A client ignores fields that it does not know, but here one that the document lacks
	// is a fault.
	strict := closed(d.root)
	if err := d.schemas.AddResource(where, strict); err != nil {
		t.Fatal(err)
	}
	return d
}

// closed copies v, with each object's schema allowing the properties that it names alone.
func closed(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = closed(e)
		}
		if _, open := v["additionalProperties"]; v["type"] == "object" && v["properties"] != nil && !open {
			out["additionalProperties"] = false
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = closed(e)
		}
		return out
	case int: // as encoding/json has numbers
		return float64(v)
	}
	return v
}

// at follows keys, and $ref on the way.
func (d *document) at(v any, keys ...string) any {
	for {
		m, _ := v.(map[string]any)
		if ref, ok := m["$ref"].(string); ok {
			v = d.at(d.root, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
			continue
		}
		if len(keys) == 0 {
			return v
		}
		v, keys = m[keys[0]], keys[1:]
	}
}

func (d *document) schema(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	s, err := d.schemas.Compile(where + "#/components/schemas/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// operations are the METHOD path pairs that the document has.
func (d *document) operations() (all []string) {
	for path, item := range d.root["paths"].(map[string]any) {
		for method := range item.(map[string]any) {
			if method != "parameters" {
				all = append(all, strings.ToUpper(method)+" "+path)
			}
		}
	}
	sort.Strings(all)
	return all
}

func TestRoutes(t *testing.T) {
	want := server.Routes()
	sort.Strings(want)
	if got := load(t).operations(); !slices.Equal(got, want) {
		t.Errorf("the document has\n%s\nand the server\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Each type of protocol/api has a schema of its name, with its fields; those that are
// always written are required.
func TestTypes(t *testing.T) {
	d := load(t)
	described := map[string]reflect.Type{}
	for _, v := range []any{api.RunRequest{}, api.Execution{}, api.CellError{}, api.Result{}, api.Ref{}, api.Overflow{}, api.Lost{}, api.Usage{}, api.Timing{},
		api.ContextRequest{}, api.Context{}, api.ContextList{}, api.Variable{}, api.VariableList{}, api.KernelInfo{}, api.CompleteRequest{}, api.InputRequest{},
		api.Language{}, api.LanguageList{}, api.Health{}, api.Error{}, api.ErrorBody{}} {
		described[reflect.TypeOf(v).Name()] = reflect.TypeOf(v)
	}
	for name, typ := range described {
		schema, _ := d.at(d.root, "components", "schemas", name).(map[string]any)
		if schema == nil {
			t.Errorf("no schema %s", name)
			continue
		}
		var fields, required []string
		for i := range typ.NumField() {
			tag, options, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			if tag == "-" || tag == "" {
				continue
			}
			fields = append(fields, tag)
			if options != "omitempty" {
				required = append(required, tag)
			}
		}
		have := slices.Collect(maps.Keys(schema["properties"].(map[string]any)))
		var must []string
		for _, r := range asList(schema["required"]) {
			must = append(must, r.(string))
		}
		for _, l := range [][]string{fields, required, have, must} {
			sort.Strings(l)
		}
		if !slices.Equal(fields, have) || !slices.Equal(required, must) {
			t.Errorf("%s: the document has %v, required %v; the type %v, %v", name, have, must, fields, required)
		}
	}
}

func asList(v any) []any { l, _ := v.([]any); return l }

// The enums are the constants.
func TestEnums(t *testing.T) {
	d := load(t)
	for _, c := range []struct {
		at   []string
		want []string
	}{
		{[]string{"Status"}, str(api.StatusRunning, api.StatusOK, api.StatusError, api.StatusInterrupted, api.StatusTimeout, api.StatusLost)},
		{[]string{"State"}, str(api.StateKept, api.StateRestored, api.StateLost)},
		{[]string{"Lost", "properties", "reason"}, str(api.LostOOM, api.LostSignal, api.LostExit, api.LostUnresponsive, api.LostRestart, api.LostDeleted, api.LostShutdown)},
		{[]string{"Context", "properties", "state"}, str(api.ContextStarting, api.ContextIdle, api.ContextBusy, api.ContextDead)},
		{[]string{"Language", "properties", "state"}, str(api.LanguageReady, api.LanguageInstallable, api.LanguageMissing)},
		{[]string{"Event", "properties", "k"}, str(kinds...)},
		{[]string{"Code"}, str(api.CodeInvalidRequest, api.CodeUnauthorized, api.CodeNotFound, api.CodeConflict, api.CodeGeneration, api.CodeUnsupported,
			api.CodeGone, api.CodeTooLarge, api.CodeBusy, api.CodeKernelFailed, api.CodeUnavailable, api.CodeInternal)},
	} {
		var got []string
		for _, v := range asList(d.at(d.root, append(append([]string{"components", "schemas"}, c.at...), "enum")...)) {
			got = append(got, v.(string))
		}
		sort.Strings(got)
		sort.Strings(c.want)
		if !slices.Equal(got, c.want) {
			t.Errorf("%v: the document has %v, the type %v", c.at, got, c.want)
		}
	}
}

var kinds = []api.Kind{api.KindStart, api.KindStdout, api.KindStderr, api.KindResult, api.KindUpdate, api.KindClear, api.KindInput, api.KindError,
	api.KindEnd, api.KindExecution, api.KindFailure, api.KindPing, api.KindProgress, api.KindGap}

func str[T ~string](all ...T) (out []string) {
	for _, v := range all {
		out = append(out, string(v))
	}
	return out
}

// Each kind of event as it is written is valid, and the schema misses a field that is not
// there.
func TestEvents(t *testing.T) {
	s := load(t).schema(t, "Event")
	for _, k := range kinds {
		ev := api.Event{K: k, Seq: 1, ID: "e_1", DisplayID: "d", Err: &api.CellError{}, Status: api.StatusOK,
			Execution: &api.Execution{Status: api.StatusOK, State: api.StateKept, Results: []api.Result{}, Overflow: []api.Overflow{}},
			Failure:   api.Errorf(api.CodeGone, "gone")}
		b, err := api.Marshal(ev)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate(s, b); err != nil {
			t.Errorf("%s: %v", b, err)
		}
		bare := `{"k":"` + string(k) + `","seq":1}`
		if err := validate(s, []byte(bare)); (err == nil) != (k == api.KindPing) {
			t.Errorf("%s: %v", bare, err)
		}
	}
}

func validate(s *jsonschema.Schema, b []byte) error {
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(b)))
	if err != nil {
		return err
	}
	return s.Validate(v)
}
