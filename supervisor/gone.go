package supervisor

import (
	"errors"
	"time"

	"github.com/cellard/cellard/execution"
	"github.com/cellard/cellard/protocol/api"
	"github.com/cellard/cellard/protocol/jupyter"
)

// onChannelEnd: a channel ended. With the process it is the normal end; without, the
// kernel is of no use any more.
func (s *session) onChannelEnd() {
	s.awaitEnd(s.k.client.Err())
	s.kernelGone()
}

// awaitEnd waits for a process whose channels failed with err: they close a moment
// before it has ended. It is false for one that goes on, which then is to be killed.
func (s *session) awaitEnd(err error) bool {
	select {
	case <-s.k.Done():
		return true
	case <-time.After(drainExit):
		if s.k.killedAs == nil {
			s.k.killedAs = &api.Lost{Reason: api.LostUnresponsive, Message: "the kernel closed its channels or broke the protocol: " + errText(err)}
		}
		return false
	}
}

func errText(err error) string {
	if err == nil {
		return "closed"
	}
	return err.Error()
}

// kill ends the kernel for the reason given; its end is then met as any other's.
func (s *session) kill(l *api.Lost) {
	if s.k.killedAs == nil {
		s.k.killedAs, s.k.killedAt = l, time.Now()
	}
	s.k.Signal(sigKill)
	signalAll(s.k.family(s.k.mark), sigKill)
}

// kernelGone: the kernel has ended, or must. The running cell ends with all that
// came of it, the waiting ones without having run.
func (s *session) kernelGone() {
	k := s.k
	k.killTree(k.mark)
	k.waitDone()
	s.takeMessages()
	if c := s.cur; c != nil {
		s.endRaw(c.e)
	} else {
		k.takeWords()
	}
	lost := k.lost()
	log := s.log
	if s.cur != nil {
		log = s.about(s.cur.e)
	}
	log.Info("a kernel is gone", append([]any{"generation", s.gen}, loggedLost(lost)...)...)
	c := s.cur
	s.dropKernel(lost)
	if c == nil {
		s.lostIdle = lost
		s.publish()
		return
	}
	s.cur = nil
	end := execution.Ending{Status: api.StatusLost, State: api.StateLost, Lost: lost,
		Error: &api.CellError{Name: "KernelDied", Value: lost.Message}}
	if c.stop != nil && c.stop.why == whyShutdown {
		end.Lost, end.Error = shutdownLost(), nil
	}
	// What waits is taken out before the end is told: a cell that is sent after that
	// is for the next kernel.
	queue := s.takeQueue()
	s.publish()
	s.endCell(k, c, end)
	s.endTasks(queue, "ContextLost", "the kernel died under an earlier cell, and the variables with it; this one never ran")
}

// takeMessages takes what a kernel that has ended had sent: until its channels end, or,
// where something holds them open, nothing comes any more.
func (s *session) takeMessages() {
	end := time.Now().Add(killWithin)
	silent := time.NewTimer(drainExit)
	defer silent.Stop()
	for time.Now().Before(end) {
		select {
		case m, ok := <-s.k.client.Messages():
			if !ok {
				return
			}
			s.onMessage(m)
			m.Close()
			silent.Reset(drainExit)
		case <-silent.C:
			return
		}
	}
}

// dropKernel forgets a kernel that has ended, and frees what it held.
func (s *session) dropKernel(lost *api.Lost) {
	s.m.counts.deaths.Add(1, string(lost.Reason))
	s.m.keeper.unwatch(s.k.Pid())
	s.k.close()
	s.m.killOrphans()
	s.k, s.sync, s.exitBy = nil, nil, time.Time{}
	for id, ch := range s.asks {
		close(ch)
		delete(s.asks, id)
	}
}

// endTasks ends cells that waited, and never run. Where there was a kernel, the variables
// that they were meant for are gone with it.
func (s *session) endTasks(queue []*task, name, value string) {
	state := api.StateKept
	if s.gen > 0 {
		state = api.StateLost
	}
	for _, t := range queue {
		s.end(t.e, execution.Ending{Status: api.StatusInterrupted, State: state, NeverRan: true,
			Error: &api.CellError{Name: name, Value: value}})
	}
}

// end and fail are the only ends of an execution.
func (s *session) end(e *execution.Execution, end execution.Ending) {
	if g, _ := s.generation(); end.NeverRan {
		e.At(g)
	}
	s.m.ending(e, false)
	e.End(end)
	s.journal.End(e.ID())
	s.m.keep(e)
	s.logEnd(e)
}

func (s *session) fail(e *execution.Execution, err *api.Error) {
	s.m.ending(e, true)
	e.Fail(err)
	s.m.keep(e)
	s.logEnd(e)
}

// stopKernel ends the kernel, whatever it does: the running cell as lost for the reason
// given, the waiting ones as interrupted. An idle kernel is asked first.
func (s *session) stopKernel(l *api.Lost, queued, value string) {
	if st := s.starting; st != nil {
		st.cancel(errors.New(value))
		<-s.started // a start ends at once when it is cancelled
		s.starting = nil
		if st.k != nil {
			st.k.killTree(st.k.mark)
			s.m.keeper.unwatch(st.k.Pid())
			st.k.close()
		}
		for _, w := range st.waiters {
			w <- api.Errorf(api.CodeConflict, "%s", value).WithHint("ask again for a context that is there")
		}
	}
	var c *cell
	k := s.k
	if k != nil {
		if k.killedAs == nil {
			k.killedAs = l
		}
		if s.cur == nil && s.exitBy.IsZero() {
			s.shutdown()
		}
		k.killTree(k.mark)
		k.waitDone()
		s.takeMessages()
		if c = s.cur; c != nil {
			s.endRaw(c.e)
		}
		s.cur = nil
		s.dropKernel(k.killedAs)
	}
	queue := s.takeQueue()
	s.lostIdle = nil
	s.publish()
	if c != nil {
		s.endCell(k, c, execution.Ending{Status: api.StatusLost, State: api.StateLost, Lost: l})
	}
	s.endTasks(queue, queued, value)
}

// shutdown asks an idle kernel to end (shutdown_request), for the sake of its exit
// handlers, and waits a moment.
func (s *session) shutdown() {
	if s.k.client.Send(jupyter.Control, s.k.client.NewMessage("shutdown_request", jupyter.ShutdownRequest{})) != nil {
		return
	}
	bound := time.NewTimer(time.Second)
	defer bound.Stop()
	msgs := s.k.client.Messages()
	for {
		select {
		case m, ok := <-msgs:
			if !ok {
				msgs = nil
				continue
			}
			m.Close()
		case <-s.k.Done():
			return
		case <-bound.C:
			return
		}
	}
}
