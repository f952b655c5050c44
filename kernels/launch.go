package kernels

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/cellard/cellard/internal/environ"
)

// Launch says how a kernel is started.
type Launch struct {
	// Language is what was asked for; KernelName what runs it, for the connection
	// file.
	Language   string
	KernelName string
	// DisplayName is the kernel's name for people.
	DisplayName string
	// Argv is the command line. {connection_file} in it stands for the connection
	// file, {dir} for the kernel's private directory.
	Argv []string
	// Program, if set, is what is executed in place of Argv[0], which names it for people.
	Program string
	// Env is added to the environment of kernels, as NAME=value.
	Env []string
	// Files are written into the private directory before the start, by name.
	Files map[string][]byte
	// Temp tells that the kernel leaves temporary files behind when it is killed: it gets a
	// directory of its own for them, as TMPDIR, which is removed after it. What TMPDIR was
	// comes as CELLARD_TMPDIR, for what the kernel starts.
	Temp bool
	// InterruptMode is "signal" or "message".
	InterruptMode string
	// WhileIgnored, if it isn't 0, is the signal that interrupts the kernel while it ignores
	// SIGINT, as C's system has its caller do. It counts only while the kernel catches it.
	WhileIgnored syscall.Signal
	// Transport is "ipc", or "tcp" for a kernel that is not known to do ipc.
	Transport string
	// StartTimeout, if it isn't 0, is how long the kernel may take to start, where that is
	// more than the agent's own bound: what it needs may have to be built once. What is
	// said to those who wait is StartNotice.
	StartTimeout time.Duration
	StartNotice  string
	// CellEnv tells that the kernel takes a cell's env and cwd from the metadata of
	// its execute_request: {"cellard":{"env":{…},"cwd":"…"}}.
	CellEnv bool
	// Waits tells that the kernel, before something of a cell's may write past the messages,
	// waits until those that it has sent were taken: it asks by a taken_request on iopub,
	// {"number":N}, and reads N from the file TakenFile of its private directory, 4 bytes,
	// little-endian.
	Waits bool
	// Own tells that it is a kernel of our own, a process in front of its interpreter. An
	// interrupt of it reaches what the cell has started, so nobody else is to signal that;
	// what the interpreter spends is the cell's too; and what its replies say of the state
	// holds, for no cell writes them.
	Own bool
	// Helpers are parts of the command lines of processes that the language's runtime starts
	// for itself when code first needs them: no stop of a cell ends them. What a cell calls
	// so outlives its stop, not its kernel.
	Helpers []string
	// Nudge tells that an interrupt may need a kernel_info_request on shell to be
	// seen: ipykernel's own await (ipython/ipykernel#881).
	Nudge bool
}

// TakenFile is where a kernel that Waits reads what was taken.
const TakenFile = "taken"

// specLaunch starts a kernelspec as it says.
func specLaunch(language string, spec *Spec, env []string) *Launch {
	argv := make([]string, len(spec.Argv))
	prefix := prefixOf(spec.Dir)
	for i, word := range spec.Argv {
		word = strings.ReplaceAll(word, "{resource_dir}", spec.Dir)
		argv[i] = strings.ReplaceAll(word, "{prefix}", prefix)
	}
	if argv[0] == "python" || argv[0] == "python3" {
		// What a wheel installs names no path; it means the environment that it lies in.
		if program, err := environ.LookPath(env, filepath.Join(prefix, "bin", argv[0])); err == nil {
			argv[0] = program
		}
	}
	launch := &Launch{
		Language:      language,
		KernelName:    spec.Name,
		DisplayName:   spec.DisplayName,
		Argv:          argv,
		InterruptMode: spec.InterruptMode,
		Transport:     "tcp",
	}
	for name, value := range spec.Env {
		launch.Env = append(launch.Env, name+"="+expand(value, env))
	}
	slices.Sort(launch.Env)
	line := strings.Join(argv, " ")
	if strings.Contains(line, "ipykernel") {
		launch.Nudge, launch.Helpers = true, pythonHelpers
		launch.Transport = "ipc"
	}
	if strings.Contains(line, "IRkernel") {
		launch.Transport = "ipc"
	}
	return launch
}

// prefixOf is the environment that a kernelspec lies in: PREFIX of
// PREFIX/share/jupyter/kernels/NAME.
func prefixOf(dir string) string {
	return filepath.Dir(filepath.Dir(filepath.Dir(filepath.Dir(dir))))
}

var variable = regexp.MustCompile(`\$(\$|[A-Za-z_][A-Za-z0-9_]*|\{[A-Za-z_][A-Za-z0-9_]*\})`)

// expand puts variables of the environment into a value of a kernelspec's env as
// jupyter_client does (Python's string.Template, safe_substitute): $NAME and
// ${NAME}, $$ for a dollar, and what isn't set stays as it is.
func expand(value string, env []string) string {
	return variable.ReplaceAllStringFunc(value, func(match string) string {
		name := strings.Trim(match[1:], "{}")
		if name == "$" {
			return "$"
		}
		if value, ok := environ.Lookup(env, name); ok {
			return value
		}
		return match
	})
}
