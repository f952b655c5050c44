package golang_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cellard/cellard/protocol/jupyter/kernel"
	"github.com/cellard/cellard/protocol/jupyter/kernel/kerneltest"
)

// TestOrder has that what a cell shows, prints and has children print comes in its order,
// also where the front end is slower than the cell.
func TestOrder(t *testing.T) {
	s := start(t)
	s.is(`import ("fmt"; "os"; "os/exec"; "sync"; "log")
log.SetFlags(0)
func shown(way string, i int) map[string]any { return map[string]any{"text/html": fmt.Sprint(way, " ", i)} }
func child(way string, i int) { c := exec.Command("echo", way, fmt.Sprint(i)); c.Stdout = os.Stdout; c.Run() }
func printed(way string, i int) { fmt.Println(way, i) }`, "", "")
	for name, turn := range map[string]string{
		"display, text":   `display(shown("a", i)); printed("b", i)`,
		"text, display":   `printed("a", i); display(shown("b", i))`,
		"display, stderr": `display(shown("a", i)); fmt.Fprintln(os.Stderr, "b", i)`,
		"display, raw":    `display(shown("a", i)); os.Stdout.WriteString(fmt.Sprintln("b", i))`,
		"display, child":  `display(shown("a", i)); child("b", i)`,
		"child, display":  `child("a", i); display(shown("b", i))`,
		"text, child":     `printed("a", i); child("b", i)`,
		"stderr, stdout":  `fmt.Fprintln(os.Stderr, "a", i); printed("b", i)`,
		"stdout, log":     `printed("a", i); log.Print("b ", i)`,
		"goroutines":      `var w sync.WaitGroup; w.Add(1); go func() { defer w.Done(); display(shown("a", i)) }(); w.Wait(); printed("b", i)`,
	} {
		t.Run(name, func(t *testing.T) {
			for _, slow := range []time.Duration{0, 5 * time.Millisecond} {
				r := s.runCell(t.Context(), fmt.Sprintf("for i := range %d { %s }", kerneltest.Turns, turn), func(_ *kernel.Cell, r *kerneltest.Recorder) { r.Slow = slow })
				if r.err != nil {
					t.Fatal(r.err)
				}
				r.Turned(t)
			}
		})
	}
	// The value of the cell is shown before what it has deferred is run.
	for range kerneltest.Turns {
		r := s.run(`defer fmt.Println("later"); defer printed("deferred", 1)` + "\n" + `map[string]any{"text/html": "value"}`)
		if m := r.Messages(); r.err != nil || len(m) < 2 || m[0].Type != "execute_result" || r.Stream("stdout") != "deferred 1\nlater\n" {
			t.Fatalf("%v %+v", r.err, m)
		}
	}
}

// asked is a front end that answers with what has been printed.
type asked struct{ *kerneltest.Recorder }

func (a asked) Input(context.Context, string, bool) (string, error) { return a.Stream("stdout"), nil }

// TestPromptIsThere has that what a cell prints before it asks is there when it asks.
func TestPromptIsThere(t *testing.T) {
	s := start(t)
	s.is("import (\"fmt\"; \"os\")\nvar a string", "", "")
	for _, code := range []string{`fmt.Print("name?"); fmt.Scanln(&a)`, `os.Stdout.WriteString("name?"); fmt.Scanln(&a)`} {
		for range 4 {
			c := kernel.NewCell(code, asked{&kerneltest.Recorder{}})
			c.AllowStdin = true
			if err := s.k.Execute(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			s.is("a", "", "name?")
		}
	}
}

// TestStopsWhileSettling has that a cell whose time is up while the front end takes nothing
// does not go on, and costs no state.
func TestStopsWhileSettling(t *testing.T) {
	s := start(t)
	s.is("kept, went := 7, 0", "", "")
	for _, code := range []string{`display(1); went++`, "import (\"fmt\"; \"os\")\nfmt.Fprint(os.Stderr, 1); fmt.Print(2); went++"} {
		h := kerneltest.NewHeld()
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		over := make(chan error, 1)
		go func() { over <- s.k.Execute(ctx, kernel.NewCell(code, h)) }()
		<-h.Asked
		cancel(kernel.ErrInterrupted)
		time.Sleep(100 * time.Millisecond) // for the worker to hear of it
		h.LetGo()
		if err := <-over; !errors.Is(err, kernel.ErrInterrupted) {
			t.Errorf("%s: %v", code, err)
		}
		s.is("10*kept + went", "", "70")
	}
}
