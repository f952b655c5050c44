package supervisor

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cellard/cellard/protocol/api"
)

// What a cell's processes write past the protocol is the cell's: all of it, once, and
// no other cell's.
func TestRawOutput(t *testing.T) {
	t.Parallel()
	a := newAgent(t, nil)
	a.ok(a.cell("set x 1"))
	for i := range 20 {
		x := a.cell(fmt.Sprintf("sh echo out %d; echo err %d >&2", i, i))
		a.ok(x)
		if x.Stdout != fmt.Sprintf("out %d\n", i) || x.Stderr != fmt.Sprintf("err %d\n", i) {
			t.Errorf("%d: %s", i, show(x))
		}
	}
	// Far more than pipe and buffer hold, and characters that are cut anywhere.
	x := a.cell("sh i=0; while [ $i -lt 20000 ]; do echo $i ☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃; i=$((i+1)); done")
	a.ok(x)
	var want strings.Builder
	for i := range 20000 {
		fmt.Fprintf(&want, "%d %s\n", i, strings.Repeat("☃", 20))
	}
	text := x.Stdout
	if len(x.Overflow) == 1 {
		b, err := os.ReadFile(x.Overflow[0].Path)
		if err != nil {
			t.Fatal(err)
		}
		text = string(b)
	}
	if text != want.String() {
		t.Errorf("%d bytes arrived of %d, or others", len(text), want.Len())
	}
	// Bytes that are no text.
	if x := a.cell(`sh printf 'a\377b\342\230'`); x.Stdout != "a\uFFFDb\uFFFD" {
		t.Errorf("stdout: %q", x.Stdout)
	}
	// Between cells it is nobody's.
	a.ok(a.cell("sh (sleep 0.2; echo late) &"))
	a.until("it has come", func() bool { return strings.Contains(a.logs.String(), "output between cells") })
	if x := a.cell("print b"); x.Stdout != "b\n" {
		t.Errorf("stdout: %q", x.Stdout)
	}
}

// A child that writes for ever can't keep a cell from its end, nor cost more than a
// bound.
func TestEndlessWriter(t *testing.T) {
	t.Parallel()
	a := newAgent(t, nil)
	a.ok(a.cell("set x 1"))
	x := a.cell(lines("sh yes endless &", "result done"), timeout(0))
	a.ok(x)
	if main1(x) != "done" {
		t.Errorf("its own output is not there: %s", show(x))
	}
	for range 3 {
		x := a.cell("result done")
		if x.Status != api.StatusOK || main1(x) != "done" {
			t.Errorf("a later cell: %s", show(x))
		}
	}
	a.kept()
	if err := a.Delete(t.Context(), "fake"); err != nil {
		t.Error(err)
	}
}

func TestLastWordsAreBounded(t *testing.T) {
	var w lastWords
	for i := range 1000 {
		w.add([]byte(fmt.Sprintf("line %d\n", i)))
	}
	w.add(bytes.Repeat([]byte("x"), 3*lastWordsBytes))
	w.add([]byte("\x1b[31mthe end\x1b[0m\xff\n"))
	s := w.String()
	if len(w.b) > lastWordsBytes || !strings.HasSuffix(s, "xthe end\uFFFD") || strings.Contains(s, "line") {
		t.Errorf("%d bytes: %q", len(w.b), s[max(0, len(s)-40):])
	}
}
