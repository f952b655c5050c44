package supervisor

import (
	"encoding/json"
	"time"

	"github.com/cellard/cellard/protocol/jupyter"
)

// syncing is the wait for a kernel's answer after an interrupt, so that a late
// interrupt can't hit the next cell.
type syncing struct {
	msgID      string
	again, end time.Time
}

// syncKernel asks the kernel for a sign of life after an interrupt, and holds the
// next cell back until it came, or a bound has passed.
func (s *session) syncKernel() {
	s.sync = &syncing{end: time.Now().Add(5 * time.Second)}
	s.askSync()
}

func (s *session) askSync() {
	msg := s.k.client.NewMessage("kernel_info_request", struct{}{})
	s.sync.msgID, s.sync.again = msg.Header.MsgID, time.Now().Add(time.Second)
	if err := s.k.client.Send(jupyter.Shell, msg); err != nil {
		s.sync = nil // the next message tells
	}
}

// ask sends a request on shell and has the reply's content sent to ch, which is closed
// when there will be none.
func (s *session) ask(msgType string, content any, ch chan json.RawMessage) (id string) {
	if s.k == nil || !s.exitBy.IsZero() {
		close(ch)
		return ""
	}
	msg := s.k.client.NewMessage(msgType, content)
	s.asks[msg.Header.MsgID] = ch
	if err := s.k.client.Send(jupyter.Shell, msg); err != nil {
		delete(s.asks, msg.Header.MsgID)
		close(ch)
	}
	return msg.Header.MsgID
}
