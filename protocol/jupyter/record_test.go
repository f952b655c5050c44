package jupyter

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/cellard/cellard/protocol/zmtp"
)

var update = flag.Bool("update", false, "record the transcript of the kernel that CELLARD_TEST_PYTHON has, and write all summaries anew")

// transcript is a session with a real kernel, as its frames went over the wire.
type transcript struct {
	Kernel          string         `json:"kernel"`
	Key             string         `json:"key"`
	SignatureScheme string         `json:"signature_scheme"`
	Steps           []recordedStep `json:"steps"`
}

type recordedStep struct {
	Name     string            `json:"name"`
	Messages []recordedMessage `json:"messages"`
}

type recordedMessage struct {
	Channel Channel  `json:"channel"`
	Sent    bool     `json:"sent,omitempty"` // by the client
	Frames  []string `json:"frames"`
}

// steps are the cells of the session. The answer to input is Ada, and what
// interrupts is a SIGINT once it has printed something.
var steps = []struct{ name, code string }{
	{"print", "print('hello')"},
	{"result", "1 + 1"},
	{"streams", "import sys\nprint('out'); sys.stdout.flush(); print('\u00e9rr \U0001f600 10%\\r100%', file=sys.stderr)"},
	{"error", "raise ValueError('no')"},
	{"syntax error", "1 +"},
	{"display", "from IPython.display import Image, HTML, display\nimport base64\n" +
		"display(Image(data=base64.b64decode('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==')))\ndisplay(HTML('<b>bold</b>'))"},
	{"update display", "h = display('one', display_id='d1')\nh.update('two')"},
	{"clear output", "from IPython.display import clear_output\nprint('before')\nclear_output(wait=True)\nprint('after')"},
	{"not finite", "display({'application/json': {'x': [float('nan'), float('inf'), 1.5]}, 'text/plain': 'x'}, raw=True, metadata={'m': float('nan')})"},
	{"comm", "from ipykernel.comm import Comm\nc = Comm(target_name='t', data={'a': 1}, buffers=[b'buffer one', b''])"},
	{"input", "name = input('name? ')\nprint('hello', name)"},
	{"password", "import getpass\ngetpass.getpass('secret: ')"},
	{"interrupt", "import time\nprint('started', flush=True)\ntime.sleep(600)"},
	{"after all", "print(name)"},
}

// recorder is a client that keeps frames as they are.
type recorder struct {
	t        *testing.T
	signer   *Signer
	conns    map[Channel]*zmtp.Conn
	received chan recordedMessage
	now      *recordedStep
	count    int
}

func (r *recorder) read(channel Channel) {
	for {
		frames, err := r.conns[channel].Recv()
		if err != nil {
			return
		}
		m := recordedMessage{Channel: channel}
		for _, f := range frames {
			b, _ := f.Bytes()
			m.Frames = append(m.Frames, string(b))
			f.Close()
		}
		r.received <- m
	}
}

func (r *recorder) send(channel Channel, msgType string, content any, parent *Header) string {
	r.count++
	out := &Outgoing{
		Header: Header{
			MsgID: fmt.Sprintf("c_%d", r.count), Session: "c", Username: "cellard", MsgType: msgType,
			Date: time.Now().UTC().Format(dateFormat), Version: ProtocolVersion,
		},
		Parent: parent, Content: content,
	}
	frames, err := out.Encode(r.signer)
	if err == nil {
		err = r.conns[channel].Send(frames...)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	m := recordedMessage{Channel: channel, Sent: true}
	for _, f := range frames {
		m.Frames = append(m.Frames, string(f))
	}
	r.now.Messages = append(r.now.Messages, m)
	return out.Header.MsgID
}

// until records what comes until done says so of a message.
func (r *recorder) until(done func(*Message) bool) {
	timeout := time.After(testTimeout)
	for {
		select {
		case m := <-r.received:
			for _, f := range m.Frames {
				if !utf8.ValidString(f) || strings.Contains(f, "site-packages") {
					r.t.Fatalf("%s: a frame that isn't text, or tells of this machine: %q", r.now.Name, f)
				}
			}
			r.now.Messages = append(r.now.Messages, m)
			parsed, err := ParseMessage(m.Channel, newFrames(m.Frames...), r.signer)
			if err != nil {
				r.t.Fatal(err)
			}
			if done(parsed) {
				return
			}
		case <-timeout:
			r.t.Fatalf("%s: it did not end: %+v", r.now.Name, r.now.Messages)
		}
	}
}

// finished is done when reply and idle of a request have come.
func finished(t testing.TB, id, reply string) func(*Message) bool {
	replied, idle := false, false
	return func(m *Message) bool {
		if m.Parent.MsgID != id {
			return false
		}
		switch m.Header.MsgType {
		case reply:
			replied = true
		case "status":
			var s Status
			decode(t, m, &s)
			idle = s.ExecutionState == StateIdle
		}
		return replied && idle
	}
}

// record plays the session with a real kernel and writes its transcript.
func record(t *testing.T) {
	out, err := exec.Command(python(t), "-c", "import ipykernel; print(ipykernel.__version__)").Output()
	if err != nil {
		t.Fatal(err)
	}
	tr := transcript{Kernel: "ipykernel " + strings.TrimSpace(string(out)), SignatureScheme: SchemeSHA256}
	ci := newIPC(t)
	tr.Key = ci.Key
	k := startIPykernel(t, ci)
	r := &recorder{t: t, signer: mustSigner(t, "", ci.Key), conns: map[Channel]*zmtp.Conn{}, received: make(chan recordedMessage, 1000)}
	for _, channel := range []Channel{IOPub, Shell, Stdin, Control} {
		typ := zmtp.Dealer
		if channel == IOPub {
			typ = zmtp.Sub
		}
		network, address := ci.Address(channel)
		conn, err := dialWait(testContext(t), network, address, typ, zmtp.Options{Identity: []byte("recorder")})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		r.conns[channel] = conn
		go r.read(channel)
	}
	if err := r.conns[IOPub].Subscribe(nil); err != nil {
		t.Fatal(err)
	}

	step := func(name string) func() {
		r.now = &recordedStep{Name: name}
		return func() { tr.Steps = append(tr.Steps, *r.now) }
	}
	end := step("start")
	time.Sleep(time.Second) // for the subscription; what is recorded need not race
	r.until(finished(t, r.send(Shell, "kernel_info_request", nil, nil), "kernel_info_reply"))
	end()
	for _, s := range steps {
		end := step(s.name)
		id := r.send(Shell, "execute_request", ExecuteRequest{
			Code: s.code, StoreHistory: true, AllowStdin: true,
			UserExpressions: map[string]string{"two": "1 + 1"},
		}, nil)
		over := finished(t, id, "execute_reply")
		r.until(func(m *Message) bool {
			switch {
			case m.Header.MsgType == "input_request":
				r.send(Stdin, "input_reply", InputReply{Value: "Ada"}, &m.Header)
			case s.name == "interrupt" && m.Header.MsgType == "stream":
				// Not at once: it would hit print's flush, and name its file.
				time.AfterFunc(300*time.Millisecond, func() { k.cmd.Process.Signal(syscall.SIGINT) })
			}
			return over(m)
		})
		end()
	}
	end = step("shutdown")
	id := r.send(Control, "shutdown_request", ShutdownRequest{}, nil)
	r.until(func(m *Message) bool {
		return m.Header.MsgType == "shutdown_reply" && m.Channel == Control && m.Parent.MsgID == id
	})
	end()

	name := strings.ReplaceAll(tr.Kernel, " ", "-") + ".json"
	b, err := json.MarshalIndent(tr, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join("testdata", "transcripts", name), append(b, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}
