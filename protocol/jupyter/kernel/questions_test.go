package kernel_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cellard/cellard/protocol/api"
	"github.com/cellard/cellard/protocol/jupyter"
)

// A language that can list variables says so, and its list comes in order and within
// bounds; one that can't says nothing.
func TestVariables(t *testing.T) {
	lang := &listing{toy: &toy{}}
	s := serveLanguage(t, "ipc", lang.toy, lang)
	ask := func(s *serving, msgType string) map[string]any {
		return s.collect(s.send(jupyter.Shell, msgType, struct{}{}, nil))[0].reply
	}
	if info := ask(s, "kernel_info_request"); fmt.Sprint(info["supported_features"]) != "[cellard variables]" {
		t.Errorf("%v", info)
	}
	for i := range api.MaxVariables + 1 {
		lang.list = append(lang.list, api.Variable{Name: fmt.Sprintf("v%04d", api.MaxVariables-i), Type: "int"})
	}
	lang.total = 5000
	reply := ask(s, "variables_request")
	if data := reply["data"].([]any); reply["status"] != "ok" || reply["total"] != 5000.0 || len(data) != api.MaxVariables ||
		fmt.Sprint(data[0]) != "map[name:v0000 preview: shape:<nil> size:<nil> type:int]" {
		t.Errorf("%.300v", reply)
	}
	lang.list, lang.total = nil, 0
	if b, _ := json.Marshal(ask(s, "variables_request")); string(b) != `{"data":[],"status":"ok","total":0}` {
		t.Errorf("none: %s", b)
	}
	lang.err = errors.New("no idea")
	if reply := ask(s, "variables_request"); reply["status"] != "error" || reply["evalue"] != "no idea" {
		t.Errorf("%v", reply)
	}
	other := serve(t, "ipc")
	if info := other.collect(other.send(jupyter.Shell, "kernel_info_request", struct{}{}, nil))[0].reply; info["supported_features"] != nil {
		t.Errorf("%v", info)
	}
}

func TestQuestions(t *testing.T) {
	s := serve(t, "ipc")
	for _, c := range []struct {
		channel       jupyter.Channel
		msgType, want string
		content       any
	}{
		{jupyter.Shell, "complete_request", `{"cursor_end":1,"cursor_start":0,"matches":["a!"],"metadata":{"_jupyter_types_experimental":[{"end":1,"start":0,"text":"a!","type":"word"}]},"status":"ok"}`, jupyter.CompleteRequest{Code: "a", CursorPos: 1}},
		{jupyter.Shell, "complete_request", `{"ename":"KernelError","evalue":"panic: panic","status":"error","traceback":["KernelError: panic: panic"]}`, jupyter.CompleteRequest{Code: "panic"}},
		{jupyter.Shell, "inspect_request", `{"data":{"text/plain":"a"},"found":true,"metadata":{},"status":"ok"}`, jupyter.InspectRequest{Code: "a"}},
		{jupyter.Shell, "inspect_request", `{"data":{},"found":false,"metadata":{},"status":"ok"}`, jupyter.InspectRequest{}},
		{jupyter.Shell, "is_complete_request", `{"indent":"  ","status":"incomplete"}`, jupyter.IsCompleteRequest{Code: "a"}},
		{jupyter.Shell, "is_complete_request", `{"ename":"KernelError","evalue":"empty","status":"error","traceback":["KernelError: empty"]}`, jupyter.IsCompleteRequest{}},
		{jupyter.Shell, "history_request", `{"history":[],"status":"ok"}`, struct{}{}},
		{jupyter.Shell, "comm_info_request", `{"comms":{},"status":"ok"}`, struct{}{}},
		{jupyter.Control, "interrupt_request", `{"status":"ok"}`, struct{}{}},
	} {
		o := s.collect(s.send(c.channel, c.msgType, c.content, nil))[0]
		if b, _ := json.Marshal(o.reply); string(b) != c.want {
			t.Errorf("%s %v: %s, want %s", c.msgType, c.content, b, c.want)
		}
		if len(o.iopub) != 2 {
			t.Errorf("%s: published %q", c.msgType, o.iopub)
		}
	}
	// comm_* has no reply.
	id := s.send(jupyter.Shell, "comm_open", map[string]any{"comm_id": "x", "target_name": "y", "data": struct{}{}}, nil)
	for seen := 0; seen < 2; {
		m := <-s.client.Messages()
		if m.Parent.MsgID == id {
			seen++
		}
		m.Close()
	}
	for _, channel := range []jupyter.Channel{jupyter.Shell, jupyter.Control} {
		o := s.collect(s.send(channel, "kernel_info_request", struct{}{}, nil))[0]
		if o.reply["status"] != "ok" || o.reply["protocol_version"] != jupyter.ProtocolVersion || o.reply["implementation"] != "toy" {
			t.Errorf("kernel_info on %s: %v", channel, o.reply)
		}
	}
}

func TestInput(t *testing.T) {
	s := serve(t, "ipc")
	o := s.run("ask name?")
	if o.reply["ename"] != "NoInput" || !strings.Contains(o.reply["evalue"].(string), "without answers") {
		t.Errorf("a question that may not be asked: %v", o.reply)
	}
	asking := code("ask name?")
	asking["allow_stdin"] = true
	id := s.send(jupyter.Shell, "execute_request", asking, nil)
	for m := range s.client.Messages() {
		if m.Channel == jupyter.Stdin {
			var q jupyter.InputRequest
			if err := m.Content.Decode(&q, 1<<20); err != nil || q.Prompt != "name?" || m.Parent.MsgID != id {
				t.Errorf("the question is %v %v", q, err)
			}
			m.Close()
			break
		}
		m.Close()
	}
	for range 2 { // the second is nobody's
		s.send(jupyter.Stdin, "input_reply", jupyter.InputReply{Value: "Ada"}, nil)
	}
	for m := range s.client.Messages() {
		b, _ := m.Content.Raw(1 << 20)
		done := strings.Contains(string(b), `"text":"Ada"`)
		m.Close()
		if done {
			break
		}
	}
}
