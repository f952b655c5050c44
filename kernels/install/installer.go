package install

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cellard/cellard/protocol/api"
)

// Options of an Installer. The zero value installs nothing.
type Options struct {
	// Enabled tells that languages may be installed. Without it Install refuses.
	Enabled bool
	// Privileged tells that this process may install packages: that it is root.
	Privileged bool
	// Env is the environment that installers run in, and are looked for in; nil stands
	// for one of the system's own, see cleanEnv.
	Env []string
	// Prefix is where programs go that aren't the system's packages, each into a directory
	// of its own: /opt/cellard.
	Prefix string
	// Bin is where their programs are linked to: /usr/local/bin.
	Bin string
	// Lock is the file that keeps processes from installing at the same time:
	// /run/cellard-install.lock.
	Lock string
	// Timeout bounds one install; 0 stands for 30 minutes.
	Timeout time.Duration
	// Logger takes the lines of the installers at debug level; nil stands for none.
	Logger *slog.Logger
	// Recipes are the languages that can be installed; nil stands for Recipes().
	Recipes []Recipe
	// Arch is this machine's, as Go calls it; "" stands for what this program is built for.
	Arch string
}

// Installer installs languages. It is safe for concurrent use.
type Installer struct {
	o    Options
	turn chan struct{} // of one element: who holds it installs

	ctx   context.Context
	stop  context.CancelCauseFunc
	tasks sync.WaitGroup

	mu   sync.Mutex
	jobs map[string]*job // by the recipe's first language
}

// New returns an Installer. Close it.
func New(o Options) *Installer {
	if o.Env == nil {
		o.Env = cleanEnv(os.Environ())
	}
	if o.Prefix == "" {
		o.Prefix = "/opt/cellard"
	}
	if o.Bin == "" {
		o.Bin = "/usr/local/bin"
	}
	if o.Lock == "" {
		o.Lock = "/run/cellard-install.lock"
	}
	if o.Timeout <= 0 {
		o.Timeout = 30 * time.Minute
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Recipes == nil {
		o.Recipes = Recipes()
	}
	if o.Arch == "" {
		o.Arch = runtime.GOARCH
	}
	recipes := make([]Recipe, len(o.Recipes))
	for k := range o.Recipes {
		recipes[k] = o.Recipes[k].on(o.Arch)
	}
	o.Recipes = recipes
	i := &Installer{o: o, turn: make(chan struct{}, 1), jobs: make(map[string]*job)}
	i.ctx, i.stop = context.WithCancelCause(context.Background())
	return i
}

var errClosed = errors.New("the install was stopped with the agent")

// Close ends what is being installed, and waits for it.
func (i *Installer) Close() {
	i.mu.Lock()
	i.stop(errClosed)
	i.mu.Unlock()
	i.tasks.Wait()
}

// ArchiveError is the refusal of a language for which no way can be gone, whatever the
// archive would say if it were asked.
type ArchiveError struct {
	// Lacks says what each way lacks.
	Lacks   string
	refusal *api.Error
}

func (e *ArchiveError) Error() string { return e.refusal.Error() }

// Unwrap makes it an *api.Error.
func (e *ArchiveError) Unwrap() error { return e.refusal }

// Check says what installing a language takes, as far as that is known without asking
// the archive. The error, which wraps an *api.Error or is the cause of ctx's end, says
// why it can't be installed here.
func (i *Installer) Check(ctx context.Context, language string) (what string, err error) {
	recipe := i.recipe(language)
	if recipe == nil {
		return "", api.Errorf(api.CodeKernelFailed, "%s is not a language that can be installed", language).
			WithHint("install it where its kernel looks for it, and a Jupyter kernel for a language that has none here")
	}
	// What is known of the archive may be old, or nothing: only a package that is there
	// and too old says something for sure.
	var missing error
	var versions map[string]string
	if reason := i.noApt(); reason != "" {
		missing = refuse(language, reason, "install it by this system's own packages")
	} else {
		var err error
		if versions, err = i.candidates(ctx, recipe.names()); err != nil {
			missing = refuse(language, err.Error(), "see that apt works: apt-cache policy")
		}
		if ctx.Err() != nil {
			return recipe.what(), context.Cause(ctx)
		}
	}
	best, err := i.choose(recipe, versions)
	if what = recipe.what(); best != nil {
		what, missing = best.What(), nil // without apt, it is one that takes none
	}
	switch {
	case best == nil && len(versions) > 0 && !i.anyUnknown(recipe, versions):
		return what, &ArchiveError{err.Error(), refuse(language, err.Error(), "install a newer one, and put it into the PATH")}
	case !i.o.Enabled && missing == nil:
		return what, refuse(language, "installing languages is off", "start the agent with --install-languages, or run: "+what)
	case !i.o.Enabled:
		return what, refuse(language, "installing languages is off", "install it by this system's own packages")
	case !i.o.Privileged:
		return what, refuse(language, "the agent isn't root", "as root, run: cellard languages install "+language)
	}
	return what, missing
}

// Installable are the languages that there is a recipe for.
func (i *Installer) Installable() []string {
	var all []string
	for _, r := range i.o.Recipes {
		all = append(all, r.Languages...)
	}
	return all
}

func (i *Installer) recipe(language string) *Recipe {
	for k := range i.o.Recipes {
		if slices.Contains(i.o.Recipes[k].Languages, language) {
			return &i.o.Recipes[k]
		}
	}
	return nil
}

// names are the packages of all ways, each once.
func (r Recipe) names() []string {
	var names []string
	for _, w := range r.Ways {
		for _, p := range w.Packages {
			if !slices.Contains(names, p.Name) {
				names = append(names, p.Name)
			}
		}
	}
	return names
}

// anyUnknown tells that a way that fails might do after all, once the archive has been
// asked.
func (i *Installer) anyUnknown(r *Recipe, versions map[string]string) bool {
	for _, w := range r.Ways {
		old := i.needs(w) != ""
		for _, p := range w.Packages {
			v := versions[p.Name]
			old = old || v != "" && !atLeast(v, p.Min)
		}
		if !old {
			return true
		}
	}
	return false
}

func refuse(language, reason, hint string) *api.Error {
	return api.Errorf(api.CodeKernelFailed, "%s is not installed, and can't be: %s", language, reason).WithHint("%s", hint)
}

// Install installs a language, or waits for an install of it that is under way. Lines
// of progress go to tell, a few a second at most, from another goroutine but never two
// at once, and none after Install has returned. When ctx ends, Install returns its
// cause, and the install goes on. Any other error wraps an *api.Error.
func (i *Installer) Install(ctx context.Context, language string, tell func(string)) error {
	if _, err := i.Check(ctx, language); err != nil {
		return err
	}
	j, err := i.join(language)
	if err != nil {
		return err
	}
	leave := j.listen(tell)
	defer leave()
	select {
	case <-j.done:
		return j.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// join finds the job that installs a language, or begins one.
func (i *Installer) join(language string) (*job, error) {
	recipe := i.recipe(language)
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ctx.Err() != nil {
		return nil, api.Errorf(api.CodeUnavailable, "the agent is being stopped")
	}
	name := recipe.Languages[0]
	if j := i.jobs[name]; j != nil {
		return j, nil
	}
	j := &job{done: make(chan struct{})}
	i.jobs[name] = j
	i.tasks.Add(1)
	go func() {
		defer i.tasks.Done()
		ctx, cancel := context.WithTimeoutCause(i.ctx, i.o.Timeout, fmt.Errorf("it took longer than %s", i.o.Timeout))
		defer cancel()
		err := i.install(ctx, language, recipe, j)
		i.mu.Lock()
		delete(i.jobs, name)
		i.mu.Unlock()
		j.end(failure(language, err, j.words(), j.offline()))
	}()
	return j, nil
}

// failure is an install's error as a user is told it.
func failure(language string, err error, words string, unreached bool) error {
	if err == nil {
		return nil
	}
	e := api.Errorf(api.CodeKernelFailed, "%s could not be installed: %v", language, err)
	if words != "" {
		e.Message += ":\n" + words
	}
	if unreached {
		return e.WithHint("the package archive can't be reached from here: install when the image is made, by cellard languages install %s", language)
	}
	return e.WithHint("run cellard languages install %s as root to see all that it says", language)
}

// offline tells a line of apt, pip or npm that have no network.
func offline(line string) bool {
	for _, sign := range []string{"Temporary failure resolving", "Could not resolve", "Could not connect", "Unable to connect",
		"Network is unreachable", "Connection timed out", "Connection refused", "NewConnectionError", "Name or service not known",
		"EAI_AGAIN", "ENOTFOUND", "ECONNREFUSED", "ENETUNREACH", "EHOSTUNREACH", "ETIMEDOUT"} {
		if strings.Contains(line, sign) {
			return true
		}
	}
	return false
}
