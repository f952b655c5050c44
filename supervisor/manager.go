package supervisor

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cellard/cellard/execution"
	"github.com/cellard/cellard/kernels"
	"github.com/cellard/cellard/protocol/api"
	"github.com/cellard/cellard/store"
)

const sigKill = syscall.SIGKILL

// Options set up a Manager. Of the zero value all but Workspace and RuntimeDir is usable.
type Options struct {
	// Workspace is where contexts start.
	Workspace string
	// StateDir is where refs and overflows lie; .runtime in the workspace when empty.
	// One agent at a time has it.
	StateDir string
	// RuntimeDir is a directory of the agent's own for connection files and sockets. It
	// is made if need be, and removed by Shutdown.
	RuntimeDir string
	// User is whom kernels run as: an account's name or uid; see findAccount for
	// the default.
	User string
	// Python is the command line of the Python to use; empty to look for one.
	Python string
	// Env is the environment that kernels get, less what is the agent's alone; nil
	// for the agent's own.
	Env []string
	// Keeper is the command line of a process that runs Keeper; nil for none.
	Keeper []string
	// Sole says that all that this process starts, in sessions of their own, are the
	// Manager's kernels: what is left to it when the last of them is gone is then what
	// they left, and is killed though it bears no mark of theirs any more.
	Sole bool

	Limits          execution.Limits
	StartTimeout    time.Duration // of a kernel; 60 s
	InterruptGrace  time.Duration // from a cell's interrupt to the kill; 10 s
	DisconnectGrace time.Duration // without a reader, before the interrupt; 2 s
	ShutdownGrace   time.Duration // for running cells when the agent stops; 3 s
	MaxQueue        int           // cells that wait in a context; 128
	MaxCode         int64         // bytes of code of all cells that wait or run; 64 MiB
	MaxContexts     int           // 64
	MaxMessage      int64         // bytes of one message of a kernel's; 2 GiB
	MaxReply        int64         // bytes of a kernel's reply that is passed on; 4 MiB
	Retention       time.Duration // of an execution, after its end; 10 minutes
	RetentionBytes  int64         // of memory, for ended executions together; 32 MiB
	Quota           int64         // bytes of the store; its default when 0
	SpoolLimit      int64         // bytes of one overflow file; the store's default when 0
	Logger          *slog.Logger

	spawn *spawner // shared by the Managers of a test, since each would reap the others' kernels
}

func (o Options) withDefaults() Options {
	def(&o.StartTimeout, 60*time.Second)
	def(&o.InterruptGrace, 10*time.Second)
	def(&o.DisconnectGrace, 2*time.Second)
	def(&o.ShutdownGrace, 3*time.Second)
	def(&o.MaxQueue, 128)
	def(&o.MaxCode, 64<<20)
	def(&o.MaxContexts, 64)
	def(&o.MaxMessage, 2<<30)
	def(&o.MaxReply, 4<<20)
	def(&o.Retention, 10*time.Minute)
	def(&o.RetentionBytes, 32<<20)
	if o.Env == nil {
		o.Env = os.Environ()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func def[T int | int64 | time.Duration](p *T, v T) {
	if *p == 0 {
		*p = v
	}
}

// Manager holds the contexts and the executions. Its methods may be called from
// anywhere; their errors are *api.Error. The caller ends it with Shutdown.
type Manager struct {
	o         Options
	log       *slog.Logger
	instance  string
	user      *account
	store     *store.Store
	spawn     *spawner
	keeper    *keeper
	catalogue *kernels.Catalogue
	kernels   atomic.Int64 // started so far
	unmatched atomic.Int64 // messages that named no cell

	creating sync.Mutex // over the making of a context

	mu       sync.Mutex
	sessions map[string]*session
	execs    map[string]*record
	keys     map[string]*record
	ended    []*record // oldest first
	spent    []*record // without their execution, for their keys; oldest first
	bytes    int64     // of ended
	running  int
	code     int64 // bytes, of those that run or wait
	lastEnd  time.Time
	janitor  *time.Timer
	stopping bool
}

// record is an execution that can be asked for.
type record struct {
	e    *execution.Execution
	s    *session
	key  string
	body [sha256.Size]byte // what an idempotency key stands for
	code int64             // bytes
	end  time.Time
	size int64
}

// NewManager makes a Manager. It starts no kernel and looks for none. There is one in a
// process: it makes the process the reaper of orphans, and takes each child for one that
// is in a session of its own and that it did not start.
func NewManager(o Options) (*Manager, error) {
	o = o.withDefaults()
	m := &Manager{o: o, log: o.Logger, instance: newID(""), sessions: map[string]*session{},
		execs: map[string]*record{}, keys: map[string]*record{}, lastEnd: time.Now()}
	var err error
	if o.Workspace, err = filepath.Abs(o.Workspace); err != nil {
		return nil, err
	}
	m.o.Workspace = o.Workspace
	_, err = os.Stat(o.Workspace)
	made := errors.Is(err, os.ErrNotExist)
	if err := mkdirs(o.Workspace, 0o755); err != nil {
		return nil, fmt.Errorf("workspace: %w; name a directory that the agent can write to", err)
	}
	own := o.StateDir
	if own == "" {
		own = filepath.Join(o.Workspace, ".runtime")
	}
	if err := mkdirs(own, 0o755); err != nil {
		return nil, fmt.Errorf("workspace %s: %w; name a directory that the agent can write to", o.Workspace, err)
	}
	if err := mkdirs(o.RuntimeDir, 0o711); err != nil {
		return nil, err
	}
	if m.user, err = findAccount(o.User, filepath.Join(own, "home")); err != nil {
		return nil, err
	}
	if made { // a workspace is the cells' to write to
		if err := m.user.own(o.Workspace); err != nil {
			return nil, err
		}
	}
	if m.store, err = store.Open(filepath.Join(own, "interpreter"), store.Options{Quota: o.Quota, SpoolLimit: o.SpoolLimit}); err != nil {
		return nil, err
	}
	m.catalogue = kernels.New(kernels.Options{Python: o.Python, Env: m.environ(nil, nil, ""),
		Dir: o.Workspace, Credential: m.user.credential})
	if m.spawn = o.spawn; m.spawn == nil {
		m.spawn = newSpawner()
	}
	m.keeper = &keeper{argv: o.Keeper, mark: "CELLARD_KERNEL=" + m.instance + "-", dir: o.RuntimeDir}
	return m, nil
}

// mkdirs makes dir, and sets its mode where it made it: a umask must not lock the cells out.
func mkdirs(dir string, mode os.FileMode) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, mode); err != nil {
		return err
	}
	return os.Chmod(dir, mode)
}

// InstanceID names this run of the agent.
func (m *Manager) InstanceID() string { return m.instance }

// Boundary reports whether cells run as another user than the agent, and as whom.
func (m *Manager) Boundary() (user string, ok bool) {
	return m.user.name, m.user.boundary()
}

// CellUID is the uid that cells run as.
func (m *Manager) CellUID() int { return m.user.uid }

// Health tells how many cells run or wait, and for how long none has.
func (m *Manager) Health() (running int, idle time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.running > 0 {
		return m.running, 0
	}
	return 0, time.Since(m.lastEnd)
}

// Languages tells what can be run.
func (m *Manager) Languages(ctx context.Context) []api.Language { return m.catalogue.Languages(ctx) }

// OpenResult opens a ref's or overflow's file. The caller closes it.
func (m *Manager) OpenResult(contextID, file string) (*store.File, error) {
	return m.store.Open(contextID, file)
}

// Run is an execution that a request started or found. Leave must be called once:
// gone says that the client went away, rather than got its answer.
type Run struct {
	*execution.Execution
	Leave    func(gone bool)
	Existing bool
}

// Run takes a cell: it is queued, and its execution is there, when Run returns.
func (m *Manager) Run(req api.RunRequest) (*Run, error) {
	if err := checkRun(req); err != nil {
		return nil, err
	}
	var body [sha256.Size]byte
	if req.IdempotencyKey != "" {
		body = bodyOf(req)
		m.creating.Lock() // so that of two requests with a key one waits for the other
		defer m.creating.Unlock()
		m.mu.Lock()
		r := m.keys[req.IdempotencyKey]
		var e *execution.Execution
		if r != nil {
			e = r.e
		}
		m.mu.Unlock()
		if r != nil {
			if r.body != body {
				return nil, api.Errorf(api.CodeConflict, "the idempotency key was used with another body").
					WithHint("use a new key for a new cell")
			}
			if e == nil {
				return nil, api.Errorf(api.CodeGone, "the cell of this idempotency key has run, and its execution is no longer kept").
					WithHint("use a new key to run it again")
			}
			return &Run{Execution: e, Leave: e.Attach(), Existing: true}, nil
		}
	}
	for {
		s, err := m.sessionFor(req)
		if err != nil {
			return nil, err
		}
		run, err := m.queue(s, req, body)
		if !errors.Is(err, errShut) {
			return run, err
		}
		<-s.gone
	}
}

func (m *Manager) queue(s *session, req api.RunRequest, body [sha256.Size]byte) (*Run, error) {
	if (req.Env != nil || req.Cwd != "") && !s.launch.CellEnv {
		return nil, api.Errorf(api.CodeUnsupported, "the kernel of context %s can't set env or cwd for a single cell", s.id).
			WithHint("set them when the context is created, or in the code")
	}
	if g := req.IfGeneration; g != nil {
		if have, alive := s.generation(); have != *g || !alive {
			return nil, errGeneration(s.id, *g, have, !alive)
		}
	}
	disconnect := req.IdempotencyKey == ""
	if req.InterruptOnDisconnect != nil {
		disconnect = *req.InterruptOnDisconnect
	}
	e := execution.New(execution.Options{ID: newID("e_"), ContextID: s.id, Language: s.info().Language,
		Limits: m.o.Limits, Store: m.store, Stdin: req.Stdin, InterruptOnDisconnect: disconnect,
		Grace: m.o.DisconnectGrace, Abandoned: func(e *execution.Execution) { _, _ = m.InterruptExecution(e.ID()) }})
	r := &record{e: e, s: s, key: req.IdempotencyKey, body: body, code: int64(len(req.Code))}
	m.mu.Lock()
	if m.stopping {
		m.mu.Unlock()
		return nil, errStopping()
	}
	if m.code > 0 && m.code+r.code > m.o.MaxCode {
		m.mu.Unlock()
		return nil, api.Errorf(api.CodeBusy, "the cells that wait or run have %d bytes of code already", m.code).
			WithHint("wait for some to end, or let the cell read a file")
	}
	m.execs[e.ID()] = r
	if r.key != "" {
		m.keys[r.key] = r
	}
	m.running++
	m.code += r.code
	m.mu.Unlock()
	leave := e.Attach()
	if err := s.enqueue(&task{e: e, req: req}); err != nil {
		m.mu.Lock()
		m.running--
		m.code -= r.code
		delete(m.execs, e.ID())
		m.removeKey(r)
		m.mu.Unlock()
		e.Close()
		return nil, err
	}
	return &Run{Execution: e, Leave: leave}, nil
}

// sessionFor finds the context that a cell runs in; a language's own is made.
func (m *Manager) sessionFor(req api.RunRequest) (*session, error) {
	lang, id := strings.ToLower(req.Language), req.Context // kernelspecs are known in lower case too
	if id == "" {
		if lang == "" {
			lang = "python"
		}
		id = contextName(lang)
	}
	if s := m.session(id); s != nil {
		if have := s.info().Language; lang != "" && lang != have {
			return nil, api.Errorf(api.CodeInvalidRequest, "context %s is %s, not %s", id, have, lang).
				WithHint("leave the language out, or name another context")
		}
		return s, nil
	}
	if req.Context != "" {
		own := lang
		if own == "" {
			own = id
		}
		if contextName(own) != id || !m.catalogue.Has(own) {
			if lang != "" && m.catalogue.Has(id) {
				return nil, api.Errorf(api.CodeInvalidRequest, "context %s is %s's own, not %s's", id, id, lang).
					WithHint("leave the language out, or name another context")
			}
			return nil, errNoContext(id)
		}
		lang = own
	}
	if req.IfGeneration != nil {
		return nil, errGeneration(id, *req.IfGeneration, 0, true)
	}
	if req.IdempotencyKey == "" {
		m.creating.Lock()
		defer m.creating.Unlock()
	}
	if s := m.session(id); s != nil {
		return s, nil
	}
	return m.newContext(id, lang, "", nil)
}

// newContext makes a session; the caller holds creating.
func (m *Manager) newContext(id, lang, cwd string, env map[string]string) (*session, error) {
	ctx, cancel := context.WithTimeout(context.Background(), m.o.StartTimeout)
	defer cancel()
	launch, err := m.catalogue.Launch(ctx, lang)
	if err != nil {
		return nil, asAPI(err)
	}
	if cwd == "" {
		cwd = m.o.Workspace
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopping {
		return nil, errStopping()
	}
	if len(m.sessions) >= m.o.MaxContexts {
		return nil, api.Errorf(api.CodeBusy, "there are %d contexts already", len(m.sessions)).WithHint("delete one that is not needed")
	}
	s := newSession(m, id, launch.Language, launch, cwd, env)
	m.sessions[id] = s
	return s, nil
}

func (m *Manager) session(id string) *session {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sessions[id]
}

// live is a session that is not being deleted.
func (m *Manager) live(id string) (*session, error) {
	if s := m.session(id); s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.shut {
			return s, nil
		}
	}
	return nil, errNoContext(id)
}

// forget is the end of a session.
func (m *Manager) forget(s *session) {
	if s.deleted {
		if err := m.store.Drop(s.id); err != nil {
			m.log.Warn("removing a context's files", "context", s.id, "error", err)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sessions[s.id] == s {
		delete(m.sessions, s.id)
	}
}

// Contexts lists the contexts by id.
func (m *Manager) Contexts() []api.Context {
	m.mu.Lock()
	all := make([]*session, 0, len(m.sessions))
	for _, s := range m.sessions {
		all = append(all, s)
	}
	m.mu.Unlock()
	out := make([]api.Context, len(all))
	for i, s := range all {
		out[i] = s.info()
	}
	sort.Slice(out, func(i, j int) bool { return out[i].ID < out[j].ID })
	return out
}

// Context is one of them.
func (m *Manager) Context(id string) (api.Context, error) {
	s, err := m.live(id)
	if err != nil {
		return api.Context{}, err
	}
	return s.info(), nil
}

// CreateContext makes a context and returns once its kernel is ready.
func (m *Manager) CreateContext(ctx context.Context, req api.ContextRequest) (api.Context, error) {
	if req.ID == "" {
		req.ID = "c-" + strings.ToLower(newID(""))[16:]
	}
	if !contextID.MatchString(req.ID) {
		return api.Context{}, api.Errorf(api.CodeInvalidRequest, "%q is no context id", req.ID).
			WithHint("use a-z, 0-9 and -, at most 63 of them, not beginning with -")
	}
	req.Language = strings.ToLower(req.Language)
	own := m.catalogue.Has(req.ID) // a language's own name is its own context's
	switch {
	case own && req.Language == "":
		req.Language = req.ID
	case own && contextName(req.Language) != req.ID:
		return api.Context{}, api.Errorf(api.CodeInvalidRequest, "context %s is %s's own, not %s's", req.ID, req.ID, req.Language).
			WithHint("leave the language out, or choose another id")
	case req.Language == "":
		req.Language = "python"
	}
	if err := errors.Join(checkEnv(req.Env), m.checkCwd(&req.Cwd)); err != nil {
		return api.Context{}, api.Errorf(api.CodeInvalidRequest, "%v", err)
	}
	s, err := m.create(req)
	if err != nil {
		return api.Context{}, err
	}
	return m.whenReady(ctx, s)
}

func (m *Manager) create(req api.ContextRequest) (*session, error) {
	m.creating.Lock()
	defer m.creating.Unlock()
	for {
		s := m.session(req.ID)
		if s == nil {
			return m.newContext(req.ID, req.Language, req.Cwd, req.Env)
		}
		if _, err := m.live(req.ID); err == nil {
			return nil, api.Errorf(api.CodeConflict, "there is a context %s already", req.ID).WithHint("delete it first, or choose another id")
		}
		<-s.gone
	}
}

// whenReady waits until the session has a kernel.
func (m *Manager) whenReady(ctx context.Context, s *session) (api.Context, error) {
	w := make(chan error, 1)
	if !s.do(func() { s.ready(w) }) {
		return api.Context{}, errNoContext(s.id)
	}
	select {
	case err := <-w:
		if err != nil {
			return api.Context{}, asAPI(err)
		}
		return s.info(), nil
	case <-ctx.Done():
		return api.Context{}, api.Errorf(api.CodeUnavailable, "the kernel is still starting").WithHint("ask for the context again")
	}
}

// Restart gives a context a new kernel.
func (m *Manager) Restart(ctx context.Context, id string) (api.Context, error) {
	s, err := m.live(id)
	if err != nil {
		return api.Context{}, err
	}
	w := make(chan error, 1)
	if !s.do(func() {
		s.stopKernel(&api.Lost{Reason: api.LostRestart, Message: "the context was restarted"},
			"ContextRestarted", "the context was restarted before the cell ran")
		s.ready(w)
	}) {
		return api.Context{}, errNoContext(id)
	}
	select {
	case err := <-w:
		if err != nil {
			return api.Context{}, asAPI(err)
		}
		return s.info(), nil
	case <-ctx.Done():
		return api.Context{}, api.Errorf(api.CodeUnavailable, "the kernel is still starting").WithHint("ask for the context again")
	}
}

// Interrupt stops the context's running cell; false when none runs.
func (m *Manager) Interrupt(_ context.Context, id string) (bool, error) {
	s, err := m.live(id)
	if err != nil {
		return false, err
	}
	running := false
	if !s.do(func() {
		running = s.cur != nil
		s.stopCell(whyInterrupt)
	}) {
		return false, errNoContext(id)
	}
	return running, nil
}

// Delete ends a context; its id is free when Delete returns.
func (m *Manager) Delete(_ context.Context, id string) error {
	s, err := m.live(id)
	if err != nil {
		return err
	}
	if !s.do(func() {
		s.deleted = true
		s.close()
		s.stopKernel(&api.Lost{Reason: api.LostDeleted, Message: "the context was deleted"},
			"ContextDeleted", "the context was deleted before the cell ran")
	}) {
		return errNoContext(id)
	}
	<-s.gone
	return nil
}

// Ask passes a complete_request, inspect_request or is_complete_request on, and the
// content of the kernel's reply back.
func (m *Manager) Ask(ctx context.Context, id, msgType string, req api.CompleteRequest) (json.RawMessage, error) {
	s, err := m.live(id)
	if err != nil {
		return nil, err
	}
	if _, err := m.whenReady(ctx, s); err != nil {
		return nil, err
	}
	content := map[string]any{"code": req.Code}
	if msgType != "is_complete_request" {
		cursor := len([]rune(req.Code))
		if req.Cursor != nil {
			if *req.Cursor < 0 || *req.Cursor > cursor {
				return nil, api.Errorf(api.CodeInvalidRequest, "cursor: %d is outside the code's %d characters", *req.Cursor, cursor)
			}
			cursor = *req.Cursor
		}
		content["cursor_pos"] = cursor
	}
	if msgType == "inspect_request" {
		content["detail_level"] = req.Detail
	}
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	ch := make(chan json.RawMessage, 1)
	var msgID string
	if !s.do(func() { msgID = s.ask(msgType, content, ch) }) {
		return nil, errNoContext(id)
	}
	select {
	case raw := <-ch:
		if raw == nil {
			return nil, api.Errorf(api.CodeUnavailable, "the kernel gave no answer").WithHint("ask again")
		}
		return raw, nil
	case <-ctx.Done():
		s.do(func() { delete(s.asks, msgID) })
		return nil, api.Errorf(api.CodeUnavailable, "the kernel did not answer in time: it answers between cells").WithHint("ask again when the context is idle")
	}
}

const askWithin = 10 * time.Second

var contextID = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// contextName is the id of a language's own context: its name, made fit.
func contextName(lang string) string {
	b := []byte(strings.ToLower(lang))
	for i, c := range b {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			b[i] = '-'
		}
	}
	return strings.TrimLeft(string(b[:min(len(b), 63)]), "-")
}

// newID makes an id that sorts by time: 48 bits of milliseconds and 80 of chance, in
// Crockford's base 32 (a ULID).
func newID(prefix string) string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	var t [8]byte
	binary.BigEndian.PutUint64(t[:], uint64(time.Now().UnixMilli()))
	copy(b[:6], t[2:])
	return prefix + base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").WithPadding(base32.NoPadding).EncodeToString(b[:])
}
