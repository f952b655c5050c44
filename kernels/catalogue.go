package kernels

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sort"
	"strings"
	"syscall"
	"time"

	"github.com/cellard/cellard/internal/environ"
	"github.com/cellard/cellard/kernels/install"
	"github.com/cellard/cellard/protocol/api"
)

// Options of a Catalogue. The zero value looks in the agent's own environment.
type Options struct {
	// Python is a command line that starts the Python to use ("uv run python"); ""
	// looks for one.
	Python string
	// Executable is the program that runs kernels of our own, as "cellard kernel NAME";
	// "" is this process's own.
	Executable string
	// Env is the environment of kernels; nil stands for the agent's own.
	Env []string
	// Dir is where kernels start, and where an interpreter is asked.
	Dir string
	// ProbeTimeout bounds an interpreter's answer; 0 stands for 30 s.
	ProbeTimeout time.Duration
	// Credential is whom kernels run as, and so whom interpreters are asked as; nil
	// stands for the agent's own.
	Credential *syscall.Credential
	// TableRows and TableColumns bound the tables made of data frames, FileBytes the
	// files that are shown; 0 stands for the kernels' defaults (1,000 rows, 100
	// columns, 64 MiB).
	TableRows, TableColumns int
	FileBytes               int64
	// Installer installs languages that are not there; nil stands for none.
	Installer *install.Installer
}

// Catalogue knows the languages of this machine. It is safe for concurrent use.
type Catalogue struct {
	env      []string
	settings []string // for the kernels of our own, as NAME=value
	runners  []runner
	install  *install.Installer

	executable executable
}

// New returns a Catalogue. It looks at nothing yet.
func New(o Options) *Catalogue {
	if o.Env == nil {
		o.Env = os.Environ()
	}
	var settings []string
	set := func(name string, value int64) {
		if value > 0 {
			settings = append(settings, fmt.Sprintf("%s=%d", name, value))
		}
	}
	set("CELLARD_TABLE_ROWS", int64(o.TableRows))
	set("CELLARD_TABLE_COLUMNS", int64(o.TableColumns))
	set("CELLARD_FILE_BYTES", o.FileBytes)
	c := &Catalogue{env: o.Env, settings: settings, install: o.Installer, executable: executable{path: o.Executable}}
	c.runners = c.makeRunners(o)
	return c
}

// languages are those that hosts know by name. Those with a runner have a kernel of the
// agent's choice; the others run by a kernelspec that is installed for them, and so do
// those whose runner finds nothing.
var languages = []string{"python", "javascript", "typescript", "r", "java", "bash", "go"}

// Launch says how to start the kernel of a language, or of an installed
// kernelspec by its name. The error is an *api.Error: not_found for a name that
// nothing goes by, kernel_failed for a language that can't be run here.
func (c *Catalogue) Launch(ctx context.Context, language string) (*Launch, error) {
	var missing error
	if r := c.runner(language); r != nil {
		f, err := r.find(ctx)
		if err == nil {
			return f.launch, nil
		}
		missing = apiError(err)
	}
	specs := Discover(SearchPath(c.env))
	spec := c.fallback(specs, language)
	switch {
	case spec == nil && missing != nil:
		return nil, missing
	case spec == nil && known(language):
		return nil, api.Errorf(api.CodeKernelFailed, "there is no kernel for %s on this machine", language).
			WithHint("install a Jupyter kernel for it where Jupyter looks: in /usr/local/share/jupyter, or a directory of JUPYTER_PATH")
	case spec == nil:
		return nil, api.Errorf(api.CodeNotFound, "there is no language and no kernelspec %.80q", language).
			WithHint("the names are: %s", strings.Join(c.names(specs), ", "))
	case spec.Err != nil:
		return nil, api.Errorf(api.CodeKernelFailed, "%v", spec.Err).WithHint("mend or remove %s", spec.Dir)
	}
	return specLaunch(language, spec, c.env), nil
}

// Names are the languages of the agent's own list. The slice is the caller's.
func (c *Catalogue) Names() []string { return slices.Clone(languages) }

// Known tells whether a language is one of the agent's own list, rather than the name of a
// kernelspec that lies in the image.
func (c *Catalogue) Known(language string) bool { return known(language) }

// Has reports whether a name is a language's or an installed kernelspec's; it need
// not be usable.
func (c *Catalogue) Has(name string) bool {
	return known(name) || find(Discover(SearchPath(c.env)), name) != nil
}

// Forget makes the catalogue look again for what runs a language: for a caller
// whose kernel did not start.
func (c *Catalogue) Forget(language string) {
	if r := c.runner(language); r != nil && r.forget != nil {
		r.forget()
	}
}

// Languages lists the languages that hosts know by name, then the installed
// kernelspecs.
func (c *Catalogue) Languages(ctx context.Context) []api.Language {
	specs := Discover(SearchPath(c.env))
	var list []api.Language
	for _, name := range languages {
		spec := c.fallback(specs, name)
		if r := c.runner(name); r != nil {
			if status := r.status(ctx); status.State == api.LanguageReady || spec == nil {
				list = append(list, c.installable(ctx, status))
				continue
			}
		}
		if spec != nil {
			list = append(list, c.specLanguage(name, spec))
		} else {
			list = append(list, c.installable(ctx, api.Language{Name: name, State: api.LanguageMissing,
				Message: "there is no kernel for it on this machine", Hint: "install a Jupyter kernel for it"}))
		}
	}
	for i := range specs {
		if !known(specs[i].Name) { // by that name the language was meant
			list = append(list, c.specLanguage(specs[i].Name, &specs[i]))
		}
	}
	return list
}

// fallback is the kernelspec that runs what is asked for, where no runner does. Python
// has none: a kernelspec's kernel would lack what the launcher mends.
func (c *Catalogue) fallback(specs []Spec, language string) *Spec {
	if language == "python" {
		return nil
	}
	spec := find(specs, language)
	if spec != nil && spec.Err == nil && c.runner(language) != nil {
		// One whose program is gone says less of the language than its runner does.
		if _, err := environ.LookPath(c.env, specLaunch(language, spec, c.env).Argv[0]); err != nil {
			return nil
		}
	}
	return spec
}

func (c *Catalogue) specLanguage(name string, spec *Spec) api.Language {
	language := api.Language{Name: name, State: api.LanguageMissing, Path: spec.Dir,
		Kernel: api.KernelInfo{Name: spec.DisplayName}}
	if spec.Err != nil {
		language.Message, language.Hint = spec.Err.Error(), "mend or remove "+spec.Dir
		return language
	}
	if _, err := environ.LookPath(c.env, specLaunch(name, spec, c.env).Argv[0]); err != nil {
		language.Message, language.Hint = "its program: "+err.Error(), "install it, or remove "+spec.Dir
		return language
	}
	language.State = api.LanguageReady
	return language
}

func (c *Catalogue) names(specs []Spec) []string {
	names := append([]string(nil), languages...)
	for _, spec := range specs {
		if !known(spec.Name) {
			names = append(names, spec.Name)
		}
	}
	sort.Strings(names[len(languages):])
	return names
}

// find is the kernelspec of that name, else, for a language that hosts know by
// name, the first one of that language that can be used.
func find(specs []Spec, name string) *Spec {
	for i := range specs {
		if specs[i].Name == name {
			return &specs[i]
		}
	}
	if !known(name) {
		return nil
	}
	for i := range specs {
		if specs[i].Err == nil && strings.EqualFold(specs[i].Language, name) {
			return &specs[i]
		}
	}
	return nil
}

func known(language string) bool {
	for _, name := range languages {
		if name == language {
			return true
		}
	}
	return false
}

// apiError is an error as the host gets it.
func apiError(err error) *api.Error {
	if failure := (*api.Error)(nil); errors.As(err, &failure) {
		return failure
	}
	return api.Errorf(api.CodeKernelFailed, "%v", err).WithHint("GET /v1/languages tells what can be run here, and what is missing")
}
