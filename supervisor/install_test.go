package supervisor

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cellard/cellard/internal/fakekernel"
	"github.com/cellard/cellard/kernels/install"
	"github.com/cellard/cellard/protocol/api"
)

// installing is an agent on a machine that has no Node.js, and whose apt-get is a script: it
// waits for the file "go", fails when there is one called "fail", and else puts a
// kernelspec for JavaScript where it is found, which starts the fake kernel.
func installing(t *testing.T, enabled bool) (a *agent, dir string) {
	t.Helper()
	return installingSince(t, enabled, "")
}

// installingSince is installing where the archive's 20.12 has to be of that version.
func installingSince(t *testing.T, enabled bool, oldest string) (a *agent, dir string) {
	t.Helper()
	a = newAgent(t, func(o *Options) {
		dir = filepath.Dir(o.Workspace)
		o.Env = []string{"PATH=" + filepath.Join(dir, "bin"), "DIR=" + dir, "HOME=" + dir, "JUPYTER_PATH=" + filepath.Join(dir, "j")}
		o.InstallLanguages = enabled
		o.install = install.Options{Privileged: true, Env: o.Env, Lock: filepath.Join(dir, "lock"),
			Recipes: []install.Recipe{{Languages: []string{"javascript"}, Ways: []install.Way{{Packages: []install.Package{{Name: "nodejs", Min: oldest}}}}}}}
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		spec, _ := json.Marshal(map[string]any{"argv": []string{self, "-f", "{connection_file}", "ipykernel"}, "language": "javascript", "display_name": "JavaScript",
			"env": map[string]string{fakekernel.Env: fakekernel.StartWell}})
		for name, text := range map[string]string{
			"spec":          string(spec),
			"bin/apt-cache": "#!/bin/sh\necho 'nodejs:'; echo '  Candidate: 20.12'",
			"bin/apt-get": `#!/bin/sh
case "$*" in *update) exit;; esac
echo run >>"$DIR/calls"; echo unpacking
while ! [ -e "$DIR/go" ]; do /bin/sleep 0.02; done
[ -e "$DIR/fail" ] && echo "E: Temporary failure resolving 'archive.invalid'" && exit 100
/bin/mkdir -p "$DIR/j/kernels/js" && /bin/cp "$DIR/spec" "$DIR/j/kernels/js/kernel.json"`,
		} {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	})
	return a, dir
}

func put(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
		t.Fatal(err)
	}
}

func calls(dir string) string {
	b, _ := os.ReadFile(filepath.Join(dir, "calls"))
	return string(b)
}

func state(a *agent, name string) api.Language {
	for _, l := range a.Languages(context.Background()) {
		if l.Name == name {
			return l
		}
	}
	return api.Language{}
}

// A language that isn't there is installed at its first run, once, and that is no time
// of a cell's; who waits is told how it goes, and can be interrupted.
func TestInstallAtTheFirstRun(t *testing.T) {
	t.Parallel()
	a, dir := installing(t, true)
	if l := state(a, "javascript"); l.State != api.LanguageInstallable || !strings.Contains(l.Hint, "apt-get install nodejs") {
		t.Errorf("before: %+v", l)
	}
	first := a.queue("print a", language("javascript"), timeout(250*time.Millisecond))
	second := a.queue("print b", language("javascript"))
	a.until("it installs", func() bool { return calls(dir) != "" })
	if c, _ := a.Context("javascript"); c.State != api.ContextStarting {
		t.Errorf("state: %+v", c)
	}
	if _, err := a.InterruptExecution(second.ID()); err != nil {
		t.Error(err)
	}
	a.is(a.end(second), api.StatusInterrupted, api.StateKept, "Interrupted")
	third := a.queue("print c", language("javascript"))
	time.Sleep(300 * time.Millisecond) // longer than the first cell's deadline
	put(t, dir, "go")
	a.ok(a.end(first))
	a.ok(a.end(third))
	if calls(dir) != "run\n" {
		t.Errorf("installed %q: want once", calls(dir))
	}
	if l := state(a, "javascript"); l.State != api.LanguageReady {
		t.Errorf("after: %+v", l)
	}
	if n := progressEvents(t, first); n == 0 {
		t.Error("the cell that waited was told nothing")
	}
}

func progressEvents(t *testing.T, r *Run) (n int) {
	t.Helper()
	reader := r.Events(0)
	for {
		lines, err := reader.Next(t.Context())
		if err != nil || len(lines) == 0 {
			return n
		}
		n += strings.Count(string(lines), `"k":"progress"`)
	}
}

func TestInstallThatFails(t *testing.T) {
	t.Parallel()
	a, dir := installing(t, true)
	put(t, dir, "go")
	put(t, dir, "fail")
	_, refused := a.outcome(a.queue("print a", language("javascript")))
	if refused == nil || refused.Code != api.CodeKernelFailed || !strings.Contains(refused.Message, "Temporary failure") || !strings.Contains(refused.Hint, "can't be reached") {
		t.Fatalf("refused: %+v", refused)
	}
	a.until("the context is gone", func() bool { return len(a.Contexts()) == 0 })
	if err := os.Remove(filepath.Join(dir, "fail")); err != nil {
		t.Fatal(err)
	}
	a.ok(a.cell("print a", language("javascript")))
}

func TestNoInstallWhereItIsOff(t *testing.T) {
	t.Parallel()
	a, dir := installing(t, false)
	if l := state(a, "javascript"); l.State != api.LanguageMissing || !strings.Contains(l.Hint, "--install-languages") {
		t.Errorf("%+v", l)
	}
	if _, err := a.Run(request("print a", language("javascript"))); code(err) != api.CodeKernelFailed {
		t.Errorf("run: %v", err)
	}
	if calls(dir) != "" {
		t.Error("it installed")
	}
}

// What the archive has is too old: the refusal says so, with what it says where nothing is
// installed.
func TestNoInstallOfWhatIsTooOld(t *testing.T) {
	t.Parallel()
	a, dir := installingSince(t, true, "22")
	_, err := a.Run(request("print a", language("javascript")))
	if code(err) != api.CodeKernelFailed || !strings.Contains(err.Error(), "there is no Node.js on this machine") ||
		!strings.Contains(err.Error(), "nodejs is 20.12, and 22 or newer is needed") || !strings.Contains(err.Error(), "install Node.js") {
		t.Errorf("%v", err)
	}
	if calls(dir) != "" {
		t.Error("it installed")
	}
}

// Deleting the context ends the wait, and the agent's end the install.
func TestDeleteAndShutdownWhileInstalling(t *testing.T) {
	t.Parallel()
	a, dir := installing(t, true)
	queued := a.queue("print a", language("javascript"))
	a.until("it installs", func() bool { return calls(dir) != "" })
	if err := a.Delete(context.Background(), "javascript"); err != nil {
		t.Error(err)
	}
	a.is(a.end(queued), api.StatusInterrupted, api.StateKept, "ContextDeleted")
	again := a.queue("print a", language("javascript"))
	if err := a.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	a.is(a.end(again), api.StatusInterrupted, api.StateKept, "ContextLost")
	if calls(dir) != "run\n" {
		t.Errorf("installed %q: want one, which was waited for again", calls(dir))
	}
}
