package r

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cellard/cellard/internal/environ"
	"github.com/cellard/cellard/internal/fixture"
	"github.com/cellard/cellard/protocol/jupyter"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience keeps a broken test from hanging; nothing is measured by it.
const patience = 2 * time.Minute

// kernel is the launcher in a real R, and a client of it.
type kernel struct {
	t              *testing.T
	cmd            *exec.Cmd
	client         *jupyter.Client
	info           jupyter.KernelInfo
	stdout, stderr fixture.Buffer
	ended          chan error
}

// start starts a kernel, which ends with the test; env is added to its environment.
func start(t *testing.T, env ...string) *kernel {
	t.Helper()
	found, err := NewFinder(environ.Search{}).Find(t.Context())
	if err != nil {
		t.Fatalf("%v: run scripts/setup-languages.sh", err)
	}
	dir := fixture.Dir(t, 0o700)
	for name, data := range Files() {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ci, err := jupyter.NewIPC(dir)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "connection.json")
	if err := ci.WriteFile(file); err != nil {
		t.Fatal(err)
	}
	argv := Argv(found.Program)
	for i := range argv {
		argv[i] = strings.NewReplacer("{dir}", dir, "{connection_file}", file).Replace(argv[i])
	}
	k := &kernel{t: t, cmd: exec.Command(argv[0], argv[1:]...), ended: make(chan error, 1)}
	k.cmd.Env = append(append(os.Environ(), "TMPDIR="+dir), append(env, Env(env)...)...)
	k.cmd.Dir = dir
	k.cmd.Stdout, k.cmd.Stderr = &k.stdout, &k.stderr
	k.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := k.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { k.ended <- k.cmd.Wait() }()
	t.Cleanup(func() {
		_ = syscall.Kill(-k.cmd.Process.Pid, syscall.SIGKILL)
		if k.client != nil {
			k.client.Close()
		}
		select {
		case <-k.ended:
		case <-time.After(patience):
			t.Error("the kernel's process doesn't end")
		}
		if t.Failed() {
			t.Logf("stdout:\n%s\nstderr:\n%s", k.stdout.String(), k.stderr.String())
		}
	})
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if k.client, err = jupyter.Dial(t.Context(), ci, jupyter.ClientOptions{}); err == nil {
			break
		} else if time.Now().After(end) {
			t.Fatalf("%v\n%s", err, k.stderr.String())
		}
	}
	if k.info, err = k.client.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	return k
}

// message is one of a request's, decoded.
type message struct {
	channel jupyter.Channel
	kind    string
	content map[string]any
}

// ask sends a request and returns its messages until idle and, where reply is not
// empty, that reply have come.
func (k *kernel) ask(kind, reply string, content any) (all []message, answer map[string]any) {
	k.t.Helper()
	m := k.client.NewMessage(kind, content)
	if err := k.client.Send(jupyter.Shell, m); err != nil {
		k.t.Fatal(err)
	}
	timeout := time.After(patience)
	for idle := false; !idle || reply != "" && answer == nil; {
		select {
		case got, ok := <-k.client.Messages():
			if !ok {
				k.t.Fatalf("the client ended: %v", k.client.Err())
			}
			if got.Parent.MsgID == m.Header.MsgID {
				one := message{got.Channel, got.Header.MsgType, nil}
				if err := got.Content.Decode(&one.content, 1<<20); err != nil {
					k.t.Fatalf("%s: %v", one.kind, err)
				}
				all = append(all, one)
				idle = idle || one.kind == "status" && one.content["execution_state"] == "idle"
				if one.kind == reply {
					answer = one.content
				}
				if one.kind == "input_request" {
					back := k.client.NewMessage("input_reply", jupyter.InputReply{Value: "Ada"})
					back.Parent = &got.Header
					if err := k.client.Send(jupyter.Stdin, back); err != nil {
						k.t.Fatal(err)
					}
				}
			}
			got.Close()
		case <-timeout:
			k.t.Fatalf("%s %v: no end; so far %v", kind, content, all)
		}
	}
	return all, answer
}

func (k *kernel) cell(code string) ([]message, map[string]any) {
	k.t.Helper()
	return k.ask("execute_request", "execute_reply", jupyter.ExecuteRequest{Code: code, StoreHistory: true, AllowStdin: true})
}

func of(all []message, kind string) (found []map[string]any) {
	for _, m := range all {
		if m.kind == kind {
			found = append(found, m.content)
		}
	}
	return found
}

// one is the content of the message of that kind; nil where there isn't just one.
func one(all []message, kind string) map[string]any {
	if found := of(all, kind); len(found) == 1 {
		return found[0]
	}
	return nil
}

// text is a value at a path of a content, as JSON.
func text(content map[string]any, path ...string) string {
	var v any = content
	for _, key := range path {
		object, _ := v.(map[string]any)
		v = object[key]
	}
	b, _ := json.Marshal(v)
	return string(b)
}

func TestProtocol(t *testing.T) {
	k := start(t)
	if k.info.Implementation != "IRkernel" || k.info.LanguageInfo.Name != "R" || k.info.LanguageInfo.Version == "" {
		t.Errorf("kernel info: %+v", k.info)
	}
	if err := k.client.Beat(t.Context()); err != nil {
		t.Error(err)
	}

	all, reply := k.cell("x <- 40; display(list('text/plain' = 'shown')); x + 2")
	kinds := make([]string, 0, len(all))
	for _, m := range all {
		if m.channel == jupyter.IOPub {
			kinds = append(kinds, m.kind)
		}
	}
	if got, want := strings.Join(kinds, " "), "status execute_input display_data execute_result status"; got != want {
		t.Errorf("iopub: %s, want %s", got, want)
	}
	if text(reply, "status") != `"ok"` || text(reply, "execution_count") != "1" || text(reply, "user_expressions") != "{}" {
		t.Errorf("reply: %v", reply)
	}
	result := one(all, "execute_result")
	if text(result, "data", "text/plain") != `"[1] 42"` || text(result, "execution_count") != "1" || text(result, "metadata") != "{}" {
		t.Errorf("result: %v", result)
	}

	all, reply = k.cell("f <- function() stop('boom')\nf()")
	failure := of(all, "error")
	if len(failure) != 1 || text(failure[0], "ename") != `"simpleError"` || text(failure[0], "evalue") != `"boom"` || text(failure[0], "traceback") != text(reply, "traceback") {
		t.Errorf("error: %v, reply %v", failure, reply)
	}
	if text(reply, "execution_count") != "2" {
		t.Errorf("an error's count: %v", reply)
	}

	all, _ = k.ask("execute_request", "execute_reply", jupyter.ExecuteRequest{Code: "x; plot(1); stop('quiet')", Silent: true})
	for _, m := range all {
		if m.channel == jupyter.IOPub && m.kind != "status" {
			t.Errorf("a silent cell sent %s", m.kind)
		}
	}
	if _, reply := k.cell("y <- readline('name? ')"); text(reply, "status") != `"ok"` || text(reply, "execution_count") != "3" {
		t.Errorf("input: %v", reply)
	}
	if all, _ := k.cell("y"); text(one(all, "execute_result"), "data", "text/plain") != `"[1] \"Ada\""` {
		t.Errorf("the answer: %v", all)
	}
	if k.client.Stats() != (jupyter.Stats{}) {
		t.Errorf("stats of an honest kernel: %+v", k.client.Stats())
	}
}

// What a cell says of what it shows is in the message, and of a whole HTML document that
// it is one.
func TestMetadata(t *testing.T) {
	k := start(t)
	for code, want := range map[string]string{
		"display(list('text/plain' = 'x'), metadata = list('image/png' = list(width = 10L)))":                          `{"image/png":{"width":10}}`,
		"display(list('text/plain' = 'x'), metadata = 'nonsense')":                                                     `{}`,
		"display(list('text/html' = '<!DOCTYPE html>\n<html lang=\"en\"><p>'), metadata = list(own = TRUE))":           `{"own":true,"text/html":{"isolated":true}}`,
		"IRdisplay::publish_mimebundle(list('text/html' = '<b>'), metadata = list('text/html' = list(isolated = NA)))": `{"text/html":{"isolated":null}}`,
	} {
		if all, _ := k.cell(code); text(one(all, "display_data"), "metadata") != want {
			t.Errorf("%s: %v", code, all)
		}
	}
}

func TestQuestions(t *testing.T) {
	k := start(t)
	k.cell("a_long_name <- list(alpha = 1)")
	for _, c := range []struct {
		kind    string
		content map[string]any
		has     []string
	}{
		{"complete_request", map[string]any{"code": "x <- a_lo", "cursor_pos": 9}, []string{`"a_long_name"`, `"cursor_start":5`, `"cursor_end":9`}},
		{"complete_request", map[string]any{"code": "a_long_name$al", "cursor_pos": 14}, []string{`alpha`}},
		{"complete_request", map[string]any{"code": "", "cursor_pos": 0}, []string{`"status":"ok"`}},
		{"inspect_request", map[string]any{"code": "mean", "cursor_pos": 4, "detail_level": 0}, []string{`"found":true`, "Arithmetic Mean"}},
		{"inspect_request", map[string]any{"code": "no_such_thing", "cursor_pos": 3, "detail_level": 0}, []string{`"found":false`, `"data":{}`}},
		{"is_complete_request", map[string]any{"code": "f <- function() {"}, []string{`"incomplete"`}},
		{"is_complete_request", map[string]any{"code": "'a"}, []string{`"incomplete"`}},
		{"is_complete_request", map[string]any{"code": "1 + 1"}, []string{`"complete"`}},
		{"is_complete_request", map[string]any{"code": "1)"}, []string{`"invalid"`}},
		{"history_request", map[string]any{}, []string{`"history":[]`}},
		{"comm_info_request", map[string]any{}, []string{`"comms":{}`}},
	} {
		_, reply := k.ask(c.kind, strings.TrimSuffix(c.kind, "request")+"reply", c.content)
		for _, want := range c.has {
			if got := text(reply); !strings.Contains(got, want) {
				t.Errorf("%s %v: %.300s lacks %s", c.kind, c.content, got, want)
			}
		}
	}
}

// What a client sends wrongly costs an answer at most.
func TestStrangeRequests(t *testing.T) {
	k := start(t)
	k.ask("no_such_request", "", map[string]any{})
	k.ask("comm_open", "", map[string]any{"comm_id": "x", "target_name": "y"})
	for _, content := range []any{map[string]any{}, map[string]any{"code": nil}, map[string]any{"code": []int{1}}, map[string]any{"code": "1", "silent": "x"}} {
		if _, reply := k.ask("execute_request", "execute_reply", content); text(reply, "status") == "null" {
			t.Errorf("%v: %v", content, reply)
		}
	}
	for _, kind := range []string{"complete", "inspect", "is_complete"} {
		k.ask(kind+"_request", kind+"_reply", map[string]any{"cursor_pos": -5, "code": "x"})
		k.ask(kind+"_request", kind+"_reply", map[string]any{"cursor_pos": 500, "code": "é猫"})
	}
	if all, _ := k.cell("1 + 1"); len(of(all, "execute_result")) != 1 {
		t.Errorf("afterwards: %v", all)
	}
}

func TestShutdown(t *testing.T) {
	k := start(t)
	k.cell("1")
	if _, reply := k.ask("shutdown_request", "shutdown_reply", map[string]any{"restart": false}); text(reply, "restart") != "false" {
		t.Errorf("reply: %v", reply)
	}
	select {
	case err := <-k.ended:
		if err != nil {
			t.Errorf("it ended with %v", err)
		}
		k.ended <- err
	case <-time.After(patience):
		t.Fatal("it does not end")
	}
}

// Text is UTF-8 whatever the locale says, for R and for its children.
func TestLocale(t *testing.T) {
	for _, env := range []string{"LC_ALL=C", "LC_ALL=POSIX", "LANG=no_such", "LC_ALL=en_US.ISO-8859-1"} {
		k := start(t, env)
		all, _ := k.cell("cat('é猫\\n'); system(\"R --version | head -c 0; printf 'é\\\\n'\"); paste0('ü', nchar('猫'))")
		if got := text(one(all, "execute_result"), "data", "text/plain"); got != `"[1] \"ü1\""` {
			t.Errorf("%s: %s", env, got)
		}
		for end := time.Now().Add(patience); k.stdout.String() != "é猫\né\n"; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: stdout %q", env, k.stdout.String())
			}
		}
	}
}

// A profile is read, and one that fails costs no kernel.
func TestProfile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "profile")
	if err := os.WriteFile(file, []byte("from_profile <- 7\n.libPaths('/nowhere')\nstop('in the profile')\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	k := start(t, "R_PROFILE_USER="+file)
	if all, _ := k.cell("from_profile"); text(one(all, "execute_result"), "data", "text/plain") != `"[1] 7"` {
		t.Errorf("%v", all)
	}
	if !strings.Contains(k.stderr.String(), "in the profile") {
		t.Errorf("stderr: %q", k.stderr.String())
	}
}
