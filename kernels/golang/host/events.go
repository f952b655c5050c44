package host

import (
	"time"

	"github.com/cellard/cellard/kernels/golang/live"
)

// Event is what a cell puts out past its stdout and stderr, for the kernel.
type Event struct {
	Kind string `json:"kind"` // stream, result, display, file, input; settle only asks
	Cell int    `json:"cell"`
	// Name and Text are of a stream.
	Name string `json:"name,omitempty"`
	Text string `json:"text,omitempty"`
	// Data is a bundle by MIME type, Path a file to show.
	Data map[string]any `json:"data,omitempty"`
	Path string         `json:"path,omitempty"`
	// Ask is a number by which the kernel answers that it has taken the event; 0 asks for
	// no answer.
	Ask int `json:"ask,omitempty"`
}

// takenWithin is how long a cell waits for a front end that takes nothing.
const takenWithin = 10 * time.Second

// settled returns when what was sent was taken: what the cell writes to its stdout then
// goes another way, and comes after it.
func settled(taken <-chan struct{}) {
	end := time.NewTimer(takenWithin)
	defer end.Stop()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-taken:
			return
		case <-end.C:
			return
		case <-look.C:
			live.Check()
		}
	}
}

// late is a stream's text of a cell that is over. A stopped cell's is dropped: whoever
// stopped it wants no more of it.
func (c *Cell) late(send func(Event), name, text string) {
	if !c.stopped.Load() {
		send(Event{Kind: "stream", Cell: c.Number, Name: name, Text: text})
	}
}
