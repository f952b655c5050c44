package jupyter

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTranscripts parses the frames of real kernels and compares them with what the
// steps of the session must give, and with a summary of every message.
func TestTranscripts(t *testing.T) {
	if *update {
		record(t)
	}
	files, err := filepath.Glob(filepath.Join("testdata", "transcripts", "*.json"))
	if err != nil || len(files) < 2 {
		t.Fatalf("transcripts: %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var tr transcript
			if err := json.Unmarshal(b, &tr); err != nil {
				t.Fatal(err)
			}
			summary := replay(t, tr)
			golden := strings.TrimSuffix(file, ".json") + ".txt"
			if *update {
				if err := os.WriteFile(golden, []byte(summary), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if summary != string(want) {
				t.Errorf("%s differs; now it is\n%s", golden, summary)
			}
		})
	}
}

// replayed is what a step's messages say.
type replayed struct {
	messages       []*Message
	stdout, stderr string
	replied, idle  bool
	reply          ExecuteReply
	byType         map[string][]Members // contents
}

// replay parses a transcript with all signatures checked, checks what its steps
// must give, and returns a summary of it.
func replay(t *testing.T, tr transcript) string {
	signer := mustSigner(t, tr.SignatureScheme, tr.Key)
	var out strings.Builder
	fmt.Fprintf(&out, "%s\n", tr.Kernel)
	got := map[string]*replayed{}
	for _, step := range tr.Steps {
		fmt.Fprintf(&out, "\n# %s\n", step.Name)
		r := &replayed{byType: map[string][]Members{}}
		got[step.Name] = r
		for _, recorded := range step.Messages {
			m, err := ParseMessage(recorded.Channel, newFrames(recorded.Frames...), signer)
			if err != nil {
				t.Fatalf("%s: %v\n%q", step.Name, err, recorded.Frames)
			}
			if recorded.Sent {
				fmt.Fprintf(&out, "> %s %s %s\n", m.Channel, m.Header.MsgType, m.Header.MsgID)
				continue
			}
			summarize(t, &out, m)
			r.add(t, m)
			// The same from a file, and unsigned.
			content, _ := m.Content.bytes()
			checkValue(t, content)
		}
	}
	checkSteps(t, got)
	return out.String()
}

// summarize writes a line for a message, and one for each member of its content.
func summarize(t *testing.T, out io.Writer, m *Message) {
	fmt.Fprintf(out, "%s %s", m.Channel, m.Header.MsgType)
	if m.Parent.MsgID != "" {
		fmt.Fprintf(out, " for %s", m.Parent.MsgID)
	}
	for _, b := range m.Buffers {
		fmt.Fprintf(out, " +%d bytes", b.Len())
	}
	fmt.Fprintln(out)
	members, err := m.Content.Members()
	if err != nil {
		t.Fatal(err)
	}
	for _, member := range members {
		nested, err := member.Value.Members()
		if err != nil || len(nested) == 0 || member.Key == "language_info" {
			fmt.Fprintf(out, "\t%s = %.100s\n", member.Key, show(t, member.Value))
			continue
		}
		for _, n := range nested {
			fmt.Fprintf(out, "\t%s %s = %.100s\n", member.Key, n.Key, show(t, n.Value))
		}
	}
}

func show(t *testing.T, v Value) string {
	raw, err := v.Raw(testLimit)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func (r *replayed) add(t *testing.T, m *Message) {
	members, err := m.Content.Members()
	if err != nil {
		t.Fatal(err)
	}
	r.byType[m.Header.MsgType] = append(r.byType[m.Header.MsgType], members)
	switch m.Header.MsgType {
	case "stream":
		var s Stream
		decode(t, m, &s)
		if s.Name == "stdout" {
			r.stdout += s.Text
		} else {
			r.stderr += s.Text
		}
	case "execute_reply":
		decode(t, m, &r.reply)
		r.replied = true
	case "status":
		var s Status
		decode(t, m, &s)
		r.idle = r.idle || s.ExecutionState == StateIdle
	}
	r.messages = append(r.messages, m)
}

// mime is one value of a bundle that a step showed.
func (r *replayed) mime(t *testing.T, msgType string, i int, mimeType string) Value {
	t.Helper()
	if len(r.byType[msgType]) <= i {
		t.Errorf("%d messages of type %s", len(r.byType[msgType]), msgType)
		return Value{}
	}
	data, err := r.byType[msgType][i].Get("data").Members()
	if err != nil {
		t.Error(err)
	}
	return data.Get(mimeType)
}

func (r *replayed) displayIDOf(t *testing.T, msgType string) string {
	t.Helper()
	var transient Transient
	if len(r.byType[msgType]) != 1 {
		t.Errorf("%d messages of type %s", len(r.byType[msgType]), msgType)
	} else if err := r.byType[msgType][0].Get("transient").Decode(&transient, testLimit); err != nil {
		t.Error(err)
	}
	return transient.DisplayID
}

// checkSteps checks what every Python kernel must have said.
func checkSteps(t *testing.T, got map[string]*replayed) {
	if len(got) != len(steps)+2 {
		t.Fatalf("%d steps", len(got))
	}
	for name, r := range got {
		if name != "start" && name != "shutdown" && (!r.replied || !r.idle) {
			t.Errorf("%s: reply %v, idle %v", name, r.replied, r.idle)
		}
		ok := name != "error" && name != "syntax error" && name != "interrupt" && name != "start" && name != "shutdown"
		if ok && r.reply.Status != StatusOK {
			t.Errorf("%s: %+v", name, r.reply)
		}
	}
	text := func(v Value) string {
		t.Helper()
		s, err := v.Unquote(testLimit)
		if err != nil {
			t.Error(err)
		}
		return s
	}
	equal := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	equal("print", got["print"].stdout, "hello\n")
	equal("result", text(got["result"].mime(t, "execute_result", 0, "text/plain")), "2")
	equal("stdout", got["streams"].stdout, "out\n")
	equal("stderr", got["streams"].stderr, "érr 😀 10%\r100%\n")
	equal("error", got["error"].reply.EName+": "+got["error"].reply.EValue, "ValueError: no")
	equal("the error's message", text(got["error"].byType["error"][0].Get("ename")), "ValueError")
	equal("syntax error", got["syntax error"].reply.EName, "SyntaxError")
	png, err := io.ReadAll(base64.NewDecoder(base64.StdEncoding, got["display"].mime(t, "display_data", 0, "image/png").Text()))
	if err != nil || !bytes.HasPrefix(png, []byte("\x89PNG\r\n\x1a\n")) || !bytes.Contains(png, []byte("IEND")) {
		t.Errorf("image: %q, %v", png, err)
	}
	equal("html", text(got["display"].mime(t, "display_data", 1, "text/html")), "<b>bold</b>")
	equal("display", text(got["update display"].mime(t, "display_data", 0, "text/plain")), "'one'")
	equal("update", text(got["update display"].mime(t, "update_display_data", 0, "text/plain")), "'two'")
	equal("display id", got["update display"].displayIDOf(t, "display_data"), "d1")
	equal("updated id", got["update display"].displayIDOf(t, "update_display_data"), "d1")
	var clear ClearOutput
	for _, m := range got["clear output"].messages {
		if m.Header.MsgType == "clear_output" {
			decode(t, m, &clear)
		}
	}
	if !clear.Wait {
		t.Errorf("clear output: %+v", clear)
	}
	equal("around clear", got["clear output"].stdout, "before\nafter\n")
	var data struct{ X []any }
	if err := got["not finite"].mime(t, "display_data", 0, "application/json").Decode(&data, testLimit); err != nil || len(data.X) != 3 || data.X[2] != 1.5 {
		t.Errorf("not finite: %v, %v", data, err)
	}
	for _, m := range got["comm"].messages {
		if m.Header.MsgType == "comm_open" && (len(m.Buffers) != 2 || m.Buffers[0].Len() != 10 || m.Buffers[1].Len() != 0) {
			t.Errorf("comm: %v", m.Buffers)
		}
	}
	for name, want := range map[string]InputRequest{"input": {"name? ", false}, "password": {"secret: ", true}} {
		var asked InputRequest
		for _, m := range got[name].messages {
			if m.Channel == Stdin {
				decode(t, m, &asked)
			}
		}
		if asked != want {
			t.Errorf("%s: %+v", name, asked)
		}
	}
	equal("input", got["input"].stdout, "hello Ada\n")
	equal("interrupt", got["interrupt"].reply.EName, "KeyboardInterrupt")
	equal("after all", got["after all"].stdout, "Ada\n")
	if len(got["shutdown"].byType["shutdown_reply"]) == 0 {
		t.Error("no shutdown_reply")
	}
}
