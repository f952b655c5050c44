package host

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

// late is a stream's text of a cell that is over. A stopped cell's is dropped: whoever
// stopped it wants no more of it.
func (c *Cell) late(send func(Event), name, text string) {
	if !c.stopped.Load() {
		send(Event{Kind: "stream", Cell: c.Number, Name: name, Text: text})
	}
}
