package supervisor

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"

	"github.com/cellard/cellard/execution"
	"github.com/cellard/cellard/mime"
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
	msgID   string
	timeout time.Duration // 0: none
	sent    time.Time
	due     time.Time // the deadline, once it counts; zero before and without one
	busy    bool
	idle    bool
	reply   *jupyter.ExecuteReply
	settle  time.Time // when the other of reply and idle is asked after, and then given up
	probe   string    // message id of that question
	stop    *stop
	born    moment // processes after it are the cell's
	asked   *jupyter.Header
	ask     *question // an input_request that has not been taken yet

	unspilled int64 // of the client's statistics, at the start

	cpu  time.Duration
	cpus bool // cpu could be told
	peak bool // the peak counts from the cell's start
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

// why a cell is being stopped.
type why int

const (
	whyTimeout why = iota
	whyInterrupt
	whyNoInput
	whyShutdown
)

// stop is the ladder that a cell is being stopped by.
type stop struct {
	why  why
	from time.Time
	rung int
}

// rung is a step of the ladder: what is done, and how long after its beginning.
type rung struct {
	after time.Duration
	do    func(k *kernel, born moment)
}

// ladder is what is tried, one after another, before the kill: the interrupt as the
// kernelspec says, to the kernel and to what this cell started; the nudge; both
// again, for code that swallowed the first; and, for children that ignore an
// interrupt and that the kernel waits for, SIGTERM and SIGKILL. The kill itself comes
// at Options.InterruptGrace.
var ladder = []rung{
	{0, func(k *kernel, b moment) { _ = k.interrupt(b) }},
	{200 * time.Millisecond, func(k *kernel, _ moment) { k.nudge() }},
	{time.Second, func(k *kernel, b moment) { _ = k.interrupt(b); k.nudge() }},
	{1500 * time.Millisecond, func(k *kernel, b moment) { k.signalFamily(syscall.SIGTERM, b, false) }},
	{2 * time.Second, func(k *kernel, b moment) { _ = k.interrupt(b); k.nudge() }},
	{2500 * time.Millisecond, func(k *kernel, b moment) { k.signalFamily(syscall.SIGKILL, b, false) }},
	{4 * time.Second, func(k *kernel, b moment) { _ = k.interrupt(b); k.nudge() }},
	{7 * time.Second, func(k *kernel, b moment) { _ = k.interrupt(b); k.nudge() }},
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
	c := &cell{task: *t, timeout: api.DefaultTimeoutMs * time.Millisecond, sent: time.Now()}
	if t.req.TimeoutMs != nil {
		c.timeout = millis(*t.req.TimeoutMs)
	}
	for i, r := range k.raw { // what came while idle is no cell's
		if b := r.Drain(); len(b) > 0 {
			s.between(i, b)
		}
		s.decoders[i] = mime.Decoder{}
	}
	c.born = now()
	c.cpu, c.cpus = cpuTime(k.Pid())
	c.peak = resetPeak(k.Pid())
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
	c.msgID = msg.Header.MsgID
	err := k.client.Send(jupyter.Shell, msg)
	if err != nil {
		s.m.log.Warn("sending a cell", "context", s.id, "error", err)
		if s.awaitEnd(err) && !t.unsent {
			// It had died while idle, which could not be seen before. Of a message that
			// was not sent whole no code runs: the cell is for the next kernel.
			t.unsent = true
			s.requeue(t)
			s.kernelGone()
			return
		}
	}
	t.req.Code, c.req.Code = "", "" // it may be large, and the cell may run for long
	s.cur = c
	k.words = lastWords{} // those of an earlier cell tell nothing of this one's end
	t.e.Begin(s.gen, s.count+1, s.fresh, s.lostIdle)
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
					c.e.Busy()
					c.count()
				}
			case "idle":
				c.idle = true
			}
		case "execute_input":
			n := 0
			if pick(m.Content, "execution_count", &n) == nil && n > 0 {
				s.count = n
				c.e.Count(n)
			}
		}
	case jupyter.Shell:
		if m.Header.MsgType == "execute_reply" && c.reply == nil {
			c.reply = decodeReply(m)
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
	if (c.idle || c.reply != nil) && c.settle.IsZero() {
		c.settle = time.Now().Add(settleWithin)
	}
	if c.idle && c.reply != nil {
		s.finish(c, false)
	}
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

// count starts the deadline.
func (c *cell) count() {
	if c.timeout > 0 && c.due.IsZero() && c.stop == nil {
		c.due = time.Now().Add(c.timeout)
	}
}

// smallContent bounds the contents that are decoded whole.
const smallContent = 1 << 20

// decodeReply takes what counts of an execute_reply: payloads and user expressions may
// be large, and are of no use here.
func decodeReply(m *jupyter.Message) *jupyter.ExecuteReply {
	r := &jupyter.ExecuteReply{}
	if err := pick(m.Content, "status", &r.Status); err != nil {
		r.Status = jupyter.StatusError
		r.EName, r.EValue = "KernelError", "the kernel's reply could not be read: "+err.Error()
		return r
	}
	_ = pick(m.Content, "execution_count", &r.ExecutionCount)
	if r.Status == jupyter.StatusError {
		e, _ := cellError(m.Content)
		r.EName, r.EValue, r.Traceback = e.Name, e.Value, []string{e.Traceback}
	}
	return r
}

// pick decodes one small member of an object. One that isn't there is left as it is.
func pick(v jupyter.Value, key string, p any) error {
	members, err := v.Members()
	if err != nil {
		return err
	}
	if f := members.Get(key); f.Size() > 0 {
		return f.Decode(p, smallContent)
	}
	return nil
}

// output folds an iopub message into the execution that it names, running or
// finished.
func (s *session) output(e *execution.Execution, m *jupyter.Message) {
	var err error
	switch m.Header.MsgType {
	case "stream":
		err = stream(e, m.Content)
	case "display_data", "execute_result", "update_display_data":
		err = s.display(e, m)
	case "clear_output":
		var c jupyter.ClearOutput
		if err = m.Content.Decode(&c, smallContent); err == nil {
			e.Clear(c.Wait)
		}
	case "error":
		var c api.CellError
		if c, err = cellError(m.Content); err == nil {
			e.Raise(c)
		}
	}
	if err != nil {
		e.LostBytes(m.Content.Size())
		s.m.log.Warn("an output that could not be read", "context", s.id, "type", m.Header.MsgType, "bytes", m.Content.Size(), "error", err)
	}
}

// cellError takes an error's name, value and trace, of any length: the middle of what
// is too long is cut as it comes.
func cellError(v jupyter.Value) (api.CellError, error) {
	members, err := v.Members()
	if err != nil {
		return api.CellError{}, err
	}
	e := api.CellError{Name: ends(members.Get("ename")), Value: ends(members.Get("evalue"))}
	trace := mime.NewHeadTail(smallContent)
	lines, _ := members.Get("traceback").Elements()
	for i, l := range lines {
		if i > 0 {
			trace.WriteString("\n")
		}
		_, _ = io.Copy(trace, l.Text())
	}
	e.Traceback = trace.String()
	return e, nil
}

func ends(v jupyter.Value) string {
	h := mime.NewHeadTail(smallContent)
	_, _ = io.Copy(h, v.Text()) // no string: nothing
	return h.String()
}

func stream(e *execution.Execution, v jupyter.Value) error {
	members, err := v.Members()
	if err != nil {
		return err
	}
	i := execution.Stdout
	if name, _ := members.Get("name").Unquote(1 << 10); name == "stderr" {
		i = execution.Stderr
	}
	text := members.Get("text")
	if text.Size() <= smallContent {
		t, err := text.Unquote(smallContent)
		if err == nil {
			e.Stream(i, t)
		}
		return err
	}
	return e.StreamFrom(i, text.Text())
}

func (s *session) display(e *execution.Execution, m *jupyter.Message) error {
	members, err := m.Content.Members()
	if err != nil {
		return err
	}
	var transient jupyter.Transient
	if t := members.Get("transient"); t.Size() > 0 {
		_ = t.Decode(&transient, smallContent) // without an id it can't be updated
	}
	data := members.Get("data")
	if data.Size() == 0 {
		return errors.New("a display without data")
	}
	if m.Header.MsgType != "update_display_data" {
		e.Display(m.Header.MsgType == "execute_result", data, transient.DisplayID, &s.k.displays)
	} else if !e.Update(data, transient.DisplayID, &s.k.displays) {
		s.m.unmatched.Add(1)
	}
	return nil
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
		s.m.log.Warn("sending an answer", "context", s.id, "error", err)
	}
}

// stopCell begins the ladder, unless the cell is on it already.
func (s *session) stopCell(w why) {
	c := s.cur
	if c == nil || c.stop != nil {
		return
	}
	c.stop = &stop{why: w, from: time.Now()}
	s.climb(c)
}

// climb does the rungs that are due; past the last one is the kill.
func (s *session) climb(c *cell) {
	since := time.Since(c.stop.from)
	for c.stop.rung < len(ladder) && ladder[c.stop.rung].after <= since && ladder[c.stop.rung].after < s.m.o.InterruptGrace {
		ladder[c.stop.rung].do(s.k, c.born)
		c.stop.rung++
	}
	if since >= s.m.o.InterruptGrace {
		s.kill(&api.Lost{Reason: api.LostUnresponsive,
			Message: fmt.Sprintf("the cell did not stop within %v of its interrupt, and the kernel was killed", s.m.o.InterruptGrace)})
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
		sooner(c.sent.Add(busyWithin))
	}
	return t
}

// tickCell does what is due.
func (s *session) tickCell(c *cell) {
	t := time.Now()
	past := func(u time.Time) bool { return !u.IsZero() && !t.Before(u) }
	switch {
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
	case past(c.sent.Add(busyWithin)):
		c.count()
	}
}

// finish ends the cell on a kernel that lives.
func (s *session) finish(c *cell, incomplete bool) {
	s.takeRaw(c.e, true)
	end := execution.Ending{Status: api.StatusOK, Incomplete: incomplete, Usage: s.usage(c)}
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

// stopped is the ending of a cell that was on the ladder and whose kernel lives. An
// interrupted cell may reply anything, ok too: what it came to is known here.
func (s *session) stopped(c *cell, end *execution.Ending, raised *api.CellError) {
	switch c.stop.why {
	case whyTimeout:
		end.Status = api.StatusTimeout
		if raised == nil {
			end.Error = &api.CellError{Name: "Timeout", Value: fmt.Sprintf("the cell was stopped at its deadline of %d ms", c.timeout.Milliseconds())}
		}
	case whyInterrupt:
		end.Status = api.StatusInterrupted
		if raised == nil {
			end.Error = &api.CellError{Name: "Interrupted", Value: "the cell was interrupted"}
		}
	case whyNoInput:
		end.Status = api.StatusError
		end.Error = &api.CellError{Name: "StdinNotImplementedError",
			Value: `the cell asked for input and no answer is left; send more in "stdin", or "live"`}
	}
}

// usage is what the guest's accounting tells of the cell.
func (s *session) usage(c *cell) *api.Usage {
	u := &api.Usage{}
	if t, ok := cpuTime(s.k.Pid()); ok && c.cpus {
		ms := (t - c.cpu).Milliseconds()
		u.CPUMs = &ms
	}
	if c.peak {
		if n := peakRSS(s.k.Pid()); n > 0 {
			u.PeakRSSBytes = &n
		}
	}
	if *u == (api.Usage{}) {
		return nil
	}
	return u
}

// takeRaw moves the raw output to the cell: what has come, or with drain all that
// was written so far.
func (s *session) takeRaw(e *execution.Execution, drain bool) {
	for i, r := range s.k.raw {
		b := []byte(nil)
		if drain {
			b = r.Drain()
		} else {
			b = r.Take()
		}
		if len(b) > 0 {
			s.k.words.add(b)
			e.Stream(i, s.decoders[i].Write(b))
		}
		if drain {
			e.Stream(i, s.decoders[i].Flush())
		}
	}
}
