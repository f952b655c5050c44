package bash

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cellard/cellard/protocol/jupyter/kernel"
	"github.com/cellard/cellard/protocol/jupyter/kernel/kerneltest"
)

// Each cell has its own output, also that of what outlives it.
func TestLateOutput(t *testing.T) {
	s := start(t)
	first := s.run("(sleep 0.3; echo late; echo later >&2) & echo first")
	s.ok("sleep 0.6; echo second", "second\n")
	if first.Stream("stdout") != "first\nlate\n" || first.Stream("stderr") != "later\n" {
		t.Errorf("the first cell: %v", first)
	}
	log := t.TempDir() + "/log"
	s.ok("exec >"+log, "")
	s.ok("echo into-file", "")
	s.ok("exec 1>&2", "")
	if b, _ := os.ReadFile(log); string(b) != "into-file\n" {
		t.Errorf("the file has %q", b)
	}
	if d := s.run("echo on-stderr"); d.Stream("stderr") != "on-stderr\n" {
		t.Errorf("stdout on stderr: %v", d)
	}
	for i := range 20 {
		d := s.run(fmt.Sprintf("echo out %d >&2; seq 1000 | tail -1 >&2", i))
		if d.Stream("stderr") != fmt.Sprintf("out %d\n1000\n", i) {
			t.Errorf("%v", d)
		}
	}
}

// What a cell puts out in several ways comes in its order, also where the front end is
// slower than the cell.
func TestOrder(t *testing.T) {
	s := start(t)
	s.ok("shown() { echo -n $1 $2 | display - text/html; }", "")
	for name, turn := range map[string]string{
		"display, text":   "shown a $i; echo b $i",
		"text, display":   "echo a $i; shown b $i",
		"display, stderr": "shown a $i; echo b $i >&2",
		"display, child":  "shown a $i; /bin/echo b $i",
		"child, display":  "/bin/echo a $i; shown b $i",
	} {
		t.Run(name, func(t *testing.T) {
			for _, slow := range []time.Duration{0, 5 * time.Millisecond} {
				r := &kerneltest.Recorder{Slow: slow}
				if err := s.k.Execute(t.Context(), kernel.NewCell(fmt.Sprintf("for ((i = 0; i < %d; i++)); do %s; done", kerneltest.Turns, turn), r)); err != nil {
					t.Fatal(err)
				}
				r.Turned(t)
			}
		})
	}
	// Of stdout and stderr comes first what was written first.
	for range kerneltest.Turns {
		for code, want := range map[string]string{"echo a; echo b >&2": "stdout stderr", "echo a >&2; echo b": "stderr stdout"} {
			names := []string{}
			for _, m := range s.run(code).Messages() {
				names = append(names, fmt.Sprint(m.Content["name"]))
			}
			if got := strings.Join(names, " "); got != want {
				t.Errorf("%s: %s", code, got)
			}
		}
	}
}

func TestDisplay(t *testing.T) {
	s := start(t)
	dir := t.TempDir()
	d := s.run("cd " + dir + "; echo before; printf 'a,b\\n1,2\\n' > t.csv; display t.csv; echo after; rm t.csv; printf '<b>x</b>' | display - text/html; display /etc/hostname text/plain")
	shown := d.Shown("display_data")
	if d.err != nil || len(shown) != 3 || shown[0]["text/csv"] != "a,b\n1,2\n" || shown[0]["text/plain"] != "t.csv" || shown[1]["text/html"] != "<b>x</b>" {
		t.Fatalf("%v", d)
	}
	var order []string
	for _, m := range d.Messages() {
		order = append(order, m.Type)
	}
	if got := strings.Join(order, " "); !strings.HasPrefix(got, "stream display_data stream display_data") {
		t.Errorf("order %s", got)
	}
	if d = s.fails("ExitStatus", "1", "display nosuch.png"); d.Stream("stderr") != "display: nosuch.png: no such file or directory\n" {
		t.Errorf("%v", d)
	}
	s.fails("ExitStatus", "1", "mkfifo p.png; display p.png")
	s.fails("ExitStatus", "2", "display")
	s.stopped("Interrupted", "sleep 300 | display - text/html", "")
	s.ok("echo '{\"a\": 1}' > x.json; (display x.json)", "")
	for range 50 {
		if d := s.run("echo x | display - text/html"); d.err != nil || len(d.Shown("display_data")) != 1 {
			t.Errorf("%v", d)
		}
	}
}

// Much output, large code, and many cells.
func TestLarge(t *testing.T) {
	s := start(t)
	d := s.run("seq 300000")
	if out := d.Stream("stdout"); d.err != nil || !strings.HasSuffix(out, "\n299999\n300000\n") || len(out) != 1988895 {
		t.Errorf("%d bytes, %v", len(out), d.err)
	}
	s.ok("x='"+strings.Repeat("a", 3<<20)+"'; echo ${#x}", "3145728\n")
	for i := range 200 {
		s.ok(fmt.Sprintf("n=%d; echo $n", i), fmt.Sprintf("%d\n", i))
	}
}
