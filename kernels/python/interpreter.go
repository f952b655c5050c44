package python

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/google/shlex"

	"github.com/cellard/cellard/internal/environ"
)

// The oldest ipykernel that the launcher runs on: that of Debian 12.
const (
	minMajor = 6
	minMinor = 17
)

// MinVersion is the oldest ipykernel that will do.
const MinVersion = "6.17"

// probe prints what we want to know. It takes the current directory out of the
// path before it imports anything: a json.py may lie there.
const probe = `import sys
sys.path = [p for p in sys.path if p]
import json
def version(name):
    try:
        from importlib.metadata import version
        return version(name)
    except Exception:
        return ""
print(json.dumps({"executable": sys.executable, "prefix": sys.prefix,
    "python": "%d.%d.%d" % sys.version_info[:3], "ipykernel": version("ipykernel")}))
`

// Interpreter is a Python that the kernel can run in.
type Interpreter struct {
	// Argv is the command that starts it, without arguments of ours.
	Argv []string
	// Executable and Prefix are sys.executable and sys.prefix.
	Executable string
	Prefix     string
	// Version and IPykernel are versions, of Python and of ipykernel.
	Version   string
	IPykernel string
}

// Options say where to look. The zero value looks in the agent's own environment.
type Options struct {
	// Command is a command line that starts Python ("uv run python"). With it,
	// nothing else is tried.
	Command string
	// Env is the environment of kernels; nil stands for the agent's own.
	Env []string
	// Dir is where the interpreter is asked; "" stands for the current directory.
	Dir string
	// Timeout bounds one interpreter's answer; 0 stands for 30 s.
	Timeout time.Duration
	// Credential is whom interpreters run as when they are asked: the kernels' user;
	// nil stands for the agent's own.
	Credential *syscall.Credential
}

// Finder finds the interpreter, and remembers it.
type Finder struct {
	options Options
	search  environ.Search
	memo    *environ.Memo[Interpreter]
}

// NewFinder returns a Finder.
func NewFinder(o Options) *Finder {
	return &Finder{options: o, search: environ.Search{Env: o.Env, Dir: o.Dir, Timeout: o.Timeout, Credential: o.Credential}.WithDefaults(),
		memo: environ.NewMemo[Interpreter]()}
}

// NotFoundError says which interpreters were tried, and what each lacks.
type NotFoundError struct {
	Tried []Attempt
	// Named tells that Options.Command is meant, and no other was looked for.
	Named bool
}

// Attempt is an interpreter that won't do, or a command that could not be run.
type Attempt struct {
	Argv   []string
	Reason string
	// Runs tells that it is a Python: that it lacks only ipykernel.
	Runs bool
}

// Error lists the attempts.
func (e *NotFoundError) Error() string {
	if len(e.Tried) == 0 {
		return "no Python was found"
	}
	reasons := make([]string, len(e.Tried))
	for i, a := range e.Tried {
		reasons[i] = strings.Join(a.Argv, " ") + ": " + a.Reason
	}
	return "no Python with ipykernel " + MinVersion + " or newer: " + strings.Join(reasons, "; ")
}

// Hint says what to do about it.
func (e *NotFoundError) Hint() string {
	for _, a := range e.Tried {
		if a.Runs {
			return strings.Join(a.Argv, " ") + " -m pip install --upgrade ipykernel, or name a Python that has it with --python"
		}
	}
	if e.Named {
		return "have --python (CELLARD_PYTHON) name a Python that has ipykernel " + MinVersion + " or newer, or leave it out: then one is looked for"
	}
	return "install Python 3 and its package ipykernel, or name a Python that has it with --python"
}

// Find returns the first interpreter that has a good ipykernel. A success is
// remembered as long as the program stays the same file; after a failure the
// next call looks again, so that an installation mends it. The error is a
// *NotFoundError, or ctx's.
func (f *Finder) Find(ctx context.Context) (*Interpreter, error) {
	return f.memo.Get(ctx, func() (*Interpreter, string, error) {
		candidates, err := f.candidates()
		if err != nil {
			return nil, "", err
		}
		failure := &NotFoundError{Named: f.options.Command != ""}
		for _, argv := range candidates {
			found, attempt := f.ask(ctx, argv)
			if ctx.Err() != nil {
				return nil, "", ctx.Err()
			}
			if found != nil {
				return found, argv[0], nil
			}
			failure.Tried = append(failure.Tried, *attempt)
		}
		return nil, "", failure
	})
}

// Forget makes the next Find look again: for a caller whose kernel did not start.
func (f *Finder) Forget() { f.memo.Forget() }

// candidates are the commands to ask, in order, each once. Their programs exist.
func (f *Finder) candidates() ([][]string, error) {
	if f.options.Command != "" {
		argv, err := shlex.Split(f.options.Command)
		if err != nil {
			return nil, fmt.Errorf("the command line of Python %q: %w", f.options.Command, err)
		}
		if len(argv) == 0 {
			return nil, fmt.Errorf("the command line of Python %q is empty", f.options.Command)
		}
		program, err := environ.LookPath(f.search.Env, argv[0])
		if err != nil {
			return nil, &NotFoundError{Named: true, Tried: []Attempt{{Argv: argv, Reason: err.Error()}}}
		}
		argv[0] = program
		return [][]string{argv}, nil
	}
	var programs []string
	for _, name := range []string{"VIRTUAL_ENV", "CONDA_PREFIX"} {
		if prefix := environ.Get(f.search.Env, name); prefix != "" {
			programs = append(programs, filepath.Join(prefix, "bin", "python3"), filepath.Join(prefix, "bin", "python"))
		}
	}
	programs = append(programs, "python3", "python", "/usr/local/bin/python3", "/usr/bin/python3")
	var argvs [][]string
	seen := make(map[string]bool)
	for _, name := range programs {
		program, err := environ.LookPath(f.search.Env, name)
		// Links are not followed: a virtual environment's python is a link to the one
		// it was made from, and not the same.
		if err != nil || seen[program] {
			continue
		}
		seen[program] = true
		argvs = append(argvs, []string{program})
	}
	return argvs, nil
}

// ask runs a candidate once. It returns the interpreter, or what is wrong with it.
func (f *Finder) ask(ctx context.Context, argv []string) (*Interpreter, *Attempt) {
	fail := func(runs bool, format string, args ...any) (*Interpreter, *Attempt) {
		return nil, &Attempt{Argv: argv, Runs: runs, Reason: fmt.Sprintf(format, args...)}
	}
	out, err := f.search.Ask(ctx, append(argv[:len(argv):len(argv)], "-X", "utf8", "-c", probe)...)
	if err != nil {
		return fail(false, "%v", err)
	}
	var answer struct {
		Executable, Prefix, Python, IPykernel string
	}
	if err := json.Unmarshal([]byte(lastLine(out)), &answer); err != nil || answer.Python == "" {
		return fail(false, "it does not answer as a Python does")
	}
	if answer.IPykernel == "" {
		return fail(true, "Python %s has no ipykernel", answer.Python)
	}
	if !environ.AtLeast(answer.IPykernel, minMajor, minMinor) {
		return fail(true, "its ipykernel %s is too old", answer.IPykernel)
	}
	return &Interpreter{Argv: argv, Executable: answer.Executable, Prefix: answer.Prefix,
		Version: answer.Python, IPykernel: answer.IPykernel}, nil
}

// lastLine is the answer: a wrapper, or a sitecustomize, may print before it.
func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}
