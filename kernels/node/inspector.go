package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	waiting map[int]chan reply
	err     error // why no more comes
}

// reply is an answer, or why there is none.
type reply struct {
	result json.RawMessage
	err    error
}

const (
	// inspectorWithin bounds the connection and what is asked at the start.
	inspectorWithin = 20 * time.Second
	// sendWithin bounds a message's way to Node. A Node that is halted takes some hundred
	// kilobytes.
	sendWithin = 5 * time.Second
	// maxReply bounds an answer. Those to what is asked here are some hundred bytes.
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
	conn.SetReadLimit(maxReply)
	i := &inspector{conn: conn, waiting: make(map[int]chan reply)}
	i.wg.Add(1)
	go i.read()
	return i, nil
}

func (i *inspector) read() {
	defer i.wg.Done()
	for {
		_, b, err := i.conn.Read(context.Background())
		var m struct {
			ID     int
			Method string
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		if err == nil {
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
		r := reply{result: m.Result}
		if m.Error != nil {
			r.err = errors.New("node's debugging interface: " + m.Error.Message)
		}
		answer <- r
	}
}

// end closes the connection, and tells all that wait.
func (i *inspector) end(err error) {
	_ = i.conn.CloseNow()
	i.mu.Lock()
	defer i.mu.Unlock()
	i.err = err
	for id, answer := range i.waiting {
		delete(i.waiting, id)
		answer <- reply{err: err}
	}
}

// post sends a message. The channel gets the one answer, which may never come.
func (i *inspector) post(method string, params map[string]any) <-chan reply {
	answer := make(chan reply, 1)
	i.mu.Lock()
	if i.err != nil {
		answer <- reply{err: i.err}
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
	select {
	case r := <-i.post(method, params):
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
