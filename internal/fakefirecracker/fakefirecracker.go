// Package fakefirecracker is the host's end of a VM's vsock as Firecracker offers it: a
// Unix socket on which a caller says CONNECT and a port, is told OK and a port, and is
// then joined with what listens there; here that is another Unix socket. It can also
// behave as a paused or restored VM does. Only tests use it.
package fakefirecracker

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

// Socket is the VM's socket. The caller closes it.
type Socket struct {
	l     net.Listener
	guest string
	port  int

	mu     sync.Mutex
	joined map[*joint]struct{}
	calls  int
	frozen bool
	work   sync.WaitGroup
}

// joint is two connections of which each gets what the other sends.
type joint struct {
	host, guest net.Conn
	mu          sync.Mutex // held while the VM is paused
	dead        bool
}

// Listen makes the socket at path. What connects to that port reaches the Unix socket
// guest; any other port is closed.
func Listen(path, guest string, port int) (*Socket, error) {
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	s := &Socket{l: l, guest: guest, port: port, joined: map[*joint]struct{}{}}
	s.work.Add(1)
	go s.accept()
	return s, nil
}

// Calls is how many connections were made so far.
func (s *Socket) Calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

// Cut resets all connections, as a VM's end does.
func (s *Socket) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for j := range s.joined {
		j.host.Close()
		j.guest.Close()
	}
}

// Forget makes all connections silent for good, as the restore of a VM does: neither
// end is told. Connections made from now on are alive.
func (s *Socket) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for j := range s.joined {
		j.mu.Lock()
		j.dead = true
		j.mu.Unlock()
	}
}

// Pause stops all connections, and answers no CONNECT, until Resume.
func (s *Socket) Pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen = true
	for j := range s.joined {
		j.mu.Lock()
	}
}

// Resume ends a Pause.
func (s *Socket) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen = false
	for j := range s.joined {
		j.mu.Unlock()
	}
}

// Close ends the socket and its connections, and waits for all that it does. It must not
// be paused.
func (s *Socket) Close() {
	s.l.Close()
	s.Cut()
	s.work.Wait()
}

func (s *Socket) accept() {
	defer s.work.Done()
	for {
		c, err := s.l.Accept()
		if err != nil {
			return
		}
		s.work.Add(1)
		go s.serve(c)
	}
}

func (s *Socket) serve(host net.Conn) {
	defer s.work.Done()
	defer host.Close()
	s.mu.Lock()
	s.calls++
	s.mu.Unlock()
	_ = host.SetReadDeadline(time.Now().Add(time.Minute))
	r := bufio.NewReader(host)
	line, err := r.ReadString('\n')
	if err != nil {
		return
	}
	_ = host.SetReadDeadline(time.Time{})
	var port int
	if _, err := fmt.Sscanf(strings.TrimSpace(line), "CONNECT %d", &port); err != nil || port != s.port {
		return // a closed port is an end without a word
	}
	guest, err := net.Dial("unix", s.guest)
	if err != nil {
		return
	}
	defer guest.Close()
	j := &joint{host: host, guest: guest}
	if !s.join(j) {
		return
	}
	defer s.part(j)
	// What was sent before the OK is lost: r's buffer is not looked at again.
	if _, err := fmt.Fprintf(host, "OK %d\n", 1<<30+port); err != nil {
		return
	}
	var both sync.WaitGroup
	both.Add(2)
	for _, way := range []struct{ to, from net.Conn }{{host, guest}, {guest, host}} {
		go func() {
			defer both.Done()
			defer host.Close() // there is no half-close
			defer guest.Close()
			j.copy(way.to, way.from)
		}()
	}
	both.Wait()
}

// join waits while the VM is paused.
func (s *Socket) join(j *joint) bool {
	for {
		s.mu.Lock()
		if !s.frozen {
			s.joined[j] = struct{}{}
			s.mu.Unlock()
			return true
		}
		s.mu.Unlock()
		time.Sleep(5 * time.Millisecond)
		if _, err := j.host.Write(nil); err != nil {
			return false
		}
	}
}

func (s *Socket) part(j *joint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.joined, j)
	if s.frozen {
		j.mu.Unlock()
	}
}

func (j *joint) copy(to io.Writer, from io.Reader) {
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		j.mu.Lock()
		dead := j.dead
		j.mu.Unlock()
		if n > 0 && !dead {
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
