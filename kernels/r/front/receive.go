package front

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/cellard/cellard/protocol/jupyter"
	"github.com/cellard/cellard/protocol/jupyter/kernel"
)

// maxContent is the largest content of a message of R's, in bytes: a file of 64 MiB in
// base64, and what is around it.
const maxContent = 128 << 20

// endOfInput is the answer that R takes for the end of the input.
const endOfInput = "\004"

// receive takes R's messages until there are no more.
func (k *Kernel) receive() {
	defer close(k.over)
	messages, ended := k.p.client.Messages(), k.p.ended
	var late <-chan time.Time
	for {
		select {
		case m, ok := <-messages:
			if !ok {
				return
			}
			k.take(m)
			m.Close()
		case <-ended:
			ended, late = nil, time.After(lastWithin)
		case <-late: // a child of R's holds its sockets open
			return
		}
	}
}

func (k *Kernel) take(m *jupyter.Message) {
	k.p.streams.HandOn() // what was written to the pipes before it comes before it
	if m.Header.MsgType == "taken_request" {
		k.answerTaken(m)
		return
	}
	k.mu.Lock()
	r := k.cur
	k.mu.Unlock()
	if r == nil || m.Parent.MsgID != r.Header.MsgID || r.idle && r.replied {
		return // an answer to a nudge, or one that came too late
	}
	switch m.Channel {
	case jupyter.IOPub:
		k.publish(r, m)
	case jupyter.Shell:
		if strings.HasSuffix(m.Header.MsgType, "_reply") {
			r.replied = true
			r.reply, _ = m.Content.Raw(k.most) // of what can't be read Unmarshal tells
		}
	case jupyter.Stdin:
		if m.Header.MsgType == "input_request" && r.cell != nil {
			k.question(r, m)
		}
	}
	if r.idle && r.replied {
		close(r.done)
	}
}

// answerTaken tells R that all its messages up to this one were taken, and what was written
// to the pipes before it. What it writes there now comes after them.
func (k *Kernel) answerTaken(m *jupyter.Message) {
	var c struct {
		Number uint32 `json:"number"`
	}
	if m.Content.Decode(&c, k.most) == nil {
		_, _ = k.p.taken.WriteAt(binary.LittleEndian.AppendUint32(nil, c.Number), 0) // it waits for a while without
	}
}

// publish takes a message on iopub, and hands on what the cell shows. Its error comes with
// the reply, too.
func (k *Kernel) publish(r *request, m *jupyter.Message) {
	var err error
	switch m.Header.MsgType {
	case "status":
		var c jupyter.Status
		if m.Content.Decode(&c, k.most) != nil {
			return
		}
		r.idle = r.idle || c.ExecutionState == jupyter.StateIdle
		if !r.begun && c.ExecutionState == jupyter.StateBusy {
			r.begun = true
			close(r.busy)
		}
	case "clear_output":
		var c jupyter.ClearOutput
		if err = m.Content.Decode(&c, k.most); err == nil && r.cell != nil {
			r.cell.Clear(c.Wait)
		}
	case "execute_result", "display_data", "update_display_data":
		var c struct {
			Data      map[string]json.RawMessage `json:"data"`
			Metadata  map[string]json.RawMessage `json:"metadata"`
			Transient jupyter.Transient          `json:"transient"`
		}
		if err = m.Content.Decode(&c, k.most); err == nil && r.cell != nil {
			r.show(m.Header.MsgType, asIs(c.Data), asIs(c.Metadata), c.Transient.DisplayID)
		}
	}
	if err != nil && r.cell != nil {
		r.cell.Stderr(fmt.Sprintf("an output of %d bytes was lost: %v\n", m.Content.Size(), err))
	}
}

func (r *request) show(msgType string, data kernel.Bundle, metadata map[string]any, id string) {
	switch msgType {
	case "execute_result":
		r.cell.Result(data, metadata)
	case "display_data":
		r.cell.Display(data, metadata, id)
	default:
		r.cell.Update(data, metadata, id)
	}
}

// asIs keeps JSON as R has written it: its numbers would lose digits.
func asIs(values map[string]json.RawMessage) map[string]any {
	all := make(map[string]any, len(values))
	for name, value := range values {
		all[name] = value
	}
	return all
}

// question asks the client what the cell asks. Messages come meanwhile.
func (k *Kernel) question(r *request, m *jupyter.Message) {
	var c jupyter.InputRequest
	_ = m.Content.Decode(&c, k.most) // what can't be read asks nothing
	asked := m.Header
	k.asking.Add(1)
	go func() {
		defer k.asking.Done()
		value, err := r.cell.Input(r.ctx, c.Prompt, c.Password)
		if r.ctx.Err() != nil {
			return // the cell is over, or about to be
		}
		if err != nil {
			r.cell.Stderr(err.Error() + "\n")
			value = endOfInput
		}
		reply := k.p.client.NewMessage("input_reply", jupyter.InputReply{Value: value})
		reply.Parent = &asked
		_ = k.p.client.Send(jupyter.Stdin, reply) // an error is the channel's end, and told by over
	}()
}
