package fakekernel

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// pause is between two things whose order a client is to see: they go through
// different sockets.
const pause = 50 * time.Millisecond

// How a cell misbehaves. These act where they stand in the cell:
//
//	!foreign-parent   a stream, an execute_reply and an idle with a parent that nobody sent
//	!bad-signature    a stream and an execute_reply whose signature is wrong
//	!replay           a stream, and the very same bytes again
//	!huge N           one stream message with N bytes of text, in lines of 100
//	!flood N          N stream messages as fast as they go
//	!many-frames N    a stream with N buffers, each empty
//	!garbage-json     signed messages whose content, and whose header, isn't JSON
//	!deep-json        a stream with 100,000 arrays in one another besides its text
//	!bad-utf8         a stream whose text has bytes and a surrogate that are no characters
//	!frame-2^63       iopub announces a frame of 2^63 bytes
//	!garbage-zmtp     iopub goes on with random bytes
//	!close-iopub      iopub's connections are closed
//	!die-mid-message  SIGKILL after half a message on iopub
//	!freeze           SIGSTOP
//	!deaf             the cell ignores interrupts from here on
//
// These change how the cell begins and ends, wherever they stand:
//
//	!no-busy !no-idle !no-reply
//	!idle-first       idle, a moment later execute_reply
//	!reply-first      execute_reply, a moment later idle; without either there is no moment between
//	!idle-twice !reply-twice
//	!late TEXT        a line of output that names this cell, after both
//	!die-before-busy  SIGKILL
//	!die-after-busy
//	!die-before-idle  with all output sent, neither reply nor idle
//	!die-after-idle   with no reply (idle comes first)
//	!die-after-reply  with no idle
func (c *cell) misbehave(name, arg string) *failure {
	switch name {
	case "!no-busy", "!no-idle", "!no-reply", "!idle-first", "!reply-first", "!idle-twice", "!reply-twice", "!late",
		"!die-before-busy", "!die-after-busy", "!die-before-idle", "!die-after-idle", "!die-after-reply":
		return nil
	case "!huge", "!flood", "!many-frames":
		n, err := strconv.Atoi(arg)
		if err != nil {
			return &failure{"SyntaxError", name + ": " + err.Error()}
		}
		switch name {
		case "!huge":
			c.huge(n)
		case "!flood":
			for i := range n {
				c.stream("stdout", "line "+strconv.Itoa(i+1)+"\n")
			}
		case "!many-frames":
			m := c.streamMessage("many frames\n")
			m.buffers = make([][]byte, n)
			c.publishMessage(m)
		}
	case "!foreign-parent":
		c.foreignParent()
	case "!bad-signature":
		c.publishRaw(marshal(c.forge(c.streamMessage("forged\n"))))
		m := c.newMessage("execute_reply", c.r.message, map[string]any{"status": "error", "ename": "Forged", "evalue": "", "traceback": []string{}})
		c.r.conn.write(marshal(c.forge(m)))
	case "!replay":
		b := marshal(c.frames(c.streamMessage("said once\n")))
		c.publishRaw(b)
		c.publishRaw(b)
	case "!garbage-json":
		m := c.streamMessage("")
		m.content = []byte(`{"name": "stdout", "text": "cut off`)
		c.publishRaw(marshal(c.frames(m)))
		m = c.streamMessage("")
		m.header = []byte("\x00header")
		c.publishRaw(marshal(c.frames(m)))
	case "!deep-json":
		const depth = 100_000
		m := c.streamMessage("")
		m.content = []byte(`{"deep": ` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + `, "name": "stdout", "text": "deep\n"}`)
		c.publishMessage(m)
	case "!bad-utf8":
		m := c.streamMessage("")
		m.content = []byte("{\"name\": \"stdout\", \"text\": \"a\xffb\xc3(c\\ud800d\\n\"}")
		c.publishMessage(m)
	case "!frame-2^63":
		c.publishRaw(header(0, 1<<63), []byte("and so on"))
	case "!garbage-zmtp":
		b := make([]byte, 1000)
		rand.Read(b)
		b[0] = 0xFF // no flags that there are
		c.publishRaw(b)
	case "!close-iopub":
		c.iopub.closeConns()
	case "!die-mid-message":
		b := marshal(c.frames(c.streamMessage(strings.Repeat("x", 1000))))
		c.publishRaw(b[:len(b)/2])
		die()
	case "!freeze":
		syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	case "!deaf":
		c.mu.Lock()
		c.deaf = true
		c.mu.Unlock()
	default:
		return &failure{"SyntaxError", name}
	}
	return nil
}

func (c *cell) has(quirk string) bool {
	_, ok := c.quirks[quirk]
	return ok
}

func (c *cell) dieIf(quirk string) {
	if c.has(quirk) {
		die()
	}
}

// end sends what ends a cell.
func (c *cell) end(answer any) {
	reply := func() {
		if !c.has("!no-reply") {
			c.reply(c.r, "execute_reply", answer)
		}
		if c.has("!reply-twice") {
			c.reply(c.r, "execute_reply", answer)
		}
		c.dieIf("!die-after-reply")
	}
	idle := func() {
		if !c.has("!no-idle") {
			c.publish(c.r.message, "status", status("idle"))
		}
		if c.has("!idle-twice") {
			c.publish(c.r.message, "status", status("idle"))
		}
		c.dieIf("!die-after-idle")
	}
	first, second := reply, idle
	if c.has("!idle-first") || c.has("!die-after-idle") {
		first, second = idle, reply
	}
	first()
	if c.has("!idle-first") || c.has("!reply-first") {
		time.Sleep(pause)
	}
	second()
	if c.has("!late") {
		c.publish(c.r.message, "stream", map[string]any{"name": "stdout", "text": c.quirks["!late"] + "\n"})
	}
}

// streamMessage is a line of output that isn't sent yet.
func (c *cell) streamMessage(text string) *message {
	m := c.newMessage("stream", c.r.message, map[string]any{"name": "stdout", "text": text})
	m.identities = [][]byte{[]byte("kernel." + c.session + ".stream")}
	return m
}

// forge gives a message a signature that isn't its own, of the right length.
func (c *cell) forge(m *message) [][]byte {
	frames := c.frames(m)
	for i, f := range frames {
		if string(f) == delimiter {
			frames[i+1] = bytes.Repeat([]byte("0"), len(frames[i+1]))
		}
	}
	return frames
}

func (c *cell) foreignParent() {
	stranger := &message{header: c.newHeader("execute_request")}
	c.publish(stranger, "stream", map[string]any{"name": "stdout", "text": "of another cell\n"})
	m := c.newMessage("execute_reply", stranger, map[string]any{
		"status": "error", "ename": "Foreign", "evalue": "", "traceback": []string{}, "execution_count": c.count,
	})
	c.r.conn.write(marshal(c.frames(m)))
	c.publish(stranger, "status", status("idle"))
}

// huge sends a message that is never whole in memory here either.
func (c *cell) huge(n int) {
	const width = 100 // of a line's text, its newline with it
	var (
		begin = []byte(`{"name": "stdout", "text": "`)
		line  = append(bytes.Repeat([]byte("x"), width-1), `\n`...)
		chunk = bytes.Repeat(line, 10_000)
		rest  = bytes.Repeat(line, n/width%10_000)
		end   = append(bytes.Repeat([]byte("x"), n%width), `"}`...)
	)
	content := func(yield func([]byte)) {
		yield(begin)
		for range n / width / 10_000 {
			yield(chunk)
		}
		yield(rest)
		yield(end)
	}
	m := c.streamMessage("")
	h := hmac.New(sha256.New, []byte(c.info.Key))
	for _, p := range [][]byte{m.header, m.parent, m.metadata} {
		h.Write(p)
	}
	size := 0
	content(func(b []byte) {
		h.Write(b)
		size += len(b)
	})
	head := [][]byte{m.identities[0], []byte(delimiter), hex.AppendEncode(nil, h.Sum(nil)), m.header, m.parent, m.metadata}
	pieces := [][]byte{marshal(append(head, nil))}
	pieces[0] = pieces[0][:len(pieces[0])-2] // the last frame's header is for an empty one
	pieces = append(pieces, header(0, uint64(size)))
	content(func(b []byte) { pieces = append(pieces, b) }) // the chunk again and again
	c.publishRaw(pieces...)
}
