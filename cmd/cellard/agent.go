package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/cellard/cellard/internal/logging"
	"github.com/cellard/cellard/store"
	"github.com/cellard/cellard/supervisor"
)

// agentFlags are the flags of every command that has a Manager.
type agentFlags struct {
	o          supervisor.Options
	runtimeDir string
	logLevel   slog.Level
	logFormat  string
	logContent bool
}

func newAgentFlags(fs *flagSet, level slog.Level) *agentFlags {
	a := &agentFlags{}
	o := &a.o
	fs.StringVar(&o.Workspace, "workspace", defaultWorkspace(), "`DIR` where contexts start, and where .runtime/ is made (default /workspace where it exists, else the current directory)")
	fs.Lookup("workspace").DefValue = "" // told in words
	fs.StringVar(&a.runtimeDir, "runtime-dir", defaultRuntimeDir(), "`DIR` for sockets and connection files; each agent makes its own directory in it")
	fs.StringVar(&o.User, "user", "", "`ACCOUNT` or uid that cells run as, when the agent is root (default "+supervisor.DefaultUser+" where there is such an account, else nobody)")
	fs.StringVar(&o.Python, "python", "", "`COMMAND` that starts Python, as in \"uv run python\" (default: that of an active environment, else of the PATH)")
	fs.BoolVar(&o.InstallLanguages, "install-languages", os.Geteuid() == 0, "install a language that is not there at its first run (default: when the agent is root)")
	fs.Lookup("install-languages").DefValue = "" // told in words
	durationVar(fs, &o.StartTimeout, "start-timeout", 60*time.Second, "`TIME` that a kernel's start may take")
	durationVar(fs, &o.InterruptGrace, "interrupt-grace", 10*time.Second, "`TIME` from a cell's interrupt to the kernel's end")
	durationVar(fs, &o.DisconnectGrace, "disconnect-grace", 2*time.Second, "`TIME` without a reader before a cell is interrupted")
	durationVar(fs, &o.ShutdownGrace, "shutdown-grace", 3*time.Second, "`TIME` for running cells to end when the agent is stopped")
	countVar(fs, &o.MaxQueue, "max-queue", 128, "`N` cells may wait in a context")
	countVar(fs, &o.MaxContexts, "max-contexts", 64, "`N` contexts may be there")
	durationVar(fs, &o.Retention, "retention", 10*time.Minute, "`TIME` that an execution is kept after its end")
	sizeVar(fs, &o.RetentionBytes, "retention-memory", 32<<20, "`SIZE` of memory for ended executions together")
	sizeVar(fs, &o.Quota, "store-quota", 2<<30, "`SIZE` of the files of all refs and overflows together")
	sizeVar(fs, &o.SpoolLimit, "spool-limit", 1<<30, "`SIZE` of one overflow file")
	sizeVar(fs, &o.NotebookBytes, "notebook-limit", 16<<20, "`SIZE` of the code and outputs of a context that are kept for its notebook")
	sizeVar(fs, &o.Limits.Inline, "inline-limit", 48<<10, "`SIZE` of a value in data, past which it is a ref")
	sizeVar(fs, &o.Limits.InlineTable, "table-limit", 256<<10, "`SIZE` of a table in data, past which it is a ref")
	sizeVar(fs, &o.Limits.InlineResults, "results-limit", 4<<20, "`SIZE` of all results of an execution in data, past which the next are refs")
	sizeVar(fs, &o.Limits.Stream, "stream-limit", 1<<20, "`SIZE` of stdout, and of stderr, in an execution, past which it overflows")
	fs.TextVar(&a.logLevel, "log-level", level, "`LEVEL` of the log on stderr: debug, info, warn or error")
	fs.Lookup("log-level").DefValue = strings.ToLower(level.String())
	fs.StringVar(&a.logFormat, "log-format", "text", "`FORMAT` of the log: text, or json")
	fs.BoolVar(&a.logContent, "log-content", false, "log what cells, kernels and hosts wrote too, code and output among it: only to look for a fault")
	return a
}

// logger makes the log on stderr.
func (a *agentFlags) logger() (*slog.Logger, error) {
	if a.logFormat != "text" && a.logFormat != "json" {
		return nil, fmt.Errorf("--log-format %q: want text or json", a.logFormat)
	}
	return logging.New(os.Stderr, logging.Options{Level: a.logLevel, JSON: a.logFormat == "json", Content: a.logContent}), nil
}

// manager makes the Manager that the flags describe. The caller shuts it down.
func (a *agentFlags) manager(log *slog.Logger) (*supervisor.Manager, error) {
	m, err := a.newManager(log)
	if err != nil && !slices.ContainsFunc(passing, func(e error) bool { return errors.Is(err, e) }) {
		return nil, usageError(err.Error()) // of the account or a directory, which the flags name
	}
	return m, err
}

// passing are errors for which no flag is to blame: the same command can work later.
var passing = []error{store.ErrInUse, syscall.ENOSPC, syscall.EDQUOT, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE, syscall.EIO, syscall.EAGAIN}

func (a *agentFlags) newManager(log *slog.Logger) (*supervisor.Manager, error) {
	dir, err := makeRuntimeDir(a.runtimeDir)
	if err != nil {
		return nil, fmt.Errorf("runtime directory: %w", err)
	}
	a.o.RuntimeDir, a.o.Logger, a.o.Sole = dir, log, true
	if self, err := os.Executable(); err == nil {
		a.o.Keeper = []string{self, "keeper"}
	}
	m, err := supervisor.NewManager(a.o)
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	return m, nil
}

func defaultWorkspace() string {
	if isDir("/workspace") {
		return "/workspace"
	}
	return "."
}

// userRuntimeDir is $XDG_RUNTIME_DIR, where it is the user's. Root has none: cells of
// another user could not reach what lies in it.
func userRuntimeDir() string {
	dir := os.Getenv("XDG_RUNTIME_DIR")
	if os.Getuid() == 0 || !filepath.IsAbs(dir) || owned(dir) != nil {
		return ""
	}
	return dir
}

func defaultRuntimeDir() string {
	if os.Getuid() == 0 && isDir("/run") {
		return "/run/cellard"
	}
	if dir := userRuntimeDir(); dir != "" {
		return filepath.Join(dir, "cellard")
	}
	return filepath.Join(os.TempDir(), "cellard-"+strconv.Itoa(os.Getuid()))
}

// makeRuntimeDir makes the agent's own directory in base. When the agent is root, cells
// of another user must be able to go through both, though not to list them.
func makeRuntimeDir(base string) (string, error) {
	base, err := filepath.Abs(base)
	if err != nil {
		return "", err
	}
	mode := os.FileMode(0o700)
	if os.Getuid() == 0 {
		mode = 0o711
	}
	if !isDir(base) {
		if err := os.MkdirAll(base, mode); err != nil {
			return "", err
		}
		if err := os.Chmod(base, mode); err != nil { // whatever the umask is
			return "", err
		}
	}
	if err := owned(base); err != nil {
		return "", err
	}
	return supervisor.Claim(base, "agent-*", func() (string, error) {
		dir, err := os.MkdirTemp(base, "agent-")
		if err != nil {
			return "", err
		}
		return dir, os.Chmod(dir, mode)
	})
}

// owned checks that dir is a directory of ours that no one else can write to: in
// /tmp another could have made it.
func owned(dir string) error { return ownedBy(os.Geteuid(), dir) }

// ownedBy is owned for another user.
func ownedBy(uid int, dir string) error {
	fi, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok || !fi.IsDir() || int(st.Uid) != uid || fi.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s must be a directory of uid %d that only it can write to", dir, uid)
	}
	return nil
}

func isDir(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.IsDir()
}
