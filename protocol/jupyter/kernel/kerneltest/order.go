package kerneltest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Turns are how often something is put out in each of two ways, by the cells that Turned
// looks at.
const Turns = 20

// Turned fails the test if the lines of "a 0", "b 0", "a 1", … did not come in this order,
// whatever way each came: as stdout, stderr or shown as text/html.
func (r *Recorder) Turned(t testing.TB) {
	t.Helper()
	var want []string
	for i := range Turns {
		want = append(want, fmt.Sprint("a ", i), fmt.Sprint("b ", i))
	}
	if got := r.lines(); !slices.Equal(got, want) {
		t.Errorf("the order is %q", got)
	}
}

// Held is a Recorder that takes nothing before it is let go, like a front end that hangs.
type Held struct {
	Recorder
	// Asked is closed when the first message is there.
	Asked chan struct{}
	asked sync.Once
	gone  chan struct{}
}

// NewHeld makes a Held.
func NewHeld() *Held { return &Held{Asked: make(chan struct{}), gone: make(chan struct{})} }

// LetGo has it take messages.
func (h *Held) LetGo() { close(h.gone) }

// Publish waits until it may.
func (h *Held) Publish(msgType string, content any) {
	h.asked.Do(func() { close(h.Asked) })
	<-h.gone
	h.Recorder.Publish(msgType, content)
}

// lines are those put out so far, in their order.
func (r *Recorder) lines() (lines []string) {
	var way any // that the last text came
	open := ""  // the beginning of a line
	end := func() {
		if open != "" {
			lines = append(lines, open)
		}
		open = ""
	}
	for _, m := range r.Messages() {
		if m.Type == "stream" {
			if way != m.Content["name"] {
				end()
			}
			way = m.Content["name"]
			text, _ := m.Content["text"].(string)
			parts := strings.Split(open+text, "\n")
			lines, open = append(lines, parts[:len(parts)-1]...), parts[len(parts)-1]
		} else if data, ok := m.Content["data"].(map[string]any); ok {
			end()
			way = nil
			html, _ := data["text/html"].(string)
			lines = append(lines, strings.TrimSpace(html))
		}
	}
	end()
	return lines
}
