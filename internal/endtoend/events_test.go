package endtoend

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cellard/cellard/internal/pythons"
	"github.com/cellard/cellard/protocol/api"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// everything is a cell that makes an event of each kind, and one that asks.
const everything = `
import sys
from IPython.display import display, clear_output
print("gone"); clear_output()
print("one"); print("two", file=sys.stderr); print("three")
h = display("shown", display_id=True)
h.update("changed")
print("prompted:", input("who? "))
sys.stdout.flush()
1/0`

func TestEventsComeInOrder(t *testing.T) {
	for _, p := range pythons.All(t) {
		t.Run(p.Name, func(t *testing.T) {
			a := start(t, config{python: p.Path})
			s := a.stream(object{"code": everything, "stdin": "live"})
			ask := s.until(isKind(api.KindInput))
			if ask.Prompt != "who? " || ask.Password {
				t.Errorf("input %+v", ask)
			}
			a.get("POST", "/v1/executions/"+s.res.Header.Get("Cellard-Execution")+":input", object{"value": "me"}, &struct{}{})
			x := s.rest()
			if got, want := s.kinds(), "start stdout clear stdout stderr stdout result update stdout input stdout error end execution"; got != want {
				t.Errorf("events\n%s, wanted\n%s", got, want)
			}
			if x.Status != api.StatusError || x.Error == nil || x.Error.Name != "ZeroDivisionError" || x.Stderr != "two\n" ||
				x.Stdout != "one\nthree\nwho? prompted: me\n" || len(x.Results) != 1 || plain(x.Results[0]) != "'changed'" {
				t.Errorf("%s", show(x))
			}
			first, end := s.events[0], s.events[len(s.events)-2]
			if first.Seq != 1 || first.N != x.ExecutionCount || end.Status != x.Status || end.Ms != x.DurationMs {
				t.Errorf("%+v … %+v for %s", first, end, show(x))
			}
			// What a reader that came at any moment sees is the rest of the same bytes.
			lines := bytes.SplitAfter(s.raw.Bytes(), []byte("\n"))
			for after := range s.events {
				again := a.attach(x.ID, int64(after))
				again.rest()
				if !bytes.Equal(again.raw.Bytes(), bytes.Join(lines[after:], nil)) {
					t.Errorf("after %d:\n%s\nwanted\n%s", after, &again.raw, bytes.Join(lines[after:], nil))
				}
			}
			// Past the end there is still a last line.
			if late := a.attach(x.ID, int64(len(s.events))).rest(); show(late) != show(x) {
				t.Errorf("past the end: %s", show(late))
			}
			if kept := a.execution(x.ID); show(kept) != show(x) {
				t.Errorf("asked for again: %s, wanted %s", show(kept), show(x))
			}
		})
	}
}

// A connection that breaks costs nothing: who attaches again has each byte once.
func TestAttachWhileItRuns(t *testing.T) {
	a := start(t, config{})
	const code = `
import time
for i in range(300):
    print("line", i, flush=True)
    time.sleep(0.002)`
	whole := a.stream(object{"code": code, "interruptOnDisconnect": false})
	id := whole.res.Header.Get("Cellard-Execution")
	var pieces bytes.Buffer
	var after int64
	cuts := 0
	for {
		s := a.attach(id, after)
		over := false
		for range 1 + cuts%7 {
			ev, err := s.next()
			if err != nil {
				t.Fatal(err)
			}
			after = ev.Seq
			if over = ev.K == api.KindExecution; over {
				break
			}
		}
		pieces.Write(s.raw.Bytes())
		s.close()
		if over {
			break
		}
		cuts++
	}
	x := whole.rest()
	if !bytes.Equal(pieces.Bytes(), whole.raw.Bytes()) {
		t.Errorf("pieced together from %d connections:\n%s\nwanted\n%s", cuts, &pieces, &whole.raw)
	}
	if x.Status != api.StatusOK || strings.Count(x.Stdout, "\n") != 300 || x.Stdout != whole.stdout() {
		t.Errorf("%s", show(x))
	}
	if cuts < 3 {
		t.Errorf("only %d cuts", cuts)
	}
}

// What is behind the log's bounds is said, and the Execution is whole all the same.
func TestALogPastItsBoundsHasAGap(t *testing.T) {
	a := start(t, config{})
	x := a.run(object{"code": "for i in range(2400): print('x' * 40000)"})
	if x.Status != api.StatusOK || len(x.Overflow) != 1 || x.Overflow[0].Bytes != 2400*40001 || x.LostBytes != 0 {
		t.Errorf("%s", show(x.Overflow))
	}
	s := a.attach(x.ID, 0)
	first, err := s.next()
	if err != nil || first.K != api.KindGap || first.Missed != first.Seq || first.Seq == 0 {
		t.Fatalf("%+v, %v", first, err)
	}
	b, err := io.ReadAll(s.lines)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSuffix(b, []byte("\n")), []byte("\n"))
	var last api.Event
	if err := json.Unmarshal(lines[len(lines)-1], &last); err != nil || last.Execution == nil || last.Execution.Stdout != x.Stdout || last.Seq != first.Seq+int64(len(lines)) {
		t.Errorf("%d lines after %d, the last %s, %v", len(lines), first.Seq, show(last), err)
	}
}

// A reader that takes nothing, or next to nothing, holds up nobody but itself.
func TestStalledReaders(t *testing.T) {
	a := start(t, config{})
	a.create("flood")
	flood := a.stream(object{"context": "flood", "code": "for i in range(200): print('y' * 40000)\n'done'", "timeoutMs": 0})
	if _, err := flood.next(); err != nil {
		t.Fatal(err)
	}
	// No more is read of it for now. The cell ends, its context runs the next one, and
	// so do all others.
	x := a.over(flood.res.Header.Get("Cellard-Execution"))
	if x.Status != api.StatusOK {
		t.Errorf("%s", show(x.Error))
	}
	if got := a.cell("flood", "6*7"); got != "42" {
		t.Error(got)
	}
	if got := a.cell("python", "6*7"); got != "42" {
		t.Error(got)
	}
	if last := flood.rest(); last.Stdout != x.Stdout || flood.stdout() != strings.Repeat(strings.Repeat("y", 40000)+"\n", 200) {
		t.Error("the stalled reader did not get all")
	}
}

func TestStdin(t *testing.T) {
	a := start(t, config{})
	x := a.run(object{"code": "import getpass\n[input('a'), getpass.getpass('b'), input()]", "stdin": []string{"1", "zwei ü", ""}})
	if x.Status != api.StatusOK || len(x.Results) != 1 || plain(x.Results[0]) != "['1', 'zwei ü', '']" || x.Stdout != "ab" {
		t.Errorf("%s", show(x))
	}
	x = a.run(object{"code": "got = input(); input()", "stdin": []string{"only"}})
	if x.Status != api.StatusError || x.Error == nil || !strings.Contains(x.Error.Value, "no answer is left") || x.State != api.StateKept {
		t.Errorf("%s", show(x))
	}
	x = a.run(object{"code": "print('hello')\ninput('name? ')"})
	if x.Status != api.StatusError || x.Error == nil || x.Error.Name != "StdinNotImplementedError" || !strings.Contains(x.Error.Value, `send them in "stdin"`) ||
		x.Stdout != "hello\nname? " || x.State != api.StateKept {
		t.Errorf("%s", show(x))
	}
	if got := a.cell("python", "got"); got != "'only'" {
		t.Error(got)
	}
	// The wait for an answer counts towards the deadline.
	x = a.run(object{"code": "input('?')", "stdin": "live", "timeoutMs": 500})
	if x.Status != api.StatusTimeout || x.State != api.StateKept {
		t.Errorf("%s", show(x))
	}
	a.refused(409, api.CodeConflict, "POST", "/v1/executions/"+x.ID+":input", object{"value": "late"})
	// An interrupt ends the wait.
	s := a.stream(object{"code": "input('?')", "stdin": "live"})
	s.until(isKind(api.KindInput))
	var did struct{ Interrupted bool }
	a.get("POST", "/v1/executions/"+s.res.Header.Get("Cellard-Execution")+":interrupt", nil, &did)
	if x := s.rest(); !did.Interrupted || x.Status != api.StatusInterrupted || x.State != api.StateKept {
		t.Errorf("%v %s", did, show(x))
	}
	if got := a.cell("python", "got"); got != "'only'" {
		t.Error(got)
	}
}

// A prompt comes on another channel than the output before it, and stays behind it.
func TestPromptsStayBehindOutput(t *testing.T) {
	a := start(t, config{})
	const n = 300
	answers := make([]string, n)
	for range 3 {
		x := a.run(object{"code": fmt.Sprintf("for i in range(%d):\n  print('<', end='')\n  input('>')", n), "stdin": answers})
		if x.Stdout != strings.Repeat("<>", n) {
			t.Errorf("%s", show(x))
		}
	}
}

// A silent cell's stream has pings, which have no number of their own.
func TestPing(t *testing.T) {
	a := start(t, config{args: []string{"--ping", "100ms"}})
	s := a.stream(object{"code": "import time; time.sleep(2); print('x')"})
	s.rest()
	pings := 0
	for i, ev := range s.events {
		if ev.K == api.KindPing {
			pings++
			if i > 0 && ev.Seq != s.events[i-1].Seq {
				t.Errorf("a ping has seq %d after %d", ev.Seq, s.events[i-1].Seq)
			}
		}
	}
	if pings == 0 {
		t.Error("no ping")
	}
}

// A display that is updated by a later cell changes in the Execution of the first.
func TestUpdateReachesBack(t *testing.T) {
	a := start(t, config{})
	first := a.run(object{"code": "h = display({'text/plain': 'old'}, raw=True, display_id='it')"})
	s := a.stream(object{"code": "h.update({'text/plain': 'new'}, raw=True)"})
	s.rest()
	i := slices.IndexFunc(s.events, isKind(api.KindUpdate))
	if i < 0 || s.events[i].ID != first.ID || s.events[i].DisplayID != "it" {
		t.Errorf("%s", &s.raw)
	}
	if x := a.execution(first.ID); len(x.Results) != 1 || plain(x.Results[0]) != "new" {
		t.Errorf("%s", show(x))
	}
}

// Each line of a stream is one JSON object with the fields of the contract.
func TestEventFields(t *testing.T) {
	a := start(t, config{})
	s := a.stream(object{"code": "import sys\nprint(1)\nprint(2, file=sys.stderr)\ndisplay(3)\n4"})
	s.rest()
	want := map[string]string{"start": "id k n seq", "stdout": "id k seq text", "stderr": "id k seq text",
		"result": "data id k main refs seq", "end": "id k ms seq status", "execution": "execution k seq"}
	for line := range bytes.Lines(s.raw.Bytes()) {
		var m map[string]any
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatal(err)
		}
		var keys []string
		for k := range m {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		if k := fmt.Sprint(m["k"]); strings.Join(keys, " ") != want[k] {
			t.Errorf("%s has %s, wanted %s", k, keys, want[k])
		}
	}
}

// What is written after a clear_output or a display is behind it, however close.
func TestOutputStaysBehindDisplays(t *testing.T) {
	for _, p := range pythons.All(t) {
		t.Run(p.Name, func(t *testing.T) {
			a := start(t, config{python: p.Path})
			const n = 300
			x := a.run(object{"code": fmt.Sprintf("from IPython.display import clear_output\nfor i in range(%d):\n  print('gone', i)\n  clear_output()\n  print('kept', i)", n)})
			if want := fmt.Sprintf("kept %d\n", n-1); x.Stdout != want {
				t.Errorf("stdout %.200q, wanted %q", x.Stdout, want)
			}
			s := a.stream(object{"code": fmt.Sprintf("from IPython.display import display\nfor i in range(%d):\n  print('<', i)\n  display({'text/plain': str(i)}, raw=True)", n)})
			s.rest()
			before, shown := "", 0
			for _, ev := range s.events {
				switch ev.K {
				case api.KindStdout:
					before += ev.Text
				case api.KindResult:
					var text string
					_ = json.Unmarshal(ev.Data["text/plain"], &text)
					if text != strconv.Itoa(shown) || before != "< "+text+"\n" {
						t.Fatalf("display %d is %q, with %q before it", shown, text, before)
					}
					before, shown = "", shown+1
				}
			}
			if shown != n || before != "" {
				t.Errorf("%d displays, and %q behind them", shown, before)
			}
		})
	}
}
