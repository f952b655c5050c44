package guest

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"path"
	"strings"
	"sync"
	"testing"

	"github.com/cellard/cellard/client"
	"github.com/cellard/cellard/protocol/api"
)

// A value that is too large for the answer comes by its ref.
func (m *machine) testRef(t *testing.T) {
	x := m.run(object{"code": "from IPython.display import HTML, display\ndisplay(HTML('<p>' + 'ü' * 500_000))"})
	if x.Status != api.StatusOK || len(x.Results) != 1 {
		t.Fatal(show(x))
	}
	whole := "<p>" + strings.Repeat("ü", 500_000)
	ref := x.Results[0].Refs["text/html"]
	sum := sha256.Sum256([]byte(whole))
	if ref.Bytes != int64(len(whole)) || ref.SHA256 != hex.EncodeToString(sum[:]) || !strings.HasPrefix(ref.Path, "/workspace/.runtime/") {
		t.Errorf("%+v", ref)
	}
	if b, err := fetch(m.agent, "/v1/interpreter/contexts/python/results/"+path.Base(ref.Path)); err != nil || string(b) != whole {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

// A host in Go reaches the guest by the client, which makes the handshake itself.
func (m *machine) testClient(t *testing.T) {
	c, err := client.New(fmt.Sprintf("firecracker://%s?port=%d", m.uds, agentPort), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if h, err := c.Health(t.Context()); err != nil || h.Status != "ok" {
		t.Errorf("%+v, %v", h, err)
	}
	x, err := c.Run(t.Context(), api.RunRequest{Code: "print('by the client')"})
	if err != nil || x.Status != api.StatusOK || x.Stdout != "by the client\n" {
		t.Errorf("%s, %v", show(x), err)
	}
}

// The events of a stream come while the cell runs, in order, and the last has the Execution.
func (m *machine) testStream(t *testing.T) {
	events, stop := m.stream(object{"code": "import time\nfor i in range(5):\n    print(i)\n    time.sleep(.3)\ni", "stream": true})
	defer stop()
	var kinds, text string
	running := 0
	seq := int64(0)
	var last api.Event
	for e := range events {
		if seq++; e.Seq != seq {
			t.Errorf("event %d has seq %d", seq, e.Seq)
		}
		if e.K == api.KindStdout {
			text += e.Text
			var x api.Execution
			if err := ask(m.agent, "GET", "/v1/executions/"+e.ID, nil, &x); err != nil {
				t.Error(err)
			}
			if x.Status == api.StatusRunning {
				running++
			}
		} else {
			kinds += string(e.K) + " "
		}
		last = e
	}
	if kinds != "start result end execution " || text != "0\n1\n2\n3\n4\n" || last.Execution == nil || last.Execution.Status != api.StatusOK {
		t.Errorf("%s, %q, %s", kinds, text, show(last))
	}
	if running == 0 {
		t.Error("no event came before the cell was over")
	}
}

// 20 MB come whole: as a stream, and in the file that the answer names.
func (m *machine) testMuchOutput(t *testing.T) {
	const lines, width = 20_000, 1000
	code := fmt.Sprintf("for i in range(%d): print(f'{i:0%dd}')", lines, width-1)
	var want strings.Builder
	for i := range lines {
		fmt.Fprintf(&want, "%0*d\n", width-1, i)
	}
	events, stop := m.stream(object{"code": code, "stream": true, "timeoutMs": 0})
	defer stop()
	sum, n := sha256.New(), 0
	var x *api.Execution
	for e := range events {
		switch e.K {
		case api.KindStdout:
			sum.Write([]byte(e.Text))
			n += len(e.Text)
		case api.KindGap:
			t.Errorf("a gap of %d events", e.Missed)
		case api.KindExecution:
			x = e.Execution
		}
	}
	wanted := sha256.Sum256([]byte(want.String()))
	if n != want.Len() || hex.EncodeToString(sum.Sum(nil)) != hex.EncodeToString(wanted[:]) {
		t.Errorf("the stream had %d bytes of %d", n, want.Len())
	}
	if x == nil || x.Status != api.StatusOK || x.LostBytes != 0 || len(x.Overflow) != 1 || x.Overflow[0].Bytes != int64(want.Len()) || x.Overflow[0].Dropped != 0 {
		t.Fatal(show(x))
	}
	if b, err := fetch(m.agent, "/v1/interpreter/contexts/python/results/"+path.Base(x.Overflow[0].Path)); err != nil || string(b) != want.String() {
		t.Errorf("the file: %d bytes of %d, %v", len(b), want.Len(), err)
	}
}

// Requests one after the other take one connection.
func (m *machine) testKeepAlive(t *testing.T) {
	c := m.client(agentPort)
	defer c.CloseIdleConnections()
	reused := 0
	ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		if i.Reused {
			reused++
		}
	}})
	for range 20 {
		var h api.Health
		if err := askContext(ctx, c, "GET", "/v1/health", nil, &h); err != nil || h.Status != "ok" {
			t.Fatal(h, err)
		}
	}
	if reused != 19 {
		t.Errorf("%d of 19 requests came by a connection that was there", reused)
	}
}

// Many connections at once, with cells on some: each gets its own answer.
func (m *machine) testManyConnections(t *testing.T) {
	c := m.client(agentPort)
	c.Transport.(*http.Transport).DisableKeepAlives = true
	var open []net.Conn
	for range 50 { // idle ones take nothing from the others
		nc, err := dial(t.Context(), m.uds, agentPort)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, nc)
		defer nc.Close()
	}
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if i%4 > 0 {
				var h api.Health
				if err := ask(c, "GET", "/v1/health", nil, &h); err != nil {
					t.Error(err)
				}
				return
			}
			var x api.Execution
			text := strings.Repeat(fmt.Sprint(i, " "), 10_000)
			if err := ask(c, "POST", "/v1/interpreter:run", object{"code": fmt.Sprintf("print('%d ' * 10_000, end='')", i), "timeoutMs": 0}, &x); err != nil || x.Stdout != text {
				t.Errorf("%d: %v, %d bytes of %d", i, err, len(x.Stdout), len(text))
			}
		}()
	}
	wg.Wait()
	// The first of those that waited is still good.
	if _, err := fmt.Fprintf(open[0], "GET /v1/health HTTP/1.1\r\nHost: guest\r\nConnection: close\r\n\r\n"); err != nil {
		t.Error(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(open[0]), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var h api.Health
	if err := json.NewDecoder(res.Body).Decode(&h); err != nil || h.Status != "ok" {
		t.Errorf("%+v, %v", h, err)
	}
}
