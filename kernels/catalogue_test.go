package kernels

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cellard/cellard/kernels/golang"
	"github.com/cellard/cellard/kernels/install"
	"github.com/cellard/cellard/protocol/api"
)

// machine is a catalogue of a machine that has only what the test puts on it.
func machine(t *testing.T, o Options, env ...string) (*Catalogue, string) {
	t.Helper()
	root := t.TempDir()
	o.Env = append([]string{"HOME=" + root, "PATH=" + filepath.Join(root, "bin"), "JUPYTER_PATH=" + filepath.Join(root, "share", "jupyter")}, env...)
	if err := os.Mkdir(filepath.Join(root, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	return New(o), root
}

func program(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
}

const answer = `echo '{"executable": "/p/python3", "prefix": "/p", "python": "3.11.2", "ipykernel": "6.29.5"}'`

func TestLaunchPython(t *testing.T) {
	c, root := machine(t, Options{Python: "uv 'r u n'", TableRows: 5, FileBytes: 7})
	program(t, filepath.Join(root, "bin", "uv"), `[ "$1" = "r u n" ] && `+answer)
	l, err := c.Launch(context.Background(), "python")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{filepath.Join(root, "bin", "uv"), "r u n", "-X", "utf8", "{dir}/launcher.py", "-f", "{connection_file}"}
	if !slices.Equal(l.Argv, want) {
		t.Errorf("argv %q, want %q", l.Argv, want)
	}
	if !l.CellEnv || l.Nudge || l.Transport != "ipc" || l.InterruptMode != "signal" || l.Language != "python" {
		t.Errorf("%+v", l)
	}
	if want := []string{"CELLARD_TABLE_ROWS=5", "CELLARD_FILE_BYTES=7"}; !slices.Equal(l.Env, want) {
		t.Errorf("env %q, want %q", l.Env, want)
	}
	for _, name := range []string{"launcher.py", "cellard_kernel.py"} {
		if len(l.Files[name]) == 0 {
			t.Errorf("no %s among the files", name)
		}
	}
}

func TestLaunchSpecs(t *testing.T) {
	c, root := machine(t, Options{}, "LIB=/lib")
	data := filepath.Join(root, "share", "jupyter")
	dir := write(t, data, "xr", `{"argv": ["{prefix}/bin/xr", "{resource_dir}/x", "{connection_file}", "{other}"], "language": "R",
		"env": {"Z": "$LIB:${LIB}/z:$$:$NONE:${NONE}:$1", "A": "a"}, "interrupt_mode": "message"}`)
	write(t, data, "ir", `{"argv": ["R", "-e", "IRkernel::main()", "{connection_file}"], "language": "R"}`)
	write(t, data, "python3", `{"argv": ["python", "-m", "ipykernel_launcher", "-f", "{connection_file}"], "language": "python"}`)
	write(t, data, "bash", `{"argv": ["{prefix}/bin/python"], "language": "bash"}`)
	write(t, data, "bad", `{`)
	python := filepath.Join(root, "bin", "python")
	program(t, python, "")
	program(t, filepath.Join(root, "bin", "R"), "") // an R that won't do for the launcher

	launch := func(name string) *Launch {
		t.Helper()
		l, err := c.Launch(context.Background(), name)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return l
	}
	l := launch("xr")
	if want := []string{root + "/bin/xr", dir + "/x", "{connection_file}", "{other}"}; !slices.Equal(l.Argv, want) {
		t.Errorf("xr: argv %q, want %q", l.Argv, want)
	}
	if want := []string{"A=a", "Z=/lib:/lib/z:$:$NONE:${NONE}:$1"}; !slices.Equal(l.Env, want) {
		t.Errorf("xr: env %q, want %q", l.Env, want)
	}
	if l.InterruptMode != "message" || l.Transport != "tcp" || l.CellEnv || l.Nudge || l.Files != nil || l.KernelName != "xr" {
		t.Errorf("xr: %+v", l)
	}
	if l := launch("r"); l.KernelName != "ir" || l.Language != "r" || l.Transport != "ipc" {
		t.Errorf("r: %+v", l)
	}
	if l := launch("python3"); l.Argv[0] != python || !l.Nudge || l.Transport != "ipc" || l.CellEnv {
		t.Errorf("python3: %+v", l)
	}
	if l := launch("bash"); l.KernelName != "bash" {
		t.Errorf("bash: %+v", l)
	}

	for name, want := range map[string]bool{"python": true, "r": true, "xr": true, "java": true, "bad": true, "nonsense": false} {
		if got := c.Has(name); got != want {
			t.Errorf("Has(%q) = %v", name, got)
		}
	}
	for name, code := range map[string]api.Code{"bad": api.CodeKernelFailed, "java": api.CodeKernelFailed, "nonsense": api.CodeNotFound, "": api.CodeNotFound} {
		_, err := c.Launch(context.Background(), name)
		var failure *api.Error
		if !errors.As(err, &failure) || failure.Code != code || failure.Hint == "" {
			t.Errorf("%q: %v, want %s with a hint", name, err, code)
		}
	}
}

func TestLanguages(t *testing.T) {
	c, root := machine(t, Options{Python: "py"})
	data := filepath.Join(root, "share", "jupyter")
	write(t, data, "ir", `{"argv": ["R", "{connection_file}"], "display_name": "R 4", "language": "R"}`)
	write(t, data, "bad", `{`)
	write(t, data, "gone", `{"argv": ["/no/such/program"], "display_name": "Gone"}`)
	program(t, filepath.Join(root, "bin", "R"), "")

	states := func() map[string]api.Language {
		m := make(map[string]api.Language)
		for _, l := range c.Languages(context.Background()) {
			if _, twice := m[l.Name]; twice {
				t.Errorf("%s is there twice", l.Name)
			}
			m[l.Name] = l
			if l.State == api.LanguageMissing && (l.Message == "" || l.Hint == "") {
				t.Errorf("%s is missing without a reason or a hint: %+v", l.Name, l)
			}
		}
		return m
	}
	before := states()
	for _, name := range []string{"python", "java", "go", "bash", "javascript", "typescript", "bad", "gone"} {
		if before[name].State != api.LanguageMissing {
			t.Errorf("%s: %+v, want missing", name, before[name])
		}
	}
	for _, name := range []string{"r", "ir"} {
		if l := before[name]; l.State != api.LanguageReady || l.Kernel.Name != "R 4" {
			t.Errorf("%s: %+v, want ready", name, l)
		}
	}
	program(t, filepath.Join(root, "bin", "py"), answer)
	if l := states()["python"]; l.State != api.LanguageReady || l.Kernel.Version != "6.29.5" || l.Path != "/p/python3" {
		t.Errorf("python: %+v, want ready after it was installed", l)
	}
}

func TestNoPython(t *testing.T) {
	c, root := machine(t, Options{Python: "py"})
	fails := func(parts ...string) {
		t.Helper()
		_, err := c.Launch(context.Background(), "python")
		var failure *api.Error
		if !errors.As(err, &failure) || failure.Code != api.CodeKernelFailed {
			t.Fatalf("error %v, want kernel_failed", err)
		}
		for _, part := range parts {
			if !strings.Contains(failure.Message+failure.Hint, part) {
				t.Errorf("%q lacks %q", failure.Message+" / "+failure.Hint, part)
			}
		}
	}
	py := filepath.Join(root, "bin", "py")
	fails("py", "not on PATH")
	program(t, py, `echo '{"executable": "/p", "prefix": "/p", "python": "3.9.1", "ipykernel": ""}'`)
	fails("3.9.1", "no ipykernel", py+" -m pip install")
	program(t, py, `echo '{"executable": "/p", "prefix": "/p", "python": "3.9.1", "ipykernel": "6.9.2"}'`)
	fails("6.9.2 is too old", "pip install --upgrade ipykernel")
	program(t, py, "echo wrong >&2; exit 3")
	fails("exit status 3", "wrong")
	program(t, py, "echo nonsense")
	fails("does not answer as a Python")
	program(t, py, answer)
	if _, err := New(Options{Python: "'unclosed"}).Launch(context.Background(), "python"); !errors.Is(err, &api.Error{Code: api.CodeKernelFailed}) {
		t.Errorf("a command line that is none: %v", err)
	}
	if _, err := c.Launch(context.Background(), "python"); err != nil {
		t.Errorf("installing it did not mend it: %v", err)
	}
}

// An interpreter that was named and can't be used has none installed in its place: what is
// wrong with it is said instead.
func TestNamedInterpreterIsNotInstalled(t *testing.T) {
	for _, named := range []bool{true, false} {
		root := t.TempDir()
		bin, calls := filepath.Join(root, "bin"), filepath.Join(root, "calls")
		program(t, filepath.Join(bin, "apt-cache"), "for p; do echo \"$p:\"; echo '  Candidate: 20.12'; done")
		program(t, filepath.Join(bin, "apt-get"), "echo \"$*\" >>"+calls+"; exit 1")
		program(t, filepath.Join(bin, "not-python"), "exit 1")
		env := []string{"HOME=" + root, "PATH=" + bin}
		o := Options{Env: env}
		if named {
			o.Python = "/nonexistent/python"
			t.Setenv("CELLARD_NODE", "/nonexistent/node")
		} else {
			t.Setenv("CELLARD_NODE", "")
		}
		o.Installer = install.New(install.Options{Enabled: true, Privileged: true, Env: env, Lock: filepath.Join(root, "lock"), Recipes: []install.Recipe{
			{Languages: []string{"python", "javascript", "typescript"}, Ways: []install.Way{{Packages: []install.Package{{Name: "p"}}}}}}})
		defer o.Installer.Close()
		c := New(o)
		for language, wrong := range map[string][2]string{"python": {"/nonexistent/python: no such file", "CELLARD_PYTHON"},
			"javascript": {"/nonexistent/node: no such file", "CELLARD_NODE"}, "typescript": {"/nonexistent/node: no such file", "CELLARD_NODE"}} {
			want := api.LanguageInstallable
			if named {
				want = api.LanguageMissing
			}
			for _, l := range c.Languages(t.Context()) {
				if l.Name == "python" && !named {
					continue // this machine's own is found
				}
				if l.Name == language && (l.State != want || named && (!strings.Contains(l.Message, wrong[0]) || !strings.Contains(l.Hint, wrong[1]))) {
					t.Errorf("named %v: %+v", named, l)
				}
			}
			err := c.Installable(t.Context(), language)
			if (err == nil) == named {
				t.Errorf("named %v: installable %s: %v", named, language, err)
			}
			if _, err := c.Install(t.Context(), language, func(string) {}); err == nil || named && !strings.Contains(err.Error(), wrong[0]) {
				t.Errorf("named %v: installing %s: %v", named, language, err)
			}
		}
		if b, _ := os.ReadFile(calls); (len(b) == 0) != named {
			t.Errorf("named %v: apt-get was called with %q", named, b)
		}
		o.Python = filepath.Join(bin, "not-python")
		if err := New(o).Installable(t.Context(), "python"); err == nil || !strings.Contains(err.Error(), "not-python: exit status 1") {
			t.Errorf("what is no Python: %v", err)
		}
	}
}

// Where only a C compiler lacks, the list and a refused install name that, and not the
// toolchain that is there: the archive's may be too old.
func TestPartlyThere(t *testing.T) {
	tool, err := golang.NewFinder(golang.FinderOptions{}).Find(t.Context())
	if err != nil {
		t.Fatalf("this test needs Go: %v", err)
	}
	root := t.TempDir()
	bin := filepath.Join(root, "bin")
	program(t, filepath.Join(bin, "apt-get"), "exit 1")
	program(t, filepath.Join(bin, "apt-cache"), "for p; do echo \"$p:\"; echo '  Candidate: 1.19'; done")
	if err := os.Symlink(tool.Program, filepath.Join(bin, "go")); err != nil {
		t.Fatal(err)
	}
	env := []string{"HOME=" + root, "PATH=" + bin}
	installer := install.New(install.Options{Enabled: true, Privileged: true, Env: env, Lock: filepath.Join(root, "lock")})
	defer installer.Close()
	c := New(Options{Env: env, Installer: installer})
	for _, l := range c.Languages(t.Context()) {
		if l.Name == "go" && (l.State != api.LanguageMissing || !strings.Contains(l.Message, "no C compiler") || !strings.Contains(l.Hint, "gcc libc6-dev") || strings.Contains(l.Hint, "golang-go")) {
			t.Errorf("%+v", l)
		}
	}
	var refused *api.Error
	if err := c.Installable(t.Context(), "go"); !errors.As(err, &refused) || !strings.Contains(refused.Message, "no C compiler") || !strings.Contains(refused.Hint, "gcc libc6-dev") {
		t.Errorf("%v", err)
	}
}
