package golang_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cellard/cellard/kernels/golang/wire"
)

// differCells is how many cells TestDirectDiffers runs; CELLARD_GO_DIFFER sets another
// number, or N:SEED.
const differCells = 400

// differBatch is how many cells are compiled at once.
const differBatch = 80

// compiled is the text by which the compiler's own way gives what the cell does: it is
// one of many in a cell.
func (c differCell) compiled(n int) string {
	last := c.last
	switch c.show {
	case "Show":
		last = "display(" + last + ")"
	case "ShowAll":
		last = "displayAll(" + last + ")"
	case "ShowError":
		last = "if err := " + last + "; err != nil { display(err) }"
	}
	return fmt.Sprintf("func() {\ndisplay(map[string]string{\"x/mark\": \"%d\"})\nfmt.Print(\"\\x01\")\ndefer caught()\n%s\n%s\n}()\n", n, c.before, last)
}

// differHelp declares what compiled calls.
const differHelp = `
func caught() { if r := recover(); r != nil { if e, ok := r.(error); ok { r = e.Error() }; display(map[string]string{"x/panic": fmt.Sprint(r)}) } }
func displayAll(v ...any) {
	if n := len(v); n > 1 && v[n-1] == nil { v = v[:n-1] }
	for _, one := range v { display(one) }
}
`

// TestDirectDiffers runs random cells that are evaluated without the compiler, and holds
// what they show, print, fail with and leave behind against what the compiler makes of
// them.
func TestDirectDiffers(t *testing.T) {
	n, seed := differCells, uint64(1)
	if v := os.Getenv("CELLARD_GO_DIFFER"); v != "" {
		count, from, seeded := strings.Cut(v, ":")
		var err error
		if n, err = strconv.Atoi(count); err != nil {
			t.Fatal(err)
		}
		seed = rand.Uint64()
		if seeded {
			if seed, err = strconv.ParseUint(from, 10, 64); err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("seed %d", seed)
	}
	setup := []string{differSetup, differHelp}
	r := rewriter(t, setup...)
	direct, whole := start(t), start(t)
	for _, code := range setup {
		direct.is(code, "", "")
		whole.is(code, "", "")
	}
	d := differ{rand.New(rand.NewPCG(seed, 0))}
	for done := 0; done < n && !t.Failed(); {
		var cells []differCell
		for len(cells) < min(differBatch, n-done) {
			c := d.cell()
			program, err := r.Direct("In[1]", c.code())
			if err != nil || program == nil || waits(program) {
				continue
			}
			c.show = program.Body[len(program.Body)-1].Show
			if _, err := r.Direct("In[1]", c.compiled(0)); err != nil {
				continue // a constant that no int holds
			}
			cells = append(cells, c)
		}
		done += len(cells)
		differs(t, direct, whole, cells)
	}
}

// waits tells a program that may wait for ever: a receive of a channel that is empty or
// nil does, in both ways.
func waits(p *wire.Program) bool {
	found := false
	var look func(n *wire.Node)
	look = func(n *wire.Node) {
		found = found || n.Op == wire.Unary && n.Name == "<-"
		for _, x := range n.X {
			look(x)
		}
	}
	for _, s := range p.Body {
		look(s.Value)
		if s.To != nil {
			look(s.To)
		}
	}
	return found
}

// differOutcome is what a cell shows, prints and fails with.
type differOutcome struct{ shown, stdout, panicked string }

func differs(t *testing.T, direct, whole *session, cells []differCell) {
	t.Helper()
	var batch strings.Builder
	for i, c := range cells {
		batch.WriteString(c.compiled(i))
	}
	w := whole.run(batch.String())
	if w.err != nil {
		t.Fatalf("the batch: %v\n%s", w.err.Value, batch.String())
	}
	wants := make([]differOutcome, len(cells))
	for i, text := range strings.Split(w.Stream("stdout"), "\x01")[1:] {
		wants[i].stdout = text
	}
	at := -1
	for _, data := range w.Shown("display_data") {
		if data["x/mark"] != nil {
			at++
			continue
		}
		if p, ok := data["x/panic"]; ok {
			wants[at].panicked = fmt.Sprint(p)
			continue
		}
		if wants[at].shown != "" {
			wants[at].shown += "\n"
		}
		wants[at].shown += fmt.Sprint(data["text/plain"])
	}
	for i, c := range cells {
		r := direct.run(c.code())
		got := differOutcome{shown: r.text(), stdout: r.Stream("stdout")}
		if r.err != nil {
			got.panicked = r.err.Value
		}
		if !same(got, wants[i]) {
			t.Errorf("%s\n  direct   %+q\n  compiled %+q", c.code(), got, wants[i])
		}
	}
	a, b := direct.run("dump()").Stream("stdout"), whole.run("dump()").Stream("stdout")
	if !same(differOutcome{stdout: a}, differOutcome{stdout: b}) {
		var all []string
		for _, c := range cells {
			all = append(all, c.code())
		}
		t.Errorf("what is left differs:\n%s\n%s\nof\n%s", a, b, strings.Join(all, "\n"))
	}
}

// address is a pointer as it is printed.
var address = regexp.MustCompile(`0x[0-9a-f]{6,}|\b[0-9]{11,15}\b|c[0-9a-f]{9}`)

// same compares but for addresses, and but for which of two operands that fail by
// themselves, without a call, is come to first: Go leaves that open.
func same(a, b differOutcome) bool {
	if own := "runtime error: "; strings.HasPrefix(a.panicked, own) && strings.HasPrefix(b.panicked, own) {
		a.panicked, b.panicked = own, own
	}
	return address.ReplaceAllString(fmt.Sprintf("%q", a), "0x") == address.ReplaceAllString(fmt.Sprintf("%q", b), "0x")
}
