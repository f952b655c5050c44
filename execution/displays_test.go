package execution

import (
	"strings"
	"testing"

	"github.com/cellard/cellard/protocol/jupyter"
)

// A display loop with clear_output must not keep what was cleared: the map of
// display ids outlives it by far.
func TestClearedDisplaysAreFreed(t *testing.T) {
	e := newExecution(t, Options{})
	var d DisplayMap
	big := value(map[string]any{"text/plain": strings.Repeat("x", 10_000)})
	for range 10 {
		e.Display(false, big, jupyter.Value{}, "id", &d)
		e.Clear(false)
	}
	for _, s := range d.byID["id"] {
		if s.r.Data != nil || s.r.Refs != nil {
			t.Fatal("a cleared result is still held by the map of display ids")
		}
	}
	if e.Update(big, jupyter.Value{}, "id", &d) {
		t.Error("a cleared result was updated")
	}
}
