package supervisor

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/cellard/cellard/execution"
	"github.com/cellard/cellard/internal/logging"
	"github.com/cellard/cellard/internal/procfs"
	"github.com/cellard/cellard/mime"
	"github.com/cellard/cellard/notebook"
	"github.com/cellard/cellard/protocol/api"
	"github.com/cellard/cellard/protocol/jupyter"
)

// task is a cell that waits in a context's queue.
type task struct {
	e      *execution.Execution
	req    api.RunRequest
	unsent bool // a kernel was found dead when it was sent
}

// cell is the one that runs. Done is reply and idle, in either order.
type cell struct {
	task
	msgID    string
	timeout  time.Duration // 0: none
	sent     time.Time     // just before the send: no busy is older
	busyBy   time.Time     // from when the deadline counts without a busy
	due      time.Time     // the deadline, once it counts; zero before and without one
	busy     bool
	idle     bool
	reply    *jupyter.ExecuteReply
	restored *api.Lost // why the state is that from before the cell
	settle   time.Time // when the other of reply and idle is asked after, and then given up
	probe    string    // message id of that question
	stop     *stop
	born     procfs.Moment // processes after it are the cell's
	asked    *jupyter.Header
	ask      *question // an input_request that has not been taken yet

	unspilled int64 // of the client's statistics, at the start
}

// question is an input_request. It comes on a channel of its own and may overtake
// output that was sent before it. So it is taken only once a request on control, sent
// when it came, shows on iopub: behind that output. A kernel that answers none
// while it waits for input is given a moment.
type question struct {
	header   jupyter.Header
	prompt   string
	password bool
	behind   string    // message id of that request
	by       time.Time // when it is taken without
}

// The bounds of a cell's protocol.
const (
	busyWithin   = 5 * time.Second        // after which the deadline counts without a busy
	settleWithin = 2 * time.Second        // for the other of reply and idle, before it is asked after
	settleMost   = time.Minute            // for the answer to that
	askWithout   = 100 * time.Millisecond // for the output before a question
)

// send starts a task on the kernel.
func (s *session) send(t *task) {
	k := s.k
	c := &cell{task: *t, timeout: api.DefaultTimeoutMs * time.Millisecond}
	if t.req.TimeoutMs != nil {
		c.timeout = millis(*t.req.TimeoutMs)
	}
	s.between(k.raw.Drain()) // what came while idle is no cell's
	s.decoders = [2]mime.Decoder{}
	c.born = procfs.Now()
	k.meter.Begin()
	c.unspilled = k.client.Stats().UnspilledBytes
	msg := k.client.NewMessage("execute_request", jupyter.ExecuteRequest{
		Code:            t.req.Code,
		StoreHistory:    true,
		UserExpressions: map[string]string{},
		AllowStdin:      t.req.Stdin != nil,
		StopOnError:     false,
	})
	if t.req.Env != nil || t.req.Cwd != "" {
		msg.Metadata = map[string]any{"cellard": map[string]any{"env": t.req.Env, "cwd": t.req.Cwd}}
	}
	c.msgID, c.sent = msg.Header.MsgID, time.Now()
	s.about(t.e).Debug("a cell is sent", "generation", s.gen, "code", logging.Content(t.req.Code))
	err := k.client.Send(jupyter.Shell, msg)
	// A child that ran out of memory in an earlier cell is not this one's end. It takes the
	// system a while to tell, in which the kernel already reads the cell.
	k.oomsAt = procfs.OOMKills()
	if err != nil {
		s.about(t.e).Warn("sending a cell", "generation", s.gen, "error", err)
		if s.awaitEnd(err) && !t.unsent {
			// It had died while idle, which could not be seen before. Of a message that
			// was not sent whole no code runs: the cell is for the next kernel.
			t.unsent = true
			s.requeue(t)
			s.kernelGone()
			return
		}
	}
	e := t.e
	s.journal.Begin(notebook.Cell{ID: e.ID(), Generation: s.gen, Code: t.req.Code, LastSeq: e.LastSeq,
		Outcome: func() api.Execution { x, _ := e.Outcome(); return x },
		Events:  func() notebook.Events { return e.Events(0) }})
	t.req.Code, c.req.Code = "", "" // it may be large, and the cell may run for long
	s.cur = c
	k.words = lastWords{} // those of an earlier cell tell nothing of this one's end
	t.e.Begin(s.gen, s.count+1, s.fresh, s.lostIdle)
	c.busyBy = time.Now().Add(busyWithin)
	s.fresh, s.lostIdle = false, nil
	s.publish()
	if err != nil {
		s.kernelGone()
	}
}

func millis(n int64) time.Duration {
	const most = int64(1<<62) / int64(time.Millisecond)
	return time.Duration(min(n, most)) * time.Millisecond
}

// message takes one message of the running cell's.
func (s *session) message(c *cell, m *jupyter.Message) {
	switch m.Channel {
	case jupyter.IOPub:
		s.output(c.e, m)
		switch m.Header.MsgType {
		case "status":
			var st jupyter.Status
			if m.Content.Decode(&st, smallContent) != nil {
				return
			}
			switch st.ExecutionState {
			case "busy":
				if !c.busy {
					c.busy = true
					c.e.Busy(c.at(m))
					c.count()
				}
			case "idle":
				c.idle = true
				at := c.at(m)
				c.e.Time(func(t *api.Timing) { t.Idle = &at })
			}
		case "execute_input":
			n := 0
			if pick(m.Content, "execution_count", &n) == nil && n > 0 {
				s.count = n
				c.e.Count(n)
			}
			at := c.at(m)
			c.e.Time(func(t *api.Timing) { t.Input = &at })
		}
	case jupyter.Shell:
		if m.Header.MsgType == "execute_reply" && c.reply == nil {
			c.reply = decodeReply(m)
			at := c.at(m)
			c.e.Time(func(t *api.Timing) { t.Reply = &at })
			if s.k.launch.Own {
				c.restored = restored(m)
			}
			if c.reply.ExecutionCount > 0 {
				s.count = c.reply.ExecutionCount
				c.e.Count(s.count)
			}
		}
	case jupyter.Stdin:
		if m.Header.MsgType == "input_request" {
			s.question(c, m)
		}
	}
	if c.idle != (c.reply != nil) && c.settle.IsZero() { // one is there, and the other is not
		c.settle = time.Now().Add(settleWithin)
	}
	if c.through() && (c.stop == nil || s.swept(c)) {
		s.finish(c, false)
	}
}

// through reports whether the kernel is through with the cell.
func (c *cell) through() bool { return c.idle && c.reply != nil }

// restored is what a reply's metadata says of an interpreter that has ended under the
// cell, and whose state another holds.
func restored(m *jupyter.Message) *api.Lost {
	var metadata struct {
		Cellard struct {
			Restored *api.Lost `json:"restored"`
		} `json:"cellard"`
	}
	_ = json.Unmarshal(m.Metadata, &metadata) // what can't be read says nothing
	return metadata.Cellard.Restored
}

// askAfter asks after the other of reply and idle with a kernel_info_request. What a
// channel carries keeps its order: when the answer comes, what was waited for has
// come before it or never will, however long a huge output was on its way.
func (s *session) askAfter(c *cell) {
	msg := s.k.client.NewMessage("kernel_info_request", struct{}{})
	c.probe, c.settle = msg.Header.MsgID, time.Now().Add(settleMost)
	_ = s.k.client.Send(jupyter.Shell, msg) // an error is the channel's end, and met there
}

// answered takes what came of askAfter's question.
func (s *session) answered(c *cell, m *jupyter.Message) {
	if m.Channel == jupyter.IOPub && !c.idle || m.Channel == jupyter.Shell && c.reply == nil {
		s.finish(c, true)
	}
}

// at is when the kernel sent a message of the cell's.
func (c *cell) at(m *jupyter.Message) time.Time { return sentAt(m.Header.Date, c.sent, time.Now()) }

// sentAt is when the kernel sent a message, by the message's date: on a loaded machine
// the agent may see a busy only when the cell is nearly over. The date is a stranger's,
// and without a meaning where it is before the cell's send, to come, or no date.
func sentAt(date string, sent, now time.Time) time.Time {
	at, err := time.Parse(time.RFC3339Nano, date)
	if err != nil {
		return now
	}
	return now.Add(-min(max(0, now.Sub(at)), now.Sub(sent)))
}

// count starts the deadline.
func (c *cell) count() {
	if c.timeout > 0 && c.due.IsZero() && c.stop == nil {
		c.due = time.Now().Add(c.timeout)
	}
}

func (s *session) question(c *cell, m *jupyter.Message) {
	var r jupyter.InputRequest
	if err := m.Content.Decode(&r, smallContent); err != nil {
		r.Prompt = ""
	}
	msg := s.k.client.NewMessage("kernel_info_request", struct{}{})
	c.ask = &question{header: m.Header, prompt: r.Prompt, password: r.Password, behind: msg.Header.MsgID, by: time.Now().Add(askWithout)}
	if err := s.k.client.Send(jupyter.Control, msg); err != nil {
		c.ask.by = time.Now()
	}
}

// input answers the question, or has the cell stopped where there is no answer.
func (s *session) input(c *cell) {
	s.takeRaw(c.e) // what it is asked with
	q := c.ask
	c.ask = nil
	answer, ok, live := c.e.Ask(q.prompt, q.password)
	c.asked = &q.header
	switch {
	case ok:
		s.answer(c, answer)
	case !live:
		s.stopCell(whyNoInput)
	}
}

func (s *session) answer(c *cell, value string) {
	msg := s.k.client.NewMessage("input_reply", jupyter.InputReply{Value: value})
	msg.Parent = c.asked
	c.asked = nil
	if err := s.k.client.Send(jupyter.Stdin, msg); err != nil {
		s.about(c.e).Warn("sending an answer", "generation", s.gen, "error", err)
	}
}

// nextDue is when the cell needs attention; zero for never.
func (s *session) nextDue(c *cell) time.Time {
	var t time.Time
	sooner := func(u time.Time) {
		if !u.IsZero() && (t.IsZero() || u.Before(t)) {
			t = u
		}
	}
	if c.through() { // what it has started is being ended
		return c.stop.sweep.next
	}
	sooner(c.settle)
	if c.ask != nil {
		sooner(c.ask.by)
	}
	if c.stop != nil {
		grace := s.m.o.InterruptGrace
		if c.stop.rung < len(ladder) {
			grace = min(grace, ladder[c.stop.rung].after)
		}
		sooner(c.stop.from.Add(grace))
		return t
	}
	sooner(c.due)
	if c.due.IsZero() && c.timeout > 0 {
		sooner(c.busyBy)
	}
	return t
}

// tickCell does what is due.
func (s *session) tickCell(c *cell) {
	t := time.Now()
	past := func(u time.Time) bool { return !u.IsZero() && !t.Before(u) }
	switch {
	case c.through():
		if s.swept(c) {
			s.finish(c, false)
		}
	case past(c.settle) && c.probe == "":
		s.askAfter(c)
	case past(c.settle):
		s.finish(c, true)
	case c.ask != nil && past(c.ask.by):
		s.input(c)
	case c.stop != nil:
		s.climb(c)
	case past(c.due):
		s.stopCell(whyTimeout)
	case past(c.busyBy):
		c.count()
	}
}

// finish ends the cell on a kernel that lives.
func (s *session) finish(c *cell, incomplete bool) {
	s.endRaw(c.e)
	end := execution.Ending{Status: api.StatusOK, Incomplete: incomplete, Usage: s.usage()}
	raised := c.e.Raised()
	if raised == nil && c.reply != nil && c.reply.Status == "error" {
		// No error on iopub (an old kernel, or a cell refused before it ran).
		err := api.CellError{Name: c.reply.EName, Value: c.reply.EValue, Traceback: strings.Join(c.reply.Traceback, "\n")}
		end.Error, raised = &err, &err
	}
	if raised != nil || c.reply != nil && c.reply.Status != "ok" {
		end.Status = api.StatusError
	}
	aborted := raised == nil && end.Status == api.StatusError
	if c.stop != nil {
		s.stopped(c, &end, raised)
	} else if aborted {
		end.Error = &api.CellError{Name: "Aborted", Value: "the kernel did not run the cell"}
	}
	if c.restored != nil {
		end.State, end.Lost = api.StateRestored, c.restored
	}
	if c.stop != nil && c.stop.why == whyShutdown {
		end.Status, end.State, end.Lost = api.StatusLost, api.StateLost, shutdownLost()
	}
	doubtful := c.stop != nil || incomplete
	s.remember(c)
	s.cur = nil
	if doubtful {
		s.syncKernel()
	}
	s.publish() // before the end, so that who has seen that sees this
	s.endCell(s.k, c, end)
}

// endCell ends a cell that ran.
func (s *session) endCell(k *kernel, c *cell, end execution.Ending) {
	end.LostBytes = k.client.Stats().UnspilledBytes - c.unspilled
	s.end(c.e, end)
}

// usage is what the guest's accounting tells of the cell.
func (s *session) usage() *api.Usage {
	u := &api.Usage{}
	if t, ok := s.k.meter.Spent(); ok {
		ms := t.Milliseconds()
		u.CPUMs = &ms
	}
	if n := s.k.meter.Peak(); n > 0 {
		u.PeakRSSBytes = &n
	}
	if *u == (api.Usage{}) {
		return nil
	}
	return u
}
