package golang

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/cellard/cellard/kernels/output"
)

// maxLine is the longest message that the front or the worker may send, in bytes: a
// result of 64 MiB in base64, and what is around it.
const maxLine = 128 << 20

// endGrace is how long a process has to end by itself when it is told to.
const endGrace = 2 * time.Second

// process is the front or the worker: it is sent JSON lines, and sends some.
type process struct {
	cmd    *exec.Cmd
	reaper *output.Reaper
	in     *os.File
	out    *os.File
	write  sync.Mutex

	ended chan struct{} // closed when the process was waited for
	wg    sync.WaitGroup
}

// spawn starts a program. Its requests and messages go by stdin and stdout, or by the
// descriptors 3 and 4 where it has a stdout of its own. message is called with each
// line, one after another; what it returns an error for ends the reading.
func spawn(r *output.Reaper, cmd *exec.Cmd, own bool, message func([]byte) error) (*process, error) {
	theirIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		theirIn.Close()
		in.Close()
		return nil, err
	}
	if own {
		cmd.ExtraFiles = []*os.File{theirIn, theirOut}
	} else {
		cmd.Stdin, cmd.Stdout = theirIn, theirOut
	}
	p := &process{cmd: cmd, reaper: r, in: in, out: out, ended: make(chan struct{})}
	err = r.Start(cmd)
	theirIn.Close()
	theirOut.Close()
	if err != nil {
		in.Close()
		out.Close()
		return nil, err
	}
	read := make(chan struct{})
	p.wg.Add(2)
	go func() {
		defer p.wg.Done()
		defer close(read)
		p.read(message)
	}()
	go func() {
		defer p.wg.Done()
		_ = r.Wait(cmd)
		// What it has sent is still read; a child of the user's may hold the pipe open.
		select {
		case <-read:
		case <-time.After(endGrace):
		}
		close(p.ended)
		in.Close()
		out.Close()
	}()
	return p, nil
}

func (p *process) read(message func([]byte) error) {
	r := bufio.NewReaderSize(p.out, 64<<10)
	for {
		line, err := readLine(r)
		if err == nil {
			err = message(line)
		}
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrClosed) {
				// It no longer speaks the language: what it holds can't be had any more.
				_ = p.cmd.Process.Kill()
			}
			_, _ = io.Copy(io.Discard, r)
			return
		}
	}
}

// readLine reads a line of at most maxLine bytes.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > maxLine {
			return nil, fmt.Errorf("a message of more than %d bytes", maxLine)
		}
		line = append(line, part...)
		if err == nil {
			return line, nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
	}
}

// send writes a message.
func (p *process) send(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	p.write.Lock()
	defer p.write.Unlock()
	_, err = p.in.Write(append(b, '\n'))
	return err
}

// close ends the process and waits for it.
func (p *process) close() {
	p.in.Close() // also under a write that waits for a process which reads nothing
	select {
	case <-p.ended:
	case <-time.After(endGrace):
		_ = p.cmd.Process.Kill()
	}
	p.wg.Wait()
}

// deathWith makes a child end with this process.
func deathWith() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
