package supervisor

import (
	"cmp"
	"log/slog"
	"os"
	"time"

	"github.com/cellard/cellard/execution"
	"github.com/cellard/cellard/internal/metrics"
	"github.com/cellard/cellard/kernels/install"
)

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
	// InstallLanguages tells that a language which is not there is installed at its first
	// run. That takes root.
	InstallLanguages bool
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
	NotebookBytes   int64         // of code and outputs that are kept of a context for its notebook; 16 MiB
	Quota           int64         // bytes of the store; its default when 0
	SpoolLimit      int64         // bytes of one overflow file; the store's default when 0
	Logger          *slog.Logger
	// Metrics gets the Manager's figures; nil for none. A Registry is for one Manager.
	Metrics *metrics.Registry

	install    install.Options // for tests: what they need other than a Manager sets
	listWithin time.Duration   // for a kernel to tell its variables; askWithin
	spawn      *spawner        // shared by the Managers of a test, since each would reap the others' kernels
}

func (o Options) withDefaults() Options {
	o.StartTimeout = cmp.Or(o.StartTimeout, 60*time.Second)
	o.InterruptGrace = cmp.Or(o.InterruptGrace, 10*time.Second)
	o.DisconnectGrace = cmp.Or(o.DisconnectGrace, 2*time.Second)
	o.ShutdownGrace = cmp.Or(o.ShutdownGrace, 3*time.Second)
	o.MaxQueue = cmp.Or(o.MaxQueue, 128)
	o.MaxCode = cmp.Or(o.MaxCode, 64<<20)
	o.MaxContexts = cmp.Or(o.MaxContexts, 64)
	o.MaxMessage = cmp.Or(o.MaxMessage, 2<<30)
	o.MaxReply = cmp.Or(o.MaxReply, 4<<20)
	o.Retention = cmp.Or(o.Retention, 10*time.Minute)
	o.RetentionBytes = cmp.Or(o.RetentionBytes, 32<<20)
	o.listWithin = cmp.Or(o.listWithin, askWithin)
	if o.Env == nil {
		o.Env = os.Environ()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}
