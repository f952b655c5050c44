package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cellard/cellard/protocol/api"
)

// Options are a Client's settings. A zero field stands for its default.
type Options struct {
	// Token is the bearer token, for an agent that is reached over TCP: without the
	// line's end that its file has.
	Token string
	// DialTimeout bounds the making of a connection; 10 s.
	DialTimeout time.Duration
	// AnswerTimeout bounds the wait for the answer to a request that is answered at
	// once, or for the beginning of a stream; 30 s.
	AnswerTimeout time.Duration
	// StartTimeout is in place of AnswerTimeout where the agent starts or ends a kernel
	// first; 5 min.
	StartTimeout time.Duration
	// Silence is how long nothing may come in the midst of an answer; 45 s. The agent
	// sends a line of a stream every 15 s at least, unless it was told otherwise.
	Silence time.Duration
	// Retries is how often in a row a request is sent again where that is safe, or a
	// stream attached to again, with growing pauses in between; 4, and none if below 0.
	Retries int
	// MaxAnswer bounds an answer in bytes, and a line of a stream; 64 MiB.
	MaxAnswer int64
	// Dial opens connections in place of what the address says.
	Dial Dialer
}

// ErrSilent is what a request or a stream ends with when nothing came for too long.
var ErrSilent = errors.New("the agent said nothing for too long; its machine may be paused or gone")

// ErrInstance is what a request ends with that could only be sent again to another
// instance of the agent, which doesn't know whether it was carried out.
var ErrInstance = errors.New("the agent has been started anew meanwhile, and it is not known what the one before has done")

// Client is one agent. Its methods may be called from anywhere.
type Client struct {
	o        Options
	address  string
	base     string
	http     *http.Client
	instance atomic.Pointer[string]
}

// New makes a Client of the agent at an address: unix:///PATH, vsock://CID:PORT,
// firecracker:///PATH?port=PORT (the Unix socket of a VM's vsock device), or
// http://HOST:PORT with a token. It dials nothing yet. The caller ends it with Close.
func New(address string, o Options) (*Client, error) {
	t, err := parseAddress(address)
	if err != nil {
		return nil, err
	}
	if strings.ContainsFunc(o.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("the token has a space, a line's end or what is not ASCII: trim what was read from a file")
	}
	if o.Dial != nil {
		t.dial = o.Dial
	}
	o.DialTimeout = cmp.Or(o.DialTimeout, 10*time.Second)
	o.AnswerTimeout = cmp.Or(o.AnswerTimeout, 30*time.Second)
	o.StartTimeout = cmp.Or(o.StartTimeout, 5*time.Minute)
	o.Silence = cmp.Or(o.Silence, 45*time.Second)
	o.Retries = max(cmp.Or(o.Retries, 4), 0)
	o.MaxAnswer = cmp.Or(o.MaxAnswer, 64<<20)
	c := &Client{o: o, address: address, base: t.base}
	c.http = &http.Client{
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				return c.connect(ctx, t.dial, network, addr)
			},
			TLSHandshakeTimeout:    o.DialTimeout,
			DisableCompression:     true, // a small answer could unpack to any size
			MaxIdleConnsPerHost:    16,
			IdleConnTimeout:        90 * time.Second, // before the agent closes them
			MaxResponseHeaderBytes: 64 << 10,
			ReadBufferSize:         64 << 10,
		},
		// A guest must not send its host, with the token, elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

// dialError marks a request that never reached the agent.
type dialError struct{ error }

func (e *dialError) Unwrap() error { return e.error }

func (c *Client) connect(ctx context.Context, dial Dialer, network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.o.DialTimeout, ErrSilent)
	defer cancel()
	var nc net.Conn
	var err error
	if dial != nil {
		nc, err = dial(ctx)
	} else {
		nc, err = (&net.Dialer{}).DialContext(ctx, network, addr)
	}
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, err
	}
	return nc, nil
}

// Address is the agent's, as it was given to New.
func (c *Client) Address() string { return c.address }

// Close closes the connections that are kept for reuse. Streams that are being read end
// by their own Close.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// request is what is sent, and when it may be sent again.
type request struct {
	method, path string
	body         []byte
	key          string // Idempotency-Key
	header       http.Header
	again        bool          // it may be carried out twice
	timeout      time.Duration // for the answer's beginning
}

// failed is what a request ended with, with the id that finds it in the agent's log, where
// there is one: the agent's word, or the caller's.
func (r request) failed(ctx context.Context, err error) error {
	id := api.RequestID(ctx)
	var refusal *api.Error
	if errors.As(err, &refusal) && refusal.RequestID != "" {
		id = refusal.RequestID
	}
	if id != "" {
		return fmt.Errorf("%s %s (request %s): %w", r.method, r.path, id, err)
	}
	return fmt.Errorf("%s %s: %w", r.method, r.path, err)
}

// answer is a response whose body is read with a bound on each silence.
type answer struct {
	*http.Response
	silence time.Duration
	timer   *time.Timer
	cancel  context.CancelCauseFunc
	ctx     context.Context
}

// Close gives the connection back if the body was read to its end, else closes it.
func (a *answer) Close() {
	a.timer.Stop()
	a.Body.Close()
	a.cancel(context.Canceled)
}

// Read puts the end off with each piece that comes, and tells a silence, and the end of
// the caller's context, by their names.
func (a *answer) Read(b []byte) (int, error) {
	n, err := a.Body.Read(b)
	if n > 0 {
		a.timer.Reset(a.silence)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		if cause := context.Cause(a.ctx); cause != nil {
			err = cause
		}
	}
	return n, err
}

// requestID is the id that the agent says the request had. What comes is a stranger's: one
// that could not be logged is none.
func (a *answer) requestID() string {
	if id := a.Header.Get(api.RequestIDHeader); api.ValidRequestID(id) {
		return id
	}
	return ""
}

// send makes a request and returns the answer of one that was not refused; the caller
// closes it. Each silence of over Options.Silence ends it with ErrSilent.
func (c *Client) send(ctx context.Context, r request) (*answer, error) {
	if id := api.RequestID(ctx); id != "" && !api.ValidRequestID(id) {
		return nil, fmt.Errorf("%s %s: %q is no id for a request: want 1 to 128 letters, digits and -._~:/+=@", r.method, r.path, id)
	}
	for try := 0; ; try++ {
		a, err := c.sendOnce(ctx, r)
		if err == nil {
			return a, nil
		}
		err = r.failed(ctx, err)
		if try >= c.o.Retries || ctx.Err() != nil || !c.mayRepeat(r, err) {
			return nil, err
		}
		if err := c.pause(ctx, try); err != nil {
			return nil, err
		}
		var unsent *dialError
		if r.key != "" && !errors.As(err, &unsent) {
			if same, e := c.sameInstance(ctx); e != nil || !same {
				return nil, errors.Join(err, cmp.Or(e, ErrInstance))
			}
		}
	}
}

func (c *Client) mayRepeat(r request, err error) bool {
	var refusal *api.Error
	if errors.As(err, &refusal) || errors.Is(err, errTooLarge) {
		return false
	}
	var unsent *dialError
	return errors.As(err, &unsent) || r.again || r.key != ""
}

// pause waits before another try: 50 ms, then twice as long each time, 2 s at most.
// What is kept of connections goes, for those are likely as dead.
func (c *Client) pause(ctx context.Context, try int) error {
	c.http.CloseIdleConnections()
	t := time.NewTimer(min(50*time.Millisecond<<min(try, 10), 2*time.Second))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (c *Client) sendOnce(parent context.Context, r request) (*answer, error) {
	ctx, cancel := context.WithCancelCause(parent)
	// The dial has a bound of its own; what is waited for from then on is the answer.
	a := &answer{ctx: ctx, cancel: cancel, timer: time.AfterFunc(2*c.o.DialTimeout, func() { cancel(ErrSilent) })}
	var connected atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		connected.Store(true)
		a.timer.Reset(r.timeout)
	}}
	fail := func(err error) (*answer, error) {
		a.timer.Stop()
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		cancel(context.Canceled)
		if errors.Is(err, ErrSilent) {
			c.http.CloseIdleConnections()
		}
		if !connected.Load() {
			err = &dialError{err}
		}
		return nil, err
	}
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace), r.method, c.base+r.path, bytes.NewReader(r.body))
	if err != nil {
		return fail(err)
	}
	req.GetBody = nil // without it net/http sends nothing again by itself
	for k, v := range r.header {
		req.Header[k] = v
	}
	if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.key != "" {
		req.Header.Set("Idempotency-Key", r.key)
	}
	if id := api.RequestID(parent); id != "" {
		req.Header.Set(api.RequestIDHeader, id)
	}
	if c.o.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.o.Token)
	}
	res, err := c.http.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err // it says once more what was asked
		}
		return fail(err)
	}
	a.Response, a.silence = res, c.o.Silence
	a.timer.Reset(c.o.Silence)
	if res.StatusCode < 200 || res.StatusCode > 299 {
		defer a.Close()
		return nil, c.refusal(a)
	}
	return a, nil
}

// maxRefusal bounds the body of a refusal: a kernel's last words are in it.
const maxRefusal = 1 << 20

// refusal reads an *api.Error, or says what came in its place.
func (c *Client) refusal(a *answer) error {
	b, err := io.ReadAll(io.LimitReader(a, maxRefusal))
	var body api.ErrorBody
	if err == nil && json.Unmarshal(b, &body) == nil && body.Error != nil && body.Error.Code != "" {
		body.Error.Status, body.Error.RequestID = a.StatusCode, a.requestID()
		return body.Error
	}
	return fmt.Errorf("HTTP %.100q, and not from an agent: %.200q", a.Status, b)
}

var errTooLarge = errors.New("the answer is larger than Options.MaxAnswer")

// call makes a request with a JSON body, and decodes the answer's.
func (c *Client) call(ctx context.Context, r request, body, into any) error {
	if body != nil {
		b, err := api.Marshal(body)
		if err != nil {
			return err
		}
		r.body = b
	}
	r.timeout = cmp.Or(r.timeout, c.o.AnswerTimeout)
	r.again = r.again || r.method == http.MethodGet
	b, err := c.fetch(ctx, r)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, into); err != nil {
		return r.failed(ctx, fmt.Errorf("the answer: %w", err))
	}
	return nil
}

// fetch reads the answer whole.
func (c *Client) fetch(ctx context.Context, r request) ([]byte, error) {
	for try := 0; ; try++ {
		a, err := c.send(ctx, r)
		if err != nil {
			return nil, err
		}
		b, err := io.ReadAll(io.LimitReader(a, c.o.MaxAnswer+1))
		a.Close()
		if err == nil && int64(len(b)) > c.o.MaxAnswer {
			err = errTooLarge
		}
		if err == nil {
			return b, nil
		}
		err = r.failed(ctx, err)
		if try >= c.o.Retries || ctx.Err() != nil || !c.mayRepeat(r, err) {
			return nil, err
		}
		if err := c.pause(ctx, try); err != nil {
			return nil, err
		}
	}
}
