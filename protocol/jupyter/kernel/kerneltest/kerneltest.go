// Package kerneltest has what the tests of kernels of our own need: a cell whose output
// is kept, and the list of variables. Only tests use it.
package kerneltest

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/cellard/cellard/protocol/jupyter/kernel"
)

// Recorder is a kernel.Sink that keeps all. It is safe for concurrent use.
type Recorder struct {
	// Answers are given to the cell's questions, in order; past them a question fails
	// with kernel.ErrStdinNotAllowed.
	Answers []string
	// Slow is how long each message takes, as with a front end that falls behind.
	Slow time.Duration

	mu       sync.Mutex
	messages []Message
	prompts  []string
}

// Message is one that a cell published.
type Message struct {
	Type    string
	Content map[string]any // as JSON has it
}

// Publish keeps a message, as it would go on the wire.
func (r *Recorder) Publish(msgType string, content any) {
	time.Sleep(r.Slow)
	m := Message{Type: msgType}
	b, err := json.Marshal(content)
	if err == nil {
		err = json.Unmarshal(b, &m.Content)
	}
	if err != nil {
		m.Content = map[string]any{"error": err.Error()}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.messages = append(r.messages, m)
}

// Input gives the next answer.
func (r *Recorder) Input(ctx context.Context, prompt string, _ bool) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.prompts = append(r.prompts, prompt)
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if len(r.Answers) == 0 {
		return "", kernel.ErrStdinNotAllowed
	}
	answer := r.Answers[0]
	r.Answers = r.Answers[1:]
	return answer, nil
}

// Messages are those so far.
func (r *Recorder) Messages() []Message {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Message(nil), r.messages...)
}

// Prompts are the questions so far.
func (r *Recorder) Prompts() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.prompts...)
}

// Stream is the text of stdout or stderr so far.
func (r *Recorder) Stream(name string) string {
	text := ""
	for _, m := range r.Messages() {
		if m.Type == "stream" && m.Content["name"] == name {
			s, _ := m.Content["text"].(string)
			text += s
		}
	}
	return text
}

// Shown are the data of the messages of a type (execute_result, display_data,
// update_display_data) so far.
func (r *Recorder) Shown(msgType string) (all []map[string]any) {
	for _, m := range r.Messages() {
		if m.Type == msgType {
			data, _ := m.Content["data"].(map[string]any)
			all = append(all, data)
		}
	}
	return all
}
