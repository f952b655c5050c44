package live

// Event is what a cell puts out past its stdout and stderr, for the kernel.
type Event struct {
	Kind string `json:"kind"` // stream, result, display, file, input
	Cell int    `json:"cell"`
	// Name and Text are of a stream.
	Name string `json:"name,omitempty"`
	Text string `json:"text,omitempty"`
	// Data is a bundle by MIME type, Path a file to show.
	Data map[string]any `json:"data,omitempty"`
	Path string         `json:"path,omitempty"`
}

// Send hands an event to the kernel; Ask asks it for a line of input. The worker sets
// them before the first cell runs.
var (
	Send = func(Event) {}
	Ask  = func(*Cell) (string, error) { return "", nil }
)

// late is a stream's text of a cell that is over. A stopped cell's is dropped: whoever
// stopped it wants no more of it.
func (c *Cell) late(name, text string) {
	if !c.stopped.Load() {
		Send(Event{Kind: "stream", Cell: c.Number, Name: name, Text: text})
	}
}
