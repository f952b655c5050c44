package client_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cellard/cellard/client"
	"github.com/cellard/cellard/protocol/api"
)

func TestBadAddresses(t *testing.T) {
	for _, a := range []string{"", "/run/cellard.sock", "unix://run/s", "vsock://", "vsock://host:52", "vsock://3:0", "vsock://3:x",
		"vsock://4294967295:52", "firecracker://v.sock?port=52", "firecracker:///v.sock?port=0", "firecracker:///v.sock?port=x", "http://",
		"http://h:1/?q=1", "ftp://h", "tcp://"} {
		if c, err := client.New(a, client.Options{}); err == nil {
			t.Errorf("%q is taken: %v", a, c.Address())
		} else if !strings.Contains(err.Error(), "want") {
			t.Errorf("%q: %v: does not say what is wanted", a, err)
		}
	}
	if _, err := client.New("http://user:secret@host:1", client.Options{}); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
	for _, token := range []string{"secret\n", " secret", "sec\rret", "sécret"} { // net/http would tell of a header
		if _, err := client.New("http://127.0.0.1:7520", client.Options{Token: token}); err == nil || !strings.Contains(err.Error(), "trim") || strings.Contains(err.Error(), "ret") {
			t.Errorf("%q: %v", token, err)
		}
	}
	for _, a := range []string{"vsock://3", "vsock://3:52", "firecracker:///v.sock", "https://agent.example:7520"} {
		if _, err := client.New(a, client.Options{}); err != nil {
			t.Errorf("%q: %v", a, err)
		}
	}
}

// short are options with which a test need not wait.
var short = client.Options{DialTimeout: 300 * time.Millisecond, AnswerTimeout: 300 * time.Millisecond, StartTimeout: 300 * time.Millisecond,
	Silence: 300 * time.Millisecond, Retries: 2, MaxAnswer: 1 << 20}

// What a VM's socket may say in place of OK.
func TestFirecrackerHandshake(t *testing.T) {
	for name, c := range map[string]struct {
		say  string
		hang bool
		want string
	}{
		"closed":   {"", false, "nothing listens there"},
		"other":    {"HTTP/1.1 400 Bad Request\r\n", false, "want OK and a port"},
		"endless":  {strings.Repeat("x", 1000), false, "want OK and a port"},
		"silent":   {"", true, "said nothing"},
		"half":     {"OK 10", true, "said nothing"},
		"OK alone": {"OK 1\n", false, "interrupt: "},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "v")
			l, err := net.Listen("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			var calls atomic.Int32
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for {
					nc, err := l.Accept()
					if err != nil {
						return
					}
					calls.Add(1)
					b := make([]byte, 100)
					if n, _ := nc.Read(b); string(b[:n]) != "CONNECT 52\n" {
						t.Errorf("sent before the OK: %q", b[:n])
					}
					_, _ = io.WriteString(nc, c.say)
					if c.hang {
						_, _ = nc.Read(b)
					}
					nc.Close()
				}
			}()
			agent := newClient(t, "firecracker://"+path, short)
			// A POST is sent again too, for it never reached the agent.
			_, err = agent.Interrupt(bounded(t), "x")
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
			want := int32(3)
			if name == "OK alone" {
				want = 1 // it may have reached the agent
			}
			if n := calls.Load(); n != want {
				t.Errorf("%d tries, wanted %d", n, want)
			}
			l.Close()
			<-ended
		})
	}
}

// serve is a stand-in for an agent that misbehaves.
func serve(t *testing.T, h http.HandlerFunc) *client.Client {
	t.Helper()
	s := httptest.NewServer(h)
	c := newClient(t, s.URL, short)
	t.Cleanup(func() { c.Close(); s.CloseClientConnections(); s.Close() })
	return c
}

func TestHostileAnswers(t *testing.T) {
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		}, "not from an agent"},
		"no JSON":  {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, "invalid character"},
		"no error": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500); fmt.Fprint(w, `{"oops":1}`) }, "not from an agent"},
		"endless": {func(w http.ResponseWriter, _ *http.Request) {
			for b := []byte(strings.Repeat(" ", 1<<16)); ; {
				if _, err := w.Write(b); err != nil {
					return
				}
			}
		}, "larger than Options.MaxAnswer"},
		"endless refusal": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(500)
			for b := []byte(strings.Repeat("x", 1<<16)); ; {
				if _, err := w.Write(b); err != nil {
					return
				}
			}
		}, "not from an agent"},
		"packed": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			fmt.Fprint(w, "\x1f\x8b")
		}, "invalid character"},
		"silent": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, client.ErrSilent.Error()},
		"half":   {func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, `{"id":`); flush(w); <-r.Context().Done() }, client.ErrSilent.Error()},
		"broken off": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"id":`)
			flush(w)
			panic(http.ErrAbortHandler)
		}, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			agent := serve(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // only then is a client missed that goes away
				c.answer(w, r)
			})
			_, err := agent.Context(bounded(t), "x")
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
			if _, err := agent.Run(bounded(t), api.RunRequest{Code: "1"}); err == nil {
				t.Error("run is content with it")
			}
		})
	}
	if elsewhere.Load() != 0 {
		t.Error("a redirect was followed")
	}
}

func flush(w http.ResponseWriter) { w.(http.Flusher).Flush() }

func TestHostileStreams(t *testing.T) {
	for name, c := range map[string]struct{ lines, want string }{
		"no event":        {"nonsense\n", "no event"},
		"no execution":    {`{"k":"execution","seq":1}` + "\n", "no event"},
		"a long line":     {`{"k":"stdout","text":"` + strings.Repeat("x", 2<<20) + `"}` + "\n", "larger than Options.MaxAnswer"},
		"the same again":  {`{"k":"start","seq":1,"id":"e_1"}` + "\n" + `{"k":"start","seq":1,"id":"e_1"}` + "\n" + `{"k":"execution","seq":2,"execution":{"id":"e_1","status":"ok"}}` + "\n", ""},
		"never an end":    {`{"k":"start","seq":1,"id":"e_1"}` + "\n", "broke off"},
		"a failure":       {`{"k":"failure","code":"kernel_failed","message":"no kernel","hint":"make one","status":502,"seq":1}` + "\n", "no kernel (make one)"},
		"an unknown kind": {`{"k":"news","seq":1}` + "\n" + `{"k":"execution","seq":2,"execution":{"id":"e_1","status":"ok"}}` + "\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			agent := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Cellard-Execution", "e_1")
				fmt.Fprint(w, c.lines)
			})
			x, err := agent.Run(bounded(t), api.RunRequest{Code: "1"})
			if c.want == "" {
				if err != nil || x.Status != api.StatusOK {
					t.Errorf("%+v %v", x, err)
				}
			} else if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%.300v", err)
			}
			var refusal *api.Error
			if name == "a failure" && (!errors.As(err, &refusal) || refusal.HTTPStatus() != 502 || refusal.Code != api.CodeKernelFailed) {
				t.Errorf("%+v", err)
			}
		})
	}
}

// What is sent again after its answer stayed away, and what is not.
func TestRetries(t *testing.T) {
	for _, c := range []struct {
		name  string
		do    func(*client.Client, context.Context) error
		tries int32
	}{
		{"a question", func(a *client.Client, ctx context.Context) error { _, err := a.Contexts(ctx); return err }, 3},
		{"an execution's interrupt", func(a *client.Client, ctx context.Context) error {
			_, err := a.InterruptExecution(ctx, "e")
			return err
		}, 3},
		{"a cell", func(a *client.Client, ctx context.Context) error {
			_, err := a.Run(ctx, api.RunRequest{Code: "1"})
			return err
		}, 1},
		{"a cell with a key", func(a *client.Client, ctx context.Context) error {
			_, err := a.Run(ctx, api.RunRequest{Code: "1", IdempotencyKey: "k"})
			return err
		}, 3},
		{"a restart", func(a *client.Client, ctx context.Context) error { _, err := a.Restart(ctx, "x"); return err }, 1},
		{"a context's interrupt", func(a *client.Client, ctx context.Context) error { _, err := a.Interrupt(ctx, "x"); return err }, 1},
		{"a delete", func(a *client.Client, ctx context.Context) error { return a.DeleteContext(ctx, "x") }, 1},
		{"input", func(a *client.Client, ctx context.Context) error { return a.Input(ctx, "e", "v") }, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var tries atomic.Int32
			agent := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/v1/health" {
					fmt.Fprint(w, `{"status":"ok","instanceId":"one"}`)
					return
				}
				_, _ = io.Copy(io.Discard, r.Body)
				tries.Add(1)
				panic(http.ErrAbortHandler)
			})
			if err := c.do(agent, bounded(t)); err == nil {
				t.Error("no error")
			}
			if n := tries.Load(); n != c.tries {
				t.Errorf("sent %d times, wanted %d", n, c.tries)
			}
		})
	}
}

// A key means something to one instance of the agent alone.
func TestKeyOfAnotherInstance(t *testing.T) {
	var tries, started atomic.Int32
	agent := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/health" {
			fmt.Fprintf(w, `{"status":"ok","instanceId":"%d"}`, started.Load())
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		tries.Add(1)
		started.Add(1)
		panic(http.ErrAbortHandler)
	})
	_, err := agent.Run(bounded(t), api.RunRequest{Code: "1", IdempotencyKey: "k"})
	if !errors.Is(err, client.ErrInstance) || tries.Load() != 1 {
		t.Errorf("sent %d times: %v", tries.Load(), err)
	}
}

// The bytes of a ref are held against its hash, also when they came in pieces.
func TestHostileResults(t *testing.T) {
	content := []byte(strings.Repeat("data", 1000))
	sum := sha256.Sum256(content)
	hash := hex.EncodeToString(sum[:])
	ref := api.Ref{Path: "/w/out/f.bin", Bytes: int64(len(content)), SHA256: hash}
	for name, c := range map[string]struct {
		send func(w http.ResponseWriter, r *http.Request)
		want string
	}{
		"as it is": {func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "", time.Time{}, strings.NewReader(string(content)))
		}, ""},
		"in halves": {func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Range") == "" {
				w.Header().Set("Content-Length", "4000")
				_, _ = w.Write(content[:1000])
				flush(w)
				panic(http.ErrAbortHandler)
			}
			http.ServeContent(w, r, "", time.Time{}, strings.NewReader(string(content)))
		}, ""},
		"altered": {func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "", time.Time{}, strings.NewReader(strings.ToUpper(string(content))))
		}, "the hash of what came"},
		"never all": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "4000")
			flush(w)
			panic(http.ErrAbortHandler)
		}, "0 of 4000 bytes"},
		"all again in place of the rest": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "4000")
			_, _ = w.Write(content[:1000])
			flush(w)
			panic(http.ErrAbortHandler)
		}, "the rest from byte 1000"},
	} {
		t.Run(name, func(t *testing.T) {
			agent := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/v1/interpreter/contexts/x/results/f.bin" {
					t.Errorf("asked for %s", r.URL.Path)
				}
				w.Header().Set("ETag", `"`+hash+`"`)
				w.Header().Set("Content-Type", "application/octet-stream")
				c.send(w, r)
			})
			f, err := agent.Result(bounded(t), "x", ref)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			b, err := io.ReadAll(f)
			if c.want == "" {
				if err != nil || string(b) != string(content) {
					t.Errorf("%d bytes, %v", len(b), err)
				}
			} else if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
		})
	}
}
