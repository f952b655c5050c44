package supervisor

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cellard/cellard/execution"
	"github.com/cellard/cellard/internal/cgroup"
	"github.com/cellard/cellard/internal/environ"
	"github.com/cellard/cellard/internal/metrics"
	"github.com/cellard/cellard/kernels"
	"github.com/cellard/cellard/kernels/install"
	"github.com/cellard/cellard/protocol/api"
	"github.com/cellard/cellard/store"
)

const sigKill = syscall.SIGKILL

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
	groups    *cgroup.Tree // nil where they can't be had, and then noGroups says why
	noGroups  error
	catalogue *kernels.Catalogue
	installer *install.Installer
	kernels   atomic.Int64 // started so far
	unmatched atomic.Int64 // messages that named no cell
	counts    *counts

	creating sync.Mutex // over the making of a context

	mu       sync.Mutex
	sessions map[string]*session
	execs    map[string]*record
	keys     map[string]*record
	ended    []*record     // oldest first
	spent    []*record     // without their execution, for their keys; oldest first
	bytes    int64         // of ended
	writing  chan struct{} // has a token for who writes a notebook: one at a time, for the memory
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
		execs: map[string]*record{}, keys: map[string]*record{}, writing: make(chan struct{}, 1), lastEnd: time.Now()}
	var err error
	if o.Workspace, err = filepath.Abs(o.Workspace); err != nil {
		return nil, err
	}
	m.o.Workspace = o.Workspace
	fi, err := os.Stat(o.Workspace)
	made := errors.Is(err, os.ErrNotExist)
	if err == nil && !fi.IsDir() {
		return nil, fmt.Errorf("workspace: %s is no directory; name one by --workspace", o.Workspace)
	}
	if m.user, err = findAccount(o.User); err != nil {
		return nil, err
	}
	if err := mkdirs(o.Workspace, 0o755); err != nil {
		return nil, fmt.Errorf("workspace: %w; name a directory that the agent can write to", err)
	}
	if made { // a workspace is the cells' to write to
		if err := m.user.own(o.Workspace); err != nil {
			return nil, err
		}
	}
	// Else every program would get the blame, and be installed for nothing.
	if err := m.user.enter(o.Workspace); err != nil {
		return nil, fmt.Errorf("workspace: %w; name another directory by --workspace, or by --user who can enter this one", err)
	}
	own := o.StateDir
	if own == "" {
		own = filepath.Join(o.Workspace, ".runtime")
	}
	switch aside, err := clearWay(own); {
	case err != nil:
		return nil, fmt.Errorf("workspace: %s is in the way of the agent's files: %w; remove it", own, err)
	case aside != "":
		o.Logger.Warn("what was in the way of the agent's files was moved aside; look at it and remove it", "path", own, "now", aside)
	}
	if err := mkdirs(own, 0o755); err != nil {
		return nil, fmt.Errorf("workspace %s: %w; name a directory that the agent can write to", o.Workspace, err)
	}
	if err := mkdirs(o.RuntimeDir, 0o711); err != nil {
		return nil, err
	}
	if err := m.user.settle(filepath.Join(own, "home")); err != nil {
		return nil, err
	}
	m.store, err = store.Open(filepath.Join(own, "interpreter"), store.Options{Quota: o.Quota, SpoolLimit: o.SpoolLimit})
	if errors.Is(err, os.ErrPermission) {
		return nil, fmt.Errorf("%w; is it another user's agent's? name another directory by --workspace", err)
	}
	if err != nil {
		return nil, err
	}
	installs := o.install
	installs.Enabled, installs.Logger = o.InstallLanguages, m.log
	installs.Privileged = installs.Privileged || os.Geteuid() == 0
	m.installer = install.New(installs)
	m.catalogue = kernels.New(kernels.Options{Python: o.Python, Env: m.environ(nil, nil, ""),
		Dir: o.Workspace, Credential: m.user.credential, Installer: m.installer})
	if o.Metrics == nil {
		o.Metrics = &metrics.Registry{}
	}
	m.counts = m.newCounts(o.Metrics)
	if m.spawn = o.spawn; m.spawn == nil {
		m.spawn = newSpawner()
	}
	m.keeper = &keeper{argv: o.Keeper, mark: "CELLARD_KERNEL=" + m.instance + "-", dir: o.RuntimeDir}
	m.groups, m.noGroups = cgroup.New(m.instance)
	m.keeper.groups = m.groups.Dir()
	return m, nil
}

// group makes a group for a kernel; nil where that can't be had.
func (m *Manager) group(name string) *cgroup.Group {
	g, err := m.groups.Group(name)
	if err != nil {
		m.log.Warn("a kernel has no control group of its own", "error", err)
		return nil
	}
	return g
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

// Workspace is where contexts start, and whether cells can write to it.
func (m *Manager) Workspace(ctx context.Context) (dir string, writable bool) {
	s := environ.Search{Dir: m.o.Workspace, Credential: m.user.credential}
	_, err := s.Ask(ctx, "/bin/sh", "-c", "test -w .")
	return m.o.Workspace, err == nil
}

// CellUID is the uid that cells run as.
func (m *Manager) CellUID() int { return m.user.uid }

// Groups is nil if each kernel has a control group, and so all that it has started ends with
// it; else it tells why they can't be had.
func (m *Manager) Groups() error { return m.noGroups }

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
