package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// inspector is a connection to Node's debugging interface: JSON in the Chrome DevTools
// Protocol, over a WebSocket on the loopback interface. Node takes what comes in a thread
// of its own, and does it in the main one at the next call of a function or turn of a
// loop, so also while that computes.
//
// Whoever knows the address's path, a random UUID, has the interface. Node tells it to
// this process alone: process.go's flags keep it from Node's own list of such addresses.
type inspector struct {
	conn *websocket.Conn
	wg   sync.WaitGroup

	mu      sync.Mutex
	last    int
	waiting map[int]*reply
	err     error // why no more comes
}

// reply is an answer, or why there is none, once it has come.
type reply struct {
	come   chan struct{} // closed when it has
	result json.RawMessage
	err    error
}

func (r *reply) is(result json.RawMessage, err error) {
	r.result, r.err = result, err
	close(r.come)
}

// has reports whether it has come.
func (r *reply) has() bool {
	select {
	case <-r.come:
		return true
	default:
		return false
	}
}

const (
	// inspectorWithin bounds the connection and what is asked at the start.
	inspectorWithin = 20 * time.Second
	// sendWithin bounds a message's way to Node. A Node that is halted takes some hundred
	// kilobytes.
	sendWithin = 5 * time.Second
	// maxReply bounds what is read of a message. The answers to what is asked here are some
	// hundred bytes; an event can be large by what a cell does (a source map, a deep stack),
	// and is nothing that matters.
	maxReply = 1 << 20
)

// connectInspector connects to the interface that Node has told of, and begins to read.
func connectInspector(ctx context.Context, address string) (*inspector, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "ws" || u.Hostname() != "127.0.0.1" {
		return nil, fmt.Errorf("%q is no address of Node's debugging interface on 127.0.0.1: take --inspect out of NODE_OPTIONS", address)
	}
	conn, _, err := websocket.Dial(ctx, address, nil)
	if err != nil {
		return nil, fmt.Errorf("the debugging interface of Node can't be reached, without which nothing stops a cell: is the loopback interface up (ip link set lo up)? %w", err)
	}
	conn.SetReadLimit(-1) // it would end the connection: see next
	i := &inspector{conn: conn, waiting: make(map[int]*reply)}
	i.wg.Add(1)
	go i.read()
	return i, nil
}

func (i *inspector) read() {
	defer i.wg.Done()
	for {
		b, err := i.next()
		var m struct {
			ID     int
			Method string
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		if err == nil && len(b) <= maxReply {
			err = json.Unmarshal(b, &m)
		}
		if err != nil {
			i.end(err)
			return
		}
		if m.Method == "NodeRuntime.waitingForDisconnect" { // it ends, once nobody is connected
			i.end(errors.New("node is about to end"))
			return
		}
		i.mu.Lock()
		answer := i.waiting[m.ID]
		delete(i.waiting, m.ID)
		i.mu.Unlock()
		if answer == nil {
			continue // an event
		}
		if m.Error != nil {
			err = errors.New("node's debugging interface: " + m.Error.Message)
		}
		answer.is(m.Result, err)
	}
}

// next is the next message, of one that is too large its begin.
func (i *inspector) next() ([]byte, error) {
	_, r, err := i.conn.Reader(context.Background())
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(r, maxReply+1))
	if err == nil {
		_, err = io.Copy(io.Discard, r)
	}
	return b, err
}

// ended reports whether no more comes.
func (i *inspector) ended() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.err != nil
}

// end closes the connection, and tells all that wait.
func (i *inspector) end(err error) {
	_ = i.conn.CloseNow()
	i.mu.Lock()
	defer i.mu.Unlock()
	i.err = err
	for id, answer := range i.waiting {
		delete(i.waiting, id)
		answer.is(nil, err)
	}
}

// post sends a message. The answer may never come.
func (i *inspector) post(method string, params map[string]any) *reply {
	answer := &reply{come: make(chan struct{})}
	i.mu.Lock()
	if i.err != nil {
		answer.is(nil, i.err)
		i.mu.Unlock()
		return answer
	}
	i.last++
	id := i.last
	i.waiting[id] = answer
	i.mu.Unlock()
	b, err := json.Marshal(map[string]any{"id": id, "method": method, "params": params})
	if err != nil {
		panic(fmt.Sprintf("node: a message: %v", err)) // can't be: they are of our own types
	}
	ctx, cancel := context.WithTimeout(context.Background(), sendWithin)
	defer cancel()
	_ = i.conn.Write(ctx, websocket.MessageText, b) // if it fails the reader hears of it
	return answer
}

// ask sends a message and decodes the answer.
func (i *inspector) ask(ctx context.Context, method string, params map[string]any, into any) error {
	r := i.post(method, params)
	select {
	case <-r.come:
		if r.err != nil || into == nil {
			return r.err
		}
		return json.Unmarshal(r.result, into)
	case <-ctx.Done():
		return fmt.Errorf("node's debugging interface: %s: %w", method, context.Cause(ctx))
	}
}

// close ends the connection, and waits for the reader.
func (i *inspector) close() {
	_ = i.conn.CloseNow()
	i.wg.Wait()
}
