package execution

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cellard/cellard/mime"
	"github.com/cellard/cellard/protocol/api"
	"github.com/cellard/cellard/protocol/jupyter"
	"github.com/cellard/cellard/store"
)

func newExecution(t *testing.T, o Options) *Execution {
	t.Helper()
	st, err := store.Open(t.TempDir(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o.ID, o.ContextID, o.Language, o.Store = "e_1", "python", "python", st
	e := New(o)
	t.Cleanup(func() { e.Close(); st.Close() })
	e.Begin(1, 1, false, nil)
	return e
}

func snapshot(t *testing.T, e *Execution) api.Execution {
	t.Helper()
	x, refused := e.Snapshot()
	if refused != nil {
		t.Fatal(refused)
	}
	return x
}

func value(v any) jupyter.Value {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return jupyter.NewValue(b)
}

func kinds(all []api.Event) string {
	var s []string
	for _, e := range all {
		s = append(s, string(e.K))
	}
	return strings.Join(s, " ")
}

func TestEventsAndExecution(t *testing.T) {
	e := newExecution(t, Options{})
	var d DisplayMap
	e.Stream(Stdout, "a\n")
	e.Stream(Stderr, "b\n")
	e.Display(false, value(map[string]any{"text/plain": "shown", "application/json": map[string]any{"a": 1}}), jupyter.Value{}, "", &d)
	e.Display(true, value(map[string]any{"text/plain": "42"}), jupyter.Value{}, "", &d)
	e.Raise(api.CellError{Name: "E", Value: "v\x1b[31m", Traceback: "\x1b[31mt\x1b[0m"})
	e.End(Ending{Status: api.StatusError})
	e.End(Ending{Status: api.StatusOK}) // the first one counts
	all := readAll(t, e.Events(0))
	if got, want := kinds(all), "start stdout stderr result result error end execution"; got != want {
		t.Fatalf("events %s, wanted %s", got, want)
	}
	x := snapshot(t, e)
	if x.Stdout != "a\n" || x.Stderr != "b\n" || x.Status != api.StatusError || len(x.Results) != 2 || !x.Results[1].Main {
		t.Fatalf("%+v", x)
	}
	if x.Error.Traceback != "t" || x.Error.Value != "v" {
		t.Fatalf("%+v", x.Error)
	}
	last, _ := api.Marshal(all[len(all)-1].Execution)
	now, _ := api.Marshal(x)
	if string(last) != string(now) {
		t.Fatalf("the last line has %s, a later look %s", last, now)
	}
}

func TestStreamsAreJoined(t *testing.T) {
	e := newExecution(t, Options{})
	for range 50_000 {
		e.Stream(Stdout, "x")
	}
	e.End(Ending{Status: api.StatusOK})
	all := readAll(t, e.Events(0))
	text := ""
	for _, ev := range all {
		text += ev.Text
	}
	if len(text) != 50_000 || len(all) > 5_000 {
		t.Fatalf("%d bytes in %d events", len(text), len(all))
	}
	f := newExecution(t, Options{}) // and text that waits is not held back
	f.Stream(Stdout, "a")
	f.Stream(Stdout, "b")
	r, got := f.Events(0), ""
	for !strings.Contains(got, `"b"`) {
		b, err := r.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got += string(b)
	}
}

func TestOverflowHoldsAll(t *testing.T) {
	e := newExecution(t, Options{Limits: Limits{Stream: 10_000}})
	var want strings.Builder
	for i := range 3_000 {
		line := strings.Repeat("é", i%20) + "\n"
		want.WriteString(line)
		e.Stream(Stdout, "gone\r\x1b[K"+line)
	}
	e.Stream(Stdout, "last line")
	want.WriteString("last line")
	e.End(Ending{Status: api.StatusOK})
	x := snapshot(t, e)
	if len(x.Overflow) != 1 || x.Overflow[0].Stream != "stdout" || x.Overflow[0].Bytes != int64(want.Len()) || x.Overflow[0].Dropped != 0 {
		t.Fatalf("%+v, wanted %d bytes", x.Overflow, want.Len())
	}
	b, err := os.ReadFile(x.Overflow[0].Path)
	if err != nil || string(b) != want.String() {
		t.Fatalf("the file has %d bytes of %d: %v", len(b), want.Len(), err)
	}
	if len(x.Stdout) > 10_200 || !strings.HasPrefix(x.Stdout, "\né\n") || !strings.HasSuffix(x.Stdout, "last line") {
		t.Fatalf("%d bytes inline", len(x.Stdout))
	}
	if x.LostBytes != 0 {
		t.Fatalf("lost %d", x.LostBytes)
	}
}

func TestClear(t *testing.T) {
	var d DisplayMap
	e := newExecution(t, Options{})
	e.Stream(Stdout, "Hello")
	e.Display(false, value(map[string]any{"text/plain": "one"}), jupyter.Value{}, "d", &d)
	e.Clear(true)
	if x := snapshot(t, e); x.Stdout != "Hello" || len(x.Results) != 1 {
		t.Fatalf("cleared before new output: %+v", x)
	}
	e.Stream(Stdout, "world")
	if x := snapshot(t, e); x.Stdout != "world" || len(x.Results) != 0 {
		t.Fatalf("%+v", x)
	}
	if e.Update(value(map[string]any{"text/plain": "two"}), jupyter.Value{}, "d", &d) {
		t.Fatal("an update brought a cleared result back")
	}
	e.Clear(false)
	if x := snapshot(t, e); x.Stdout != "" {
		t.Fatalf("%+v", x)
	}
}

func TestUpdateReachesBack(t *testing.T) {
	var d DisplayMap
	old := newExecution(t, Options{})
	old.Display(false, value(map[string]any{"text/plain": "one"}), jupyter.Value{}, "d", &d)
	old.Display(false, value(map[string]any{"text/plain": "one"}), jupyter.Value{}, "d", &d)
	old.End(Ending{Status: api.StatusOK})
	e := newExecution(t, Options{})
	if !e.Update(value(map[string]any{"text/plain": "two"}), jupyter.Value{}, "d", &d) {
		t.Fatal("not found")
	}
	e.End(Ending{Status: api.StatusOK})
	for _, r := range snapshot(t, old).Results {
		if string(r.Data["text/plain"]) != `"two"` {
			t.Fatalf("%s", r.Data)
		}
	}
	if got := kinds(readAll(t, e.Events(0))); got != "start update end execution" {
		t.Fatal(got)
	}
	if x := snapshot(t, e); len(x.Results) != 0 {
		t.Fatalf("%+v", x.Results)
	}
}

func TestLimitsOfValues(t *testing.T) {
	var d DisplayMap
	e := newExecution(t, Options{Limits: Limits{Inline: 1000, InlineTable: 5000, InlineResults: 20_000, Results: 40}})
	big := strings.Repeat("é", 20_000)
	e.Display(true, value(map[string]any{
		"text/plain":       big,
		"text/html":        "<b>&</b>",
		"application/json": []string{strings.Repeat("x", 2000)},
		mime.TableType:     map[string]any{"columns": []string{strings.Repeat("x", 2000)}},
		"image/png":        "aGVs\nbG8=\n",
		"image/jpeg":       "?? no base64 ??",
	}), jupyter.Value{}, "", &d)
	x := snapshot(t, e)
	r := x.Results[0]
	if ref := r.Refs["text/plain"]; ref.Bytes != 40_000 {
		t.Fatalf("text/plain: %+v", ref)
	} else if b, _ := os.ReadFile(ref.Path); string(b) != big {
		t.Fatal("text/plain differs")
	}
	if n := len(r.Data["text/plain"]); n < 1000 || n > previewBytes+200 {
		t.Fatalf("a preview of %d bytes", n)
	}
	if got := string(r.Data["text/html"]); got != `"<b>&</b>"` {
		t.Fatal(got)
	}
	if got := string(r.Data["image/png"]); got != `"aGVsbG8="` {
		t.Fatal(got)
	}
	if _, ok := r.Data[mime.TableType]; !ok {
		t.Fatal("the table is not inline")
	}
	if ref := r.Refs["application/json"]; ref.Bytes != 2004 {
		t.Fatalf("json: %+v", ref)
	}
	if x.LostBytes == 0 {
		t.Fatal("the bad base64 is not counted")
	}
	for range 100 {
		e.Display(false, value(map[string]any{"text/html": strings.Repeat("y", 900)}), jupyter.Value{}, "", &d)
	}
	x = snapshot(t, e)
	inline, values, last := 0, 0, 0
	for _, r := range x.Results {
		for _, v := range r.Data {
			inline += len(v)
		}
		last = len(r.Data) + 3*len(r.Refs) // a ref counts as three
		values += last
	}
	if values < 40 || values-last >= 40 || inline > 20_000 {
		t.Fatalf("%d results, %d values, the last %d, %d bytes inline", len(x.Results), values, last, inline)
	}
	if x.LostBytes < 50*900 {
		t.Fatalf("lost bytes %d", x.LostBytes)
	}
}

// What a file could not take, and the Execution does not show either, is lost.
func TestLostOfStreams(t *testing.T) {
	for limit, want := range map[int64]api.Overflow{
		1 << 20: {Bytes: 1000},
		500:     {Bytes: 1000, Dropped: 500},
		20:      {Bytes: 1000, Dropped: 980},
	} {
		st, err := store.Open(t.TempDir(), store.Options{SpoolLimit: limit})
		if err != nil {
			t.Fatal(err)
		}
		e := New(Options{ID: "e", ContextID: "python", Language: "python", Store: st, Limits: Limits{Stream: 100}})
		e.Begin(1, 1, false, nil)
		for range 100 {
			e.Stream(Stdout, "123456789\n")
		}
		e.End(Ending{Status: api.StatusOK})
		x := snapshot(t, e)
		// 50 bytes are shown of the end, and 50 of the beginning, which the file may lack too.
		lost := max(0, want.Dropped-50)
		if limit < 50 {
			lost = 900
		}
		if o := x.Overflow[0]; o.Bytes != want.Bytes || o.Dropped != want.Dropped || x.LostBytes != lost {
			t.Errorf("limit %d: %+v, lost %d, want %d", limit, o, x.LostBytes, lost)
		}
		e.Close()
		st.Close()
	}
}

// What the kernel says of values comes with them, within its bounds.
func TestMetadata(t *testing.T) {
	var d DisplayMap
	e := newExecution(t, Options{Limits: Limits{InlineResults: 40_000}})
	data := value(map[string]any{"text/plain": "one"})
	e.Display(true, data, jupyter.NewValue([]byte(`{"image/png":{"width":10, "x":NaN},"isolated":true}`)), "d", &d)
	r := snapshot(t, e).Results[0]
	if got := string(r.Metadata["image/png"]) + string(r.Metadata["isolated"]); got != `{"width":10, "x":null}true` {
		t.Error(got)
	}
	for _, none := range []jupyter.Value{{}, jupyter.NewValue([]byte("null")), jupyter.NewValue([]byte(" {} "))} {
		e.Display(false, data, none, "", &d)
	}
	if !e.Update(data, value(map[string]any{"b": 1}), "d", &d) {
		t.Error("not found")
	}
	x := snapshot(t, e)
	if got := string(x.Results[0].Metadata["b"]); got != "1" || len(x.Results[0].Metadata) != 1 {
		t.Errorf("updated: %s", x.Results[0].Metadata)
	}
	for _, r := range x.Results[1:] {
		if r.Metadata != nil {
			t.Errorf("of nothing: %s", r.Metadata)
		}
	}
	if x.LostBytes != 0 {
		t.Errorf("lost %d", x.LostBytes)
	}
	e.End(Ending{Status: api.StatusOK})
	var said []string
	for _, ev := range readAll(t, e.Events(0)) {
		if ev.Metadata != nil {
			b, err := json.Marshal(ev.Metadata)
			said = append(said, fmt.Sprint(ev.K, " ", string(b), err))
		}
	}
	if got := strings.Join(said, ", "); got != `result {"image/png":{"width":10,"x":null},"isolated":true}<nil>, update {"b":1}<nil>` {
		t.Error(got)
	}

	e.Display(false, data, value(map[string]any{"big": strings.Repeat("x", maxMetadata)}), "", &d)
	e.Display(false, data, value([]int{1}), "", &d)
	x = snapshot(t, e)
	if lost := int64(maxMetadata + len(`{"big":""}[1]`)); x.LostBytes != lost || x.Results[4].Metadata != nil || x.Results[5].Metadata != nil {
		t.Errorf("lost %d, not %d: %v", x.LostBytes, lost, x.Results[4:])
	}
	large := value(map[string]any{"a": strings.Repeat("x", 15_000)})
	for range 5 {
		e.Display(false, data, large, "", &d)
	}
	about := 0
	for _, r := range snapshot(t, e).Results {
		about += len(r.Metadata["a"])
		if string(r.Data["text/plain"]) != `"one"` {
			t.Errorf("%s", r.Data)
		}
	}
	if about > 40_000 || about < 30_000 {
		t.Errorf("%d bytes of metadata", about)
	}
}

// 20,000 small displays are within the default limits.
func TestManySmallDisplaysAreKept(t *testing.T) {
	var d DisplayMap
	const n = 20_000
	f := newExecution(t, Options{})
	for range n {
		f.Display(false, value(map[string]any{"text/plain": "small"}), jupyter.Value{}, "", &d)
	}
	if x := snapshot(t, f); len(x.Results) != n || x.LostBytes != 0 {
		t.Fatalf("%d of %d results, %d bytes lost", len(x.Results), n, x.LostBytes)
	}
}

func TestNobodyThere(t *testing.T) {
	gone := make(chan *Execution, 1)
	o := Options{InterruptOnDisconnect: true, Grace: 20 * time.Millisecond, Abandoned: func(e *Execution) { gone <- e }}
	e := newExecution(t, o)
	a, b := e.Attach(), e.Attach()
	a(true)
	select {
	case <-gone:
		t.Fatal("a reader was left")
	case <-time.After(100 * time.Millisecond):
	}
	b(true)
	select {
	case got := <-gone:
		if got != e {
			t.Fatal("another")
		}
	case <-time.After(time.Minute):
		t.Fatal("nobody was told")
	}
	f := newExecution(t, o) // one who got an answer keeps it going
	a = f.Attach()
	a(false)
	b = f.Attach()
	b(true)
	select {
	case <-gone:
		t.Fatal("the answered reader's cell was abandoned")
	case <-time.After(100 * time.Millisecond):
	}
}

func TestStdin(t *testing.T) {
	e := newExecution(t, Options{Stdin: &api.Stdin{Answers: []string{"1"}}})
	if a, ok, _ := e.Ask("a? ", false); a != "1" || !ok {
		t.Fatal(a, ok)
	}
	if _, ok, live := e.Ask("b? ", false); ok || live {
		t.Fatal("an answer from nowhere")
	}
	if x := snapshot(t, e); x.Stdout != "a? b? " {
		t.Fatalf("%q", x.Stdout)
	}
	f := newExecution(t, Options{Stdin: &api.Stdin{Live: true}})
	if f.Answered() {
		t.Fatal("nothing was asked")
	}
	if _, ok, live := f.Ask("p", true); ok || !live {
		t.Fatal("not live")
	}
	if !f.Answered() || f.Answered() {
		t.Fatal("one question, one answer")
	}
}

func TestLateOutput(t *testing.T) {
	e := newExecution(t, Options{Limits: Limits{Stream: 100}})
	e.Stream(Stdout, "before\n")
	e.End(Ending{Status: api.StatusOK})
	e.Stream(Stdout, "late\n")
	if x := snapshot(t, e); x.Stdout != "before\nlate\n" {
		t.Fatalf("%q", x.Stdout)
	}
	if got := kinds(readAll(t, e.Events(0))); got != "start stdout end execution" {
		t.Fatal(got)
	}
	for range 100 {
		e.Stream(Stdout, "late\n")
	}
	if x := snapshot(t, e); x.LostBytes == 0 || len(x.Stdout) > 300 {
		t.Fatalf("%d lost, %d bytes", x.LostBytes, len(x.Stdout))
	}
}
