package kernels

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/cellard/cellard/internal/environ"
	"github.com/cellard/cellard/kernels/node"
	"github.com/cellard/cellard/protocol/api"
)

// runner is how a language is run by a kernel of the agent's choice. Each language has a
// file LANGUAGE_language.go with a function that makes its runner, and an entry in
// runners.
type runner struct {
	language string
	kernel   string // what the kernel is called where it can't be asked: "ipykernel"
	// find looks for what runs the language. The error is for the user, an *api.Error
	// with a hint where something can be done about it.
	find func(ctx context.Context) (*found, error)
	// warm, if not nil, prepares what makes the language's first start, or first cells,
	// quicker, and can be kept in an image. It may take minutes, and is done again at
	// no cost.
	warm func(ctx context.Context, f *found, say func(string)) error
	// partly, if not nil, is find's error where what runs the language is there but for a
	// part, which the error says how to install; else it is nil.
	partly func(ctx context.Context) *api.Error
	// named tells that the operator has said which interpreter it is to be. Then none is
	// installed in its place.
	named bool
	// forget, if not nil, makes find look again.
	forget func()
}

// found is what runs a language on this machine.
type found struct {
	launch  *Launch
	path    string // of the interpreter
	version string // of the kernel
	// first is what the first start has to do, of which prepare tells how it is done
	// beforehand; "" for nothing.
	first, prepare string
}

// makeRunners are the languages that the agent brings a kernel for.
func (c *Catalogue) makeRunners(o Options) []runner {
	// One for both of its languages. The kernels' environment has no setting of the agent's.
	ofNode := node.NewFinder(o.search(), os.Getenv("CELLARD_NODE"))
	return []runner{
		pythonRunner(o, c.settings),
		c.nodeRunner(ofNode, node.JavaScript),
		c.nodeRunner(ofNode, node.TypeScript),
		c.javaRunner(o),
		c.goRunner(o),
		c.bashRunner(o),
		rRunner(o, c.settings),
	}
}

// search is where and as whom what runs a language is looked for.
func (o Options) search() environ.Search {
	return environ.Search{Env: o.Env, Dir: o.Dir, Timeout: o.ProbeTimeout, Credential: o.Credential}
}

// notFound is a finder's error for a host. What it says to do is its own, where it knows.
func notFound(err error, otherwise string) *api.Error {
	failure := api.Errorf(api.CodeKernelFailed, "%v", err).WithHint("%s", otherwise)
	var knows interface{ Hint() string }
	if errors.As(err, &knows) {
		failure = failure.WithHint("%s", knows.Hint())
	}
	return failure
}

func (c *Catalogue) runner(language string) *runner {
	for i := range c.runners {
		if c.runners[i].language == language {
			return &c.runners[i]
		}
	}
	return nil
}

// status is a language's line in the list.
func (r *runner) status(ctx context.Context) api.Language {
	language := api.Language{Name: r.language, State: api.LanguageMissing, Kernel: api.KernelInfo{Name: r.kernel}}
	f, err := r.find(ctx)
	if err != nil {
		failure := apiError(err)
		language.Message, language.Hint = failure.Message, failure.Hint
		return language
	}
	language.State = api.LanguageReady
	language.Kernel.Version = f.version
	language.Path = f.path
	language.Message, language.Hint = f.first, f.prepare
	return language
}

// ownLaunch starts a kernel of our own: this program as "cellard kernel NAME", with the
// interpreter that was found.
func (c *Catalogue) ownLaunch(language, interpreter string) (*Launch, error) {
	path, program, err := c.executable.open()
	if err != nil {
		return nil, err
	}
	return &Launch{
		Language:      language,
		KernelName:    language,
		DisplayName:   displayName(language),
		Argv:          []string{path, "kernel", language, "-f", "{connection_file}", "--interpreter", interpreter},
		Program:       program,
		Env:           c.settings,
		InterruptMode: "message",
		Transport:     "ipc",
		CellEnv:       true,
		Own:           true,
	}, nil
}

// displayName is what "cellard kernel install" calls a kernel of our own, too.
func displayName(language string) string {
	switch language {
	case node.JavaScript:
		return "JavaScript (cellard)"
	case node.TypeScript:
		return "TypeScript (cellard)"
	}
	return strings.ToUpper(language[:1]) + language[1:] + " (cellard)"
}

// executable is the program that runs kernels of our own. The cells' user must be able
// to start it wherever it lies, such as in a directory of root's, and what is started
// must be this version of it, though the file may have been replaced since. So it is
// opened once, and executed by its descriptor: a child has that until it has executed
// the program, and no path is looked up. The descriptor is closed with the catalogue,
// by the collector.
type executable struct {
	path string // "": this process's own

	once sync.Once
	file *os.File
	err  error
}

// open returns the path for people to read and the one to execute.
func (e *executable) open() (path, program string, err error) {
	e.once.Do(func() {
		open := e.path
		if e.path == "" {
			open = "/proc/self/exe"
			if e.path, e.err = os.Executable(); e.err != nil {
				e.path = "cellard"
			}
		}
		if e.file, e.err = os.Open(open); e.err != nil { // with O_CLOEXEC
			return
		}
		info, err := e.file.Stat()
		if err != nil {
			e.err = err
		} else if info.Mode().Perm()&0o001 == 0 && os.Geteuid() == 0 {
			e.err = fmt.Errorf("%s may not be executed by the user that cells run as: chmod 755 it", e.path)
		}
	})
	if e.err != nil {
		return "", "", api.Errorf(api.CodeKernelFailed, "the program of the kernels: %v", e.err).WithHint("start the agent from a file that the user of cells may execute")
	}
	return strings.TrimSuffix(e.path, " (deleted)"), fmt.Sprintf("/proc/self/fd/%d", e.file.Fd()), nil
}
