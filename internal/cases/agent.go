package cases

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/cellard/cellard/protocol/api"
)

// callLimit bounds one call, so that an agent that hangs fails the case.
const callLimit = 3 * time.Minute

// Agent is a running agent, as a host sees it.
type Agent struct {
	client http.Client
}

// Dial returns the agent behind a Unix socket. It connects at each call.
func Dial(socket string) *Agent {
	return &Agent{client: http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", socket)
		},
	}}}
}

type answer struct {
	status int
	header http.Header
	body   []byte
}

// call makes one request; the answer's body is left unread for as long as stall.
func (a *Agent) call(ctx context.Context, method, path string, body any, stall time.Duration) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	var r io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return answer{}, err
		}
		r = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://agent"+path, r)
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := a.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	time.Sleep(stall)
	b, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header, b}, err
}

// run sends a cell and returns its Execution: the answer itself, or the last line
// of a stream where the reader stalls.
func (a *Agent) run(ctx context.Context, contextID string, s Step) (*api.Execution, error) {
	body := map[string]any{"context": contextID}
	for k, v := range s.Body {
		body[k] = v
	}
	if s.Stall > 0 {
		body["stream"] = true
	}
	ans, err := a.call(ctx, "POST", "/v1/interpreter:run", body, s.Stall)
	if err != nil {
		return nil, err
	}
	if ans.status != http.StatusOK {
		return nil, fmt.Errorf("run: HTTP %d: %.300s", ans.status, ans.body)
	}
	if s.Stall == 0 {
		return decode(ans.body)
	}
	lines := bytes.Split(bytes.TrimSpace(ans.body), []byte("\n"))
	last := lines[len(lines)-1]
	var e struct {
		K         api.Kind        `json:"k"`
		Execution json.RawMessage `json:"execution"`
	}
	if err := json.Unmarshal(last, &e); err != nil {
		return nil, fmt.Errorf("last event %.300s: %w", last, err)
	}
	if e.K != api.KindExecution {
		return nil, fmt.Errorf("last event %.300s: want an execution", last)
	}
	return decode(e.Execution)
}

func (a *Agent) execution(ctx context.Context, id string) (*api.Execution, error) {
	ans, err := a.call(ctx, "GET", "/v1/executions/"+url.PathEscape(id), nil, 0)
	if err != nil {
		return nil, err
	}
	if ans.status != http.StatusOK {
		return nil, fmt.Errorf("execution %s: HTTP %d: %.300s", id, ans.status, ans.body)
	}
	return decode(ans.body)
}

// decode reads an Execution, and refuses one that lacks a field: a host may count
// on each of them.
func decode(b []byte) (*api.Execution, error) {
	var ex api.Execution
	if err := json.Unmarshal(b, &ex); err != nil {
		return nil, fmt.Errorf("no Execution: %.300s: %w", b, err)
	}
	whole, err := api.Marshal(api.Execution{})
	if err != nil {
		return nil, err
	}
	var want, got map[string]json.RawMessage
	if err := json.Unmarshal(whole, &want); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, &got); err != nil {
		return nil, err
	}
	var missing []string
	for k := range want {
		if _, ok := got[k]; !ok {
			missing = append(missing, k)
		}
	}
	for _, r := range ex.Results {
		if r.Data == nil || r.Refs == nil {
			missing = append(missing, "data or refs of a result")
			break
		}
	}
	if missing != nil {
		slices.Sort(missing)
		return nil, fmt.Errorf("the Execution lacks %s: %.300s", strings.Join(missing, ", "), b)
	}
	return &ex, nil
}

// Run runs a case in a context of that id, made for it and deleted after it, which
// starts in cwd. It returns what fell short; nothing, when the case passed.
func (a *Agent) Run(ctx context.Context, c Case, contextID, cwd string) (faults []string) {
	context := map[string]any{"id": contextID, "language": c.Language, "cwd": cwd}
	ans, err := a.call(ctx, "POST", "/v1/interpreter/contexts", context, 0)
	if err != nil {
		return []string{fmt.Sprintf("create context: %v", err)}
	}
	if ans.status != http.StatusOK && ans.status != http.StatusCreated {
		return []string{fmt.Sprintf("create context: HTTP %d: %.300s", ans.status, ans.body)}
	}
	defer func() {
		ans, err := a.call(ctx, "DELETE", "/v1/interpreter/contexts/"+contextID, nil, 0)
		if err != nil || ans.status != http.StatusOK {
			faults = append(faults, fmt.Sprintf("delete context: HTTP %d: %.300s %v", ans.status, ans.body, err))
		}
	}()
	var ids []string
	for i, s := range c.Steps {
		fault := func(format string, args ...any) {
			faults = append(faults, fmt.Sprintf("step %d: ", i+1)+fmt.Sprintf(format, args...))
		}
		begin := time.Now()
		ex, err := a.run(ctx, contextID, s)
		took := time.Since(begin)
		if err != nil {
			fault("%v", err)
			return faults // later steps build on this one
		}
		ids = append(ids, ex.ID)
		if s.Then != nil {
			old, err := a.execution(ctx, ids[s.Then.Step-1])
			if err != nil {
				fault("%v", err)
			} else if shown := texts(old.Results); !slices.Equal(shown, s.Then.Shown) {
				fault("step %d shows %q, wanted %q", s.Then.Step, shown, s.Then.Shown)
			}
		}
		for _, f := range s.Expect.check(ex, took) {
			fault("%s", f)
		}
		for _, m := range s.Expect.Refs {
			if err := a.checkRef(ctx, contextID, ex, m); err != nil {
				fault("ref %s: %v", m, err)
			}
		}
	}
	return faults
}
