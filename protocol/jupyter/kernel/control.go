package kernel

import (
	"github.com/cellard/cellard/protocol/jupyter"
	"github.com/cellard/cellard/protocol/zmtp"
)

// onControl answers a request on control, also while a cell runs.
func (s *server) onControl(peer []byte, frames []*zmtp.Frame) {
	r, ok := s.parse(jupyter.Control, peer, frames)
	if !ok {
		return
	}
	defer r.Close()
	select {
	case <-s.informed: // the kernel has started
	case <-s.ctx.Done():
		return
	}
	s.status(&r.Header, jupyter.StateBusy, true)
	switch r.Header.MsgType {
	case "kernel_info_request":
		s.reply(r, "kernel_info_reply", s.kernelInfo())
	case "interrupt_request":
		s.cancel(ErrInterrupted)
		s.reply(r, "interrupt_reply", map[string]string{"status": jupyter.StatusOK})
	case "shutdown_request":
		s.shutdown(r)
		defer s.stop(ErrShutdown) // once the idle below is sent
	case "history_request":
		s.reply(r, "history_reply", map[string]any{"status": jupyter.StatusOK, "history": []any{}})
	case "comm_info_request":
		s.reply(r, "comm_info_reply", map[string]any{"status": jupyter.StatusOK, "comms": struct{}{}})
	}
	s.status(&r.Header, jupyter.StateIdle, true)
}

// shutdown answers a shutdown_request. Who calls it has the kernel end.
func (s *server) shutdown(r request) {
	var c jupyter.ShutdownRequest
	_ = r.Content.Decode(&c, smallContent) // what can't be read is no restart
	reply := struct {
		Status  string `json:"status"`
		Restart bool   `json:"restart"`
	}{jupyter.StatusOK, c.Restart}
	s.reply(r, "shutdown_reply", reply)
	// On iopub too, for the other clients (the spec's "Kernel shutdown").
	s.publish(&r.Header, "shutdown_reply", reply, true)
}
