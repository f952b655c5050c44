package fakekernel

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"sync"
)

type kernel struct {
	info    connectionFile
	start   string
	session string

	shell, control, stdin, iopub, heartbeat *socket

	requests chan request // shell's, one after the other
	replies  chan *message

	count int               // execution_count
	vars  map[string]string // what cells set: the kernel's state

	mu      sync.Mutex
	current *cell // what an interrupt stops, or nil
}

type request struct {
	conn *conn
	*message
}

func newKernel(info connectionFile, start string) *kernel {
	return &kernel{
		info:     info,
		start:    start,
		session:  newID(),
		requests: make(chan request, 10_000),
		replies:  make(chan *message, 100),
		vars:     make(map[string]string),
	}
}

func (k *kernel) serve(interrupts <-chan os.Signal) error {
	newSocket := func(typ string, handle func(*conn, [][]byte)) *socket {
		return &socket{start: k.start, typ: socketType(k.start, typ), handle: handle}
	}
	onMessage := func(handle func(request)) func(*conn, [][]byte) {
		return func(c *conn, frames [][]byte) {
			m, err := k.parse(frames)
			if err != nil {
				fmt.Fprintln(os.Stderr, "fakekernel: ignoring", err)
				return
			}
			handle(request{c, m})
		}
	}
	k.shell = newSocket("ROUTER", onMessage(func(r request) { k.requests <- r }))
	if k.start == StartDieAfterHandshake {
		k.shell.greeted = func(*conn) { die() }
	}
	k.control = newSocket("ROUTER", onMessage(k.handle))
	k.stdin = newSocket("ROUTER", onMessage(func(r request) { k.replies <- r.message }))
	k.iopub = newSocket("PUB", k.subscription)
	k.heartbeat = newSocket("REP", func(c *conn, frames [][]byte) { c.write(marshal(frames)) })

	for _, s := range []struct {
		*socket
		port int
	}{
		{k.heartbeat, k.info.Heartbeat}, {k.iopub, k.info.IOPub}, {k.control, k.info.Control},
		{k.stdin, k.info.Stdin}, {k.shell, k.info.Shell},
	} {
		if err := s.listen(k.info.address(s.port)); err != nil {
			return err
		}
	}
	k.publish(nil, "status", map[string]any{"execution_state": "starting"})
	for {
		select {
		case <-interrupts: // to an idle kernel it does nothing
			k.interrupt()
		case r := <-k.requests:
			if r.msgType() == "variables_request" && k.start == StartVariables {
				k.tellVariables(r, interrupts)
				continue
			}
			if r.msgType() != "execute_request" {
				k.handle(r)
				continue
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				k.execute(r)
			}()
			for running := true; running; {
				select {
				case <-interrupts:
					k.interrupt()
				case <-done:
					running = false
				}
			}
		}
	}
}

func (k *kernel) subscription(c *conn, frames [][]byte) {
	if len(frames) != 1 || len(frames[0]) == 0 || frames[0][0] != 1 {
		return
	}
	prefix := string(frames[0][1:])
	k.iopub.subscribe(c, prefix)
	if k.start == StartWelcome {
		m := k.newMessage("iopub_welcome", nil, map[string]any{"subscription": prefix})
		c.write(marshal(k.frames(m)))
	}
}

// handle answers everything but execute_request.
func (k *kernel) handle(r request) {
	k.publish(r.message, "status", status("busy"))
	defer k.publish(r.message, "status", status("idle"))
	switch r.msgType() {
	case "kernel_info_request":
		if k.start != StartNoKernelInfoReply {
			info := maps.Clone(kernelInfo)
			if k.start == StartVariables {
				info["supported_features"] = []string{"cellard variables"}
			}
			k.reply(r, "kernel_info_reply", info)
		}
	case "interrupt_request":
		k.interrupt()
		k.reply(r, "interrupt_reply", map[string]any{"status": "ok"})
	case "shutdown_request":
		var content struct {
			Restart bool `json:"restart"`
		}
		json.Unmarshal(r.content, &content)
		answer := map[string]any{"status": "ok", "restart": content.Restart}
		k.publish(r.message, "shutdown_reply", answer)
		k.reply(r, "shutdown_reply", answer)
		k.publish(r.message, "status", status("idle"))
		os.Exit(0)
	case "complete_request":
		k.reply(r, "complete_reply", map[string]any{
			"status": "ok", "matches": []string{"print", "print-nothing"}, "cursor_start": 0, "cursor_end": 2, "metadata": struct{}{},
		})
	case "inspect_request":
		k.reply(r, "inspect_reply", map[string]any{
			"status": "ok", "found": true, "data": map[string]any{"text/plain": "print TEXT"}, "metadata": struct{}{},
		})
	case "is_complete_request":
		k.reply(r, "is_complete_reply", map[string]any{"status": "complete"})
	case "history_request":
		k.reply(r, "history_reply", map[string]any{"status": "ok", "history": []any{}})
	case "comm_info_request":
		k.reply(r, "comm_info_reply", map[string]any{"status": "ok", "comms": struct{}{}})
	}
}

// tellVariables answers with what a cell has set as "answer", as it is; to "hang" it waits
// for an interrupt.
func (k *kernel) tellVariables(r request, interrupts <-chan os.Signal) {
	k.publish(r.message, "status", status("busy"))
	defer k.publish(r.message, "status", status("idle"))
	answer := k.vars["answer"]
	if answer == "hang" {
		<-interrupts
		answer = `{"status":"error","ename":"KeyboardInterrupt","evalue":""}`
	}
	k.reply(r, "variables_reply", json.RawMessage(answer))
}

var kernelInfo = map[string]any{
	"status":                 "ok",
	"protocol_version":       "5.3",
	"implementation":         "fake",
	"implementation_version": "1.0",
	"banner":                 "A kernel that misbehaves on demand.",
	"help_links":             []any{},
	"language_info": map[string]any{
		"name": "fake", "version": "1.0", "mimetype": "text/plain", "file_extension": ".txt",
	},
}

func status(state string) any { return map[string]any{"execution_state": state} }

func (k *kernel) interrupt() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.current != nil {
		k.current.interrupt()
	}
}

func (k *kernel) setCurrent(c *cell) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.current = c
}

// publish sends a message on iopub to those who subscribed.
func (k *kernel) publish(parent *message, msgType string, content any) {
	k.publishMessage(k.newMessage(msgType, parent, content))
}

func (k *kernel) publishMessage(m *message) {
	topic := []byte("kernel." + k.session + "." + m.msgType())
	m.identities = [][]byte{topic}
	k.publishRaw(marshal(k.frames(m)))
}

// publishRaw sends bytes on iopub, whatever they are.
func (k *kernel) publishRaw(pieces ...[]byte) {
	if k.start == StartNoIOPub {
		return
	}
	for _, c := range k.iopub.subscribed([]byte("kernel." + k.session)) {
		c.write(pieces...)
	}
}

func (k *kernel) reply(r request, msgType string, content any) {
	m := k.newMessage(msgType, r.message, content)
	m.identities = r.identities
	r.conn.write(marshal(k.frames(m)))
}
