package supervisor

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/cellard/cellard/execution"
	"github.com/cellard/cellard/internal/logging"
	"github.com/cellard/cellard/internal/rawpipe"
	"github.com/cellard/cellard/kernels"
	"github.com/cellard/cellard/mime"
	"github.com/cellard/cellard/notebook"
	"github.com/cellard/cellard/protocol/api"
	"github.com/cellard/cellard/protocol/jupyter"
)

// session is a context: its queue, and the kernel behind it now. One goroutine (loop)
// owns all but what mu guards; others hand it work through do.
type session struct {
	m      *Manager
	log    *slog.Logger
	id     string
	launch *kernels.Launch // guarded by mu as long as it is to be installed
	cwd    string
	env    map[string]string

	journal *notebook.Journal

	cmds chan func()
	gone chan struct{} // closed when the loop has ended and nothing is left

	mu    sync.Mutex
	queue []*task
	view  api.Context
	dead  bool // the kernel is gone, and its state with it
	shut  bool // no cell is taken any more; wait for gone and look again
	wake  chan struct{}

	// Of the loop's goroutine alone:
	k        *kernel
	starting *starting
	started  chan *starting
	cur      *cell
	gen      int
	count    int
	fresh    bool      // the kernel was started for the next cell
	lostIdle *api.Lost // the kernel died while idle, and no cell has been told
	exitBy   time.Time // the process has ended; until when its last messages are waited for
	closing  bool
	deleted  bool                            // its files go with it
	recent   map[string]*execution.Execution // finished cells of this kernel, by message id
	order    []string
	asks     map[string]chan json.RawMessage
	sync     *syncing
	decoders [2]mime.Decoder
}

// starting is a kernel on its way.
type starting struct {
	cancel  context.CancelCauseFunc
	request string          // id of the one that it is for
	launch  *kernels.Launch // of the kernel, which may have been installed for it
	k       *kernel
	err     error
	took    time.Duration
	waiters []chan error
}

const (
	maxRecent  = 256                    // finished cells whose late output is still known
	drainExit  = 500 * time.Millisecond // for the last messages of a process that has ended
	killWithin = 5 * time.Second        // for a process to end once it was killed
)

func newSession(m *Manager, id, language string, launch *kernels.Launch, cwd string, env map[string]string) *session {
	s := &session{m: m, id: id, launch: launch, cwd: cwd, env: env,
		journal: notebook.NewJournal(notebook.JournalOptions{Bytes: m.o.NotebookBytes, Temp: m.store.Temp}),
		cmds:    make(chan func()), gone: make(chan struct{}), wake: make(chan struct{}, 1),
		started: make(chan *starting, 1), asks: map[string]chan json.RawMessage{}}
	s.view = api.Context{ID: id, Language: language, Cwd: cwd, State: api.ContextStarting,
		StartedAt: time.Now().UTC(), Checkpoint: "off"}
	s.log = m.log.With("context", id, "language", language)
	go s.loop()
	return s
}

// do runs f on the loop's goroutine and waits for it; false when the session is gone.
func (s *session) do(f func()) bool {
	done := make(chan struct{})
	select {
	case s.cmds <- func() { f(); close(done) }:
		<-done
		return true
	case <-s.gone:
		return false
	}
}

// close makes the loop end once there is no kernel. Of the loop's goroutine.
func (s *session) close() {
	s.closing = true
	s.mu.Lock()
	s.shut = true
	s.mu.Unlock()
}

// generation is the context's, and whether its state is still there.
func (s *session) generation() (int, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view.Generation, !s.dead
}

// info is the Context as it is now.
func (s *session) info() api.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view
}

// publish makes the loop's state seen by others.
func (s *session) publish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := &s.view
	v.Generation, v.ExecutionCount = s.gen, s.count
	s.dead = s.k == nil
	v.ProcessID = 0
	switch {
	case s.k != nil:
		v.ProcessID, v.Kernel, v.LanguageInfo = s.k.Pid(), s.k.info, s.k.language
		v.State = api.ContextIdle
		if s.cur != nil {
			v.State = api.ContextBusy
		}
	case s.starting != nil || s.gen == 0:
		v.State = api.ContextStarting
	default:
		v.State = api.ContextDead
	}
}

// loop is the session's one goroutine. It ends after close.
func (s *session) loop() {
	defer close(s.gone)
	defer s.m.forget(s)
	defer s.journal.Close()
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	for {
		s.next()
		if s.closing && s.k == nil && s.starting == nil {
			return
		}
		var msgs <-chan *jupyter.Message
		var exited <-chan struct{}
		var raw <-chan struct{}
		if s.k != nil {
			msgs = s.k.client.Messages()
			raw = s.k.raw.Ready()
			if s.exitBy.IsZero() {
				exited = s.k.Done()
			}
		}
		if due := s.due(); !due.IsZero() {
			timer.Reset(max(0, time.Until(due)))
		} else {
			timer.Stop()
		}
		select {
		case f := <-s.cmds:
			f()
		case <-s.wake:
		case st := <-s.started:
			s.onStarted(st)
		case m, ok := <-msgs:
			if !ok {
				s.onChannelEnd()
			} else {
				s.onMessage(m)
				m.Close()
			}
		case <-raw:
			s.onRaw()
		case <-exited:
			s.exitBy = time.Now().Add(drainExit)
		case <-timer.C:
			s.onTimer()
		}
	}
}

// due is when the loop has to look again; zero for never.
func (s *session) due() time.Time {
	switch {
	case !s.exitBy.IsZero():
		return s.exitBy
	case s.k != nil && s.k.killedAs != nil:
		return s.k.killedAt.Add(killWithin)
	case s.cur != nil:
		return s.nextDue(s.cur)
	case s.sync != nil:
		return s.sync.again
	}
	return time.Time{}
}

func (s *session) onTimer() {
	t := time.Now()
	switch {
	case !s.exitBy.IsZero():
		if !t.Before(s.exitBy) {
			s.kernelGone()
		}
	case s.k != nil && s.k.killedAs != nil:
		if !t.Before(s.k.killedAt.Add(killWithin)) { // it can't be killed: it waits for a device
			s.kernelGone()
		}
	case s.cur != nil:
		s.tickCell(s.cur)
	case s.sync != nil && !t.Before(s.sync.end):
		s.sync = nil
	case s.sync != nil && !t.Before(s.sync.again):
		s.askSync()
	}
}

// next sends the next cell where that can be, and starts a kernel for it where
// there is none.
func (s *session) next() {
	if s.cur != nil || s.closing || s.sync != nil || !s.exitBy.IsZero() || s.starting != nil {
		return
	}
	s.mu.Lock()
	var t *task
	if len(s.queue) > 0 {
		if t = s.queue[0]; s.k != nil {
			s.queue = s.queue[1:]
		}
	}
	s.mu.Unlock()
	if t == nil {
		return
	}
	if s.k != nil && !s.k.alive() { // it died while idle: the cell is for the next one
		s.requeue(t)
		s.exitBy = time.Now().Add(drainExit)
		return
	}
	if g := t.req.IfGeneration; g != nil && (s.k == nil || *g != s.gen) {
		if s.dequeue(t.e) || s.k != nil {
			s.fail(t.e, errGeneration(s.id, *g, s.gen, s.k == nil))
		}
		s.next()
		return
	}
	if s.k == nil {
		s.startKernel(true, t.req.RequestID)
		return
	}
	s.send(t)
}

// noticeAfter is when those who wait for a start are told why it takes long.
const noticeAfter = 3 * time.Second

// startKernel begins a start; the loop goes on meanwhile.
func (s *session) startKernel(forCell bool, request string) {
	ctx, cancel := context.WithCancelCause(context.Background())
	st := &starting{cancel: cancel, launch: s.launch, request: request}
	s.starting, s.fresh = st, forCell
	s.publish()
	go func() {
		if isToInstall(st.launch) {
			st.launch, st.err = s.m.catalogue.Install(ctx, st.launch.Language, s.progress)
		}
		if st.err == nil {
			timeout := time.AfterFunc(s.m.startTimeout(st.launch), func() { cancel(errStartTimeout) })
			notice := time.AfterFunc(noticeAfter, func() {
				if st.launch.StartNotice != "" {
					s.progress(st.launch.StartNotice)
				}
			})
			begun := time.Now()
			st.k, st.err = s.m.startKernel(ctx, st.launch, s.cwd, s.env)
			st.took = time.Since(begun)
			timeout.Stop()
			notice.Stop()
		}
		cancel(nil)
		s.started <- st
	}()
}

func (s *session) onStarted(st *starting) {
	s.starting = nil
	s.m.counts.started(s.view.Language, st.took, s.gen > 0, st.err == nil)
	if st.err == nil {
		s.mu.Lock()
		s.launch = st.launch
		s.mu.Unlock()
		s.k = st.k
		s.gen++
		s.count = 0
		s.recent, s.order = map[string]*execution.Execution{}, nil
		s.log.Info("a kernel is ready", "request", st.request, "generation", s.gen, "pid", s.k.Pid(), "durationMs", st.took.Milliseconds())
	} else {
		s.log.Warn("a kernel did not start", "request", st.request, "durationMs", st.took.Milliseconds(), "error", st.err)
		refusal := asAPI(st.err)
		if s.gen == 0 { // nothing is left of a context that never was
			s.close()
		}
		queue := s.takeQueue()
		s.publish()
		for _, t := range queue {
			s.fail(t.e, refusal)
		}
	}
	s.publish()
	for _, w := range st.waiters {
		w <- st.err
	}
}

// ready has w told when the context has a kernel, which is started if need be.
func (s *session) ready(w chan error, request string) {
	switch {
	case s.closing:
		w <- errDeleted(s.id)
	case s.k != nil && s.exitBy.IsZero():
		w <- nil
	default:
		if s.starting == nil {
			s.startKernel(false, request)
		}
		s.starting.waiters = append(s.starting.waiters, w)
	}
}

func (s *session) onMessage(m *jupyter.Message) {
	if m.Channel == jupyter.IOPub {
		s.onRaw() // what was written to the pipes before it comes before it
	}
	parent := m.Parent.MsgID
	switch {
	case m.Header.MsgType == "taken_request" && m.Channel == jupyter.IOPub:
		s.answerTaken(m)
	case parent == "":
	case s.cur != nil && parent == s.cur.msgID:
		s.message(s.cur, m)
	case s.cur != nil && s.cur.ask != nil && parent == s.cur.ask.behind:
		if m.Channel == jupyter.IOPub {
			s.input(s.cur)
		}
	case s.cur != nil && parent == s.cur.probe:
		s.answered(s.cur, m)
	case s.sync != nil && parent == s.sync.msgID:
		if m.Channel == jupyter.Shell {
			s.sync = nil
		}
	case s.asks[parent] != nil:
		if m.Channel == jupyter.Shell {
			raw, err := m.Content.Raw(s.m.o.MaxReply)
			if err != nil {
				raw = nil
			}
			s.asks[parent] <- raw
			delete(s.asks, parent)
		}
	case s.recent[parent] != nil && m.Channel == jupyter.IOPub:
		s.output(s.recent[parent], m) // late: a thread of a finished cell
	default:
		s.m.unmatched.Add(1)
	}
}

// remember keeps a finished cell for late output.
func (s *session) remember(c *cell) {
	s.recent[c.msgID] = c.e
	s.order = append(s.order, c.msgID)
	if len(s.order) > maxRecent {
		delete(s.recent, s.order[0])
		s.order = s.order[1:]
	}
}

// onRaw takes what was written to the pipes so far.
func (s *session) onRaw() {
	if s.cur != nil {
		s.takeRaw(s.cur.e)
	} else {
		s.between(s.k.raw.Drain())
	}
}

// answerTaken tells the kernel that all its messages up to this one were taken, and what
// was written to the pipes before it. What it writes there now comes after them.
func (s *session) answerTaken(m *jupyter.Message) {
	var number uint32
	if err := pick(m.Content, "number", &number); err != nil || s.k.taken == nil {
		s.m.unmatched.Add(1)
		return
	}
	_, _ = s.k.taken.WriteAt(binary.LittleEndian.AppendUint32(nil, number), 0) // it waits for a while without
}

// between is raw output while no cell runs: nobody's but the log's.
func (s *session) between(pieces []rawpipe.Piece) {
	for _, p := range pieces {
		s.k.words.add(p.Bytes)
		s.log.Debug("output between cells", "generation", s.gen, "stream", streamNames[p.Stream], "text", logging.Content(p.Bytes))
	}
}
