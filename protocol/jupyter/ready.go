package jupyter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// maxInfo is the largest kernel_info_reply that is decoded.
const maxInfo = 1 << 20

// Ready waits until the kernel answers and until it has heard the subscription to
// iopub: what it publishes before that is lost, and nothing else tells for every
// kernel when that is (ipykernel 7 sends iopub_welcome, others don't). So it asks for
// kernel_info again until a reply and a message on iopub have come.
//
// It takes and closes all messages meanwhile: call it once, before anything else
// reads Messages. Answers to what it asked twice can come after it has returned.
func (c *Client) Ready(ctx context.Context) (KernelInfo, error) {
	const (
		soon  = 10 * time.Millisecond // between a reply and its idle
		first = 100 * time.Millisecond
		most  = time.Second
	)
	var (
		info            KernelInfo
		replied, heard  bool
		asked           = make(map[string]bool)
		pause           = first
		again           = time.NewTimer(0)
		errUnresponsive = errors.New("no answer to kernel_info_request")
	)
	defer again.Stop()
	for !replied || !heard {
		select {
		case <-ctx.Done():
			err := context.Cause(ctx)
			if replied {
				return info, fmt.Errorf("jupyter: the kernel publishes nothing on iopub: %w", err)
			}
			return info, fmt.Errorf("jupyter: %w: %w", errUnresponsive, err)
		case <-again.C:
			m := c.NewMessage("kernel_info_request", nil)
			asked[m.Header.MsgID] = true
			if err := c.Send(Shell, m); err != nil {
				return info, err
			}
			again.Reset(pause)
			pause = min(2*pause, most)
		case m, ok := <-c.messages:
			if !ok {
				return info, c.Err()
			}
			switch {
			case m.Channel == IOPub:
				heard = true
			case m.Header.MsgType == "kernel_info_reply" && asked[m.Parent.MsgID] && !replied:
				got, err := kernelInfo(m)
				if err != nil {
					m.Close()
					return info, err
				}
				info, replied = got, true
				again.Reset(soon)
			}
			m.Close()
		}
	}
	return info, nil
}

func kernelInfo(m *Message) (KernelInfo, error) {
	var info KernelInfo
	err := m.Content.Decode(&info, maxInfo)
	if mistyped := (*json.UnmarshalTypeError)(nil); err != nil && !errors.As(err, &mistyped) {
		return info, fmt.Errorf("jupyter: kernel_info_reply: %w", err)
	}
	if info.Status == StatusError { // others leave it out, as protocols before 5.0 did
		return info, fmt.Errorf("jupyter: the kernel answers kernel_info_request with an error: %.200s: %.200s", info.EName, info.EValue)
	}
	return info, nil
}

// Beat waits for the kernel's heartbeat to answer, which in many kernels it does
// from a thread of its own: it tells that the process lives, not that it isn't
// stuck.
func (c *Client) Beat(ctx context.Context) error {
	c.beat.Lock()
	defer c.beat.Unlock()
	ping := "cellard " + strconv.FormatInt(c.lastID.Add(1), 10)
	if err := c.conns[Heartbeat].Send([]byte(ping)); err != nil {
		return fmt.Errorf("jupyter: heartbeat: %w", err)
	}
	for {
		select {
		case b := <-c.beats:
			if string(b) == ping { // and not a late answer to an earlier one
				return nil
			}
		case <-c.ending:
			return c.Err()
		case <-ctx.Done():
			return fmt.Errorf("jupyter: no heartbeat: %w", context.Cause(ctx))
		}
	}
}
