package kernel

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellard/cellard/protocol/jupyter"
	"github.com/cellard/cellard/protocol/zmtp"
)

// The bounds of a kernel.
const (
	maxMessage = 64 << 20 // of a request on shell, control or stdin, in bytes
	maxIOPub   = 64 << 10 // of what a subscriber sends
	maxBeat    = 64 << 10

	// stopWithin is how long a cell may take to end when the kernel is to end; linger,
	// how long a subscriber may take nothing of the last outputs before it is given up,
	// and stuckAfter, how long while a cell that was interrupted waits for it.
	stopWithin = 5 * time.Second
	linger     = time.Second
	stuckAfter = 10 * time.Second
)

// ErrCellRuns is Serve's error for a cell that didn't end when the kernel was to end.
var ErrCellRuns = errors.New("kernel: the cell did not stop when the kernel was to end")

// Options of Serve. The zero value works.
type Options struct {
	// Signals, if not nil, are those that the process gets: os.Interrupt interrupts the
	// running cell, any other asks the kernel to end.
	Signals <-chan os.Signal
	// Logger takes what was dropped, and why; nil stands for none.
	Logger *slog.Logger
	// Stats, if not nil, counts it.
	Stats *Stats
}

// Stats counts messages that were dropped.
type Stats struct {
	BadSignatures, Replays, Malformed atomic.Int64
}

// server is one kernel.
type server struct {
	lang    Language
	log     *slog.Logger
	stats   *Stats
	signer  *jupyter.Signer
	session string

	shell, control, stdin, beat *zmtp.Socket
	iopub                       *zmtp.Publisher

	requests *queue
	asking   asking

	ctx  context.Context // ends, with a cause, when the kernel is to end
	stop context.CancelCauseFunc

	informed chan struct{} // closed once info is there
	info     jupyter.KernelInfo

	mu      sync.Mutex
	running context.CancelCauseFunc // of what the language does now; nil: nothing

	count int // the number of the last cell that counted; the loop's alone
}

// Serve binds a kernel's sockets where ci says and runs the Language's cells, until it
// is asked to end: by shutdown_request, by a signal or by ctx. Then it returns nil. An
// error of the Language's own, or of the sockets, is returned as it is.
//
// A Language that ends under a cell leaves that cell without an answer, as any kernel
// does that dies: a reply would tell the front end that the state is still there. Of one
// that ends between cells Serve knows where it is a Mortal.
func Serve(ctx context.Context, ci jupyter.ConnectionInfo, lang Language, o Options) error {
	s := &server{lang: lang, log: o.Logger, stats: o.Stats, session: rand.Text(), requests: newQueue(), informed: make(chan struct{})}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.stats == nil {
		s.stats = &Stats{}
	}
	var err error
	if s.signer, err = jupyter.NewSigner(ci.SignatureScheme, ci.Key); err != nil {
		return err
	}
	s.ctx, s.stop = context.WithCancelCause(ctx)
	defer s.stop(nil)
	if err := s.bind(ci); err != nil {
		s.closeSockets()
		return err
	}
	s.status(nil, jupyter.StateStarting, true)
	if o.Signals != nil {
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			s.watch(o.Signals)
		}()
		defer func() { <-watched }()
	}
	err = s.run()
	s.stop(nil) // ends watch
	s.iopub.Close(linger)
	s.closeSockets()
	return err
}

// run runs the loop until it ends, or until the kernel is to end and the cell that runs
// has ended too.
func (s *server) run() error {
	looped := make(chan error, 1)
	go func() { looped <- s.loop() }()
	select {
	case err := <-looped:
		return errors.Join(err, s.lang.Close())
	case <-s.ctx.Done():
	}
	s.requests.close()
	s.cancel(ErrShutdown)
	bound := time.NewTimer(stopWithin)
	defer bound.Stop()
	stuck := time.NewTicker(linger / 4)
	defer stuck.Stop()
	for {
		select {
		case err := <-looped:
			return errors.Join(err, s.lang.Close())
		case <-stuck.C:
			s.cancel(ErrShutdown) // of one that was about to begin
			s.iopub.DropStuck(linger)
		case <-bound.C:
			return ErrCellRuns
		}
	}
}

// loop asks the language for its info and takes the requests of shell, one at a time.
func (s *server) loop() error {
	info, err := s.ask()
	if err != nil {
		return err
	}
	info.Status, info.ProtocolVersion = jupyter.StatusOK, jupyter.ProtocolVersion
	if _, ok := s.lang.(Lister); ok {
		info.SupportedFeatures = append(info.SupportedFeatures, jupyter.FeatureVariables)
	}
	s.info = info
	close(s.informed)
	ended, forget := s.watchLanguage()
	defer forget()
	for {
		r, ok := s.requests.next()
		if !ok {
			select {
			case err := <-ended:
				return err
			default:
				return nil
			}
		}
		if err := s.request(r); err != nil {
			return err
		}
	}
}

// watchLanguage closes the queue once the language has ended, and then has the reason. The
// function that it returns ends that.
func (s *server) watchLanguage() (ended <-chan error, forget func()) {
	m, ok := s.lang.(Mortal)
	if !ok {
		return nil, func() {}
	}
	ctx, cancel := context.WithCancel(s.ctx)
	reason, over := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(over)
		if err := m.Ended(ctx); err != nil {
			reason <- err
			s.requests.close()
		}
	}()
	return reason, func() {
		cancel()
		<-over
	}
}

func (s *server) ask() (info jupyter.KernelInfo, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("kernel: Info panicked: %v", p)
		}
	}()
	return s.lang.Info()
}

// bind binds the five sockets.
func (s *server) bind(ci jupyter.ConnectionInfo) (err error) {
	router := func(channel jupyter.Channel, handle func([]byte, []*zmtp.Frame)) (socket *zmtp.Socket) {
		if err == nil {
			network, address := ci.Address(channel)
			// What is taken is held in memory: the limit of the message is that of its memory.
			socket, err = zmtp.Bind(network, address, zmtp.Router, zmtp.Options{MaxFrame: maxMessage, MaxMessage: maxMessage, Inline: maxMessage}, handle)
		}
		return socket
	}
	s.shell = router(jupyter.Shell, s.onShell)
	s.control = router(jupyter.Control, s.onControl)
	s.stdin = router(jupyter.Stdin, s.onStdin)
	if err != nil {
		return err
	}
	network, address := ci.Address(jupyter.Heartbeat)
	ready := make(chan struct{}) // s.beat is set
	s.beat, err = zmtp.Bind(network, address, zmtp.Rep, zmtp.Options{MaxFrame: maxBeat, MaxMessage: maxBeat, Inline: maxBeat}, func(peer []byte, frames []*zmtp.Frame) {
		<-ready
		s.onBeat(peer, frames)
	})
	close(ready)
	if err != nil {
		return err
	}
	network, address = ci.Address(jupyter.IOPub)
	s.iopub, err = zmtp.BindPublisher(network, address, zmtp.Options{MaxFrame: maxIOPub, MaxMessage: maxIOPub, Inline: maxIOPub}, s.welcome)
	return err
}

// closeSockets ends what bind made, and waits for it.
func (s *server) closeSockets() {
	s.requests.close()
	s.stop(nil)
	if s.iopub != nil {
		s.iopub.Close(0)
	}
	for _, socket := range []*zmtp.Socket{s.shell, s.control, s.stdin, s.beat} {
		if socket != nil {
			socket.Close()
		}
	}
}

// onBeat gives a heartbeat back as it came, its envelope too.
func (s *server) onBeat(peer []byte, frames []*zmtp.Frame) {
	echo := make([][]byte, len(frames))
	for i, f := range frames {
		echo[i], _ = f.Bytes()
		f.Close()
	}
	if err := s.beat.SendTo(peer, echo...); err != nil {
		s.log.Debug("answering a heartbeat", "error", err)
	}
}

// watch acts on signals until the kernel ends.
func (s *server) watch(signals <-chan os.Signal) {
	for {
		select {
		case sig := <-signals:
			if sig == os.Interrupt {
				s.cancel(ErrInterrupted)
				continue
			}
			s.stop(fmt.Errorf("%w: %v", ErrShutdown, sig))
		case <-s.ctx.Done():
			return
		}
	}
}

// cancel ends what the language does now, if it does anything.
func (s *server) cancel(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != nil {
		s.running(cause)
	}
}

// setRunning says what cancel ends; nil: nothing.
func (s *server) setRunning(cancel context.CancelCauseFunc) {
	s.mu.Lock()
	s.running = cancel
	s.mu.Unlock()
}
