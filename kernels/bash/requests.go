package bash

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cellard/cellard/kernels/output"
	"github.com/cellard/cellard/mime"
	"github.com/cellard/cellard/protocol/jupyter/kernel"
)

// maxRequest bounds what display and read send: a pipe takes up to 4096 bytes whole.
const maxRequest = 4096

// serveRequests takes the requests of the functions display and read, one at a time.
func (k *Kernel) serveRequests() {
	defer k.displays.Done()
	var buf []byte
	b := make([]byte, maxRequest)
	for {
		n, err := k.shell.requests.Read(b)
		if err != nil {
			return
		}
		buf = append(buf, b[:n]...)
		for {
			begin := bytes.IndexByte(buf, 1)
			if begin < 0 {
				buf = nil
				break
			}
			end := bytes.Index(buf[begin:], []byte("\x00\x02"))
			if end < 0 {
				if buf = buf[begin:]; len(buf) > 2*maxRequest {
					buf = nil // a stranger's
				}
				break
			}
			k.request(strings.Split(string(buf[begin+1:begin+end]), "\x00"))
			buf = buf[begin+end+2:]
		}
	}
}

// request does one: its kind, the number of its cell, the process, and two words.
func (k *Kernel) request(f []string) {
	if len(f) != 5 {
		return
	}
	n, err1 := strconv.Atoi(f[1])
	pid, err2 := strconv.Atoi(f[2])
	k.mu.Lock()
	r := k.cells[n]
	k.mu.Unlock()
	if err1 != nil || err2 != nil || r == nil || r.cell == nil || !descends(pid) {
		if f[0] == "display" && err2 == nil && alive(pid) {
			k.answer(errors.New("the cell that shows it is long over"))
		}
		return
	}
	if f[0] == "prompt" {
		r.mu.Lock()
		r.prompt, r.secret = f[3], f[4] != ""
		r.mu.Unlock()
		return
	}
	bundle, err := k.bundle(pid, f[3], f[4])
	if !alive(pid) {
		return // its cell was stopped: the answer would be taken for the next one's
	}
	if err == nil {
		r.streams.HandOn() // what was put out before it
		r.cell.Display(bundle, nil, "")
	}
	k.answer(err)
}

func (k *Kernel) answer(err error) {
	line := "ok"
	if err != nil {
		line = strings.Join(strings.Fields(fmt.Sprintf("%.1000v", err)), " ")
	}
	_, _ = k.shell.answers.WriteString(line + "\n")
}

// dropAnswers takes back what nobody has read: who asked has been stopped.
func (k *Kernel) dropAnswers() {
	conn, err := k.shell.stale.SyscallConn()
	if err != nil {
		return
	}
	var b [maxRequest]byte
	_ = conn.Control(func(fd uintptr) {
		for {
			left, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ)
			if err != nil || left == 0 {
				return
			}
			if n, err := unix.Read(int(fd), b[:min(left, len(b))]); err != nil || n == 0 {
				return
			}
		}
	})
}

// bundle is what display shows: a file, or what a process reads as its stdin.
func (k *Kernel) bundle(pid int, path, mimeType string) (kernel.Bundle, error) {
	if path == "-" {
		data, err := k.readStdin(pid)
		if err != nil {
			return nil, err
		}
		text := fmt.Sprintf("<%s, %d bytes>", mimeType, len(data))
		if !mime.IsBinary(mimeType) {
			text = string(data)
		}
		return output.Of(mimeType, text, data), nil
	}
	full := path
	if !filepath.IsAbs(full) {
		full = fmt.Sprintf("/proc/%d/cwd/%s", pid, path)
	}
	bundle, err := output.File(full, k.o.FileBytes)
	if err != nil {
		// The path as the user knows it.
		return nil, errors.New(strings.ReplaceAll(strings.TrimPrefix(err.Error(), "open "), full, path))
	}
	bundle["text/plain"] = strings.ToValidUTF8(path, "\uFFFD")
	if mimeType != "" && mimeType != mime.ByExtension(path) {
		data, err := os.ReadFile(full)
		if err != nil {
			return nil, err
		}
		return output.Of(mimeType, path, data), nil
	}
	return bundle, nil
}

// readStdin reads what a process would read, to its end.
func (k *Kernel) readStdin(pid int) ([]byte, error) {
	f, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/0", pid), os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if kind := info.Mode().Type(); kind != os.ModeNamedPipe && kind != 0 {
		return nil, errors.New("nothing to read: pipe something into it")
	}
	var data []byte
	b := make([]byte, 64<<10)
	for {
		_ = f.SetReadDeadline(time.Now().Add(100 * time.Millisecond)) // a file has none
		n, err := f.Read(b)
		data = append(data, b[:n]...)
		switch {
		case int64(len(data)) > k.o.FileBytes:
			return nil, fmt.Errorf("more than %d bytes, which is the limit for showing a file", k.o.FileBytes)
		case err == io.EOF:
			return data, nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			if !alive(pid) { // its cell was stopped
				return nil, err
			}
		case err != nil:
			return nil, err
		}
	}
}
