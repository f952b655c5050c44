package endtoend

import (
	"archive/zip"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cellard/cellard/internal/fixture"
	"github.com/cellard/cellard/internal/pythons"
	"github.com/cellard/cellard/protocol/api"
)

// Cells of an agent that is root are another user's, who can do nothing to the agent.
// An agent that isn't root has no such boundary, and TestServeWarns of cmd/cellard holds
// that it says so; here nothing else is left to see.
func TestCellsAreAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can run cells as another user")
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	uid, err := strconv.Atoi(nobody.Uid)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pythons.All(t) {
		t.Run(p.Name, func(t *testing.T) {
			a := start(t, config{python: p.Path, args: []string{"--user", "nobody"}, env: []string{"CELLARD_TOKEN=top-secret"}})
			x := a.run(object{"code": "import os, signal, socket, subprocess\nfrom IPython.display import HTML, display\ndisplay(HTML('h' * 100000))\nos.getresuid(), os.getresgid(), os.getgroups()"})
			if got, want := plain(x.Results[1]), fmt.Sprintf("((%[1]d, %[1]d, %[1]d), (%[2]s, %[2]s, %[2]s), [%[2]s])", uid, nobody.Gid); got != want {
				t.Errorf("%s, wanted %s", got, want)
			}
			pid := a.c.Process.Pid
			ref := x.Results[0].Refs["text/html"].Path
			kernelDir := a.cell("python", "import ipykernel.connect\nprint(os.path.dirname(ipykernel.connect.get_connection_file()), end='')")
			for _, c := range []struct{ what, code string }{
				{"signal the agent", fmt.Sprintf("os.kill(%d, 0)", pid)},
				{"kill the agent", fmt.Sprintf("os.kill(%d, 9)", pid)},
				{"read the agent's environment", fmt.Sprintf("open('/proc/%d/environ').read()", pid)},
				{"read the agent's memory", fmt.Sprintf("open('/proc/%d/mem', 'rb')", pid)},
				{"list the agent's files", fmt.Sprintf("os.listdir('/proc/%d/fd')", pid)},
				{"connect to the agent", fmt.Sprintf("socket.socket(socket.AF_UNIX).connect(%s)", quote(a.socket))},
				{"list the runtime directory", fmt.Sprintf("os.listdir(%s)", quote(a.runtime))},
				{"write a ref", fmt.Sprintf("open(%s, 'a')", quote(ref))},
				{"remove a ref", fmt.Sprintf("os.unlink(%s)", quote(ref))},
				{"put a file beside a ref", fmt.Sprintf("open(%s + '.x', 'w')", quote(ref))},
				{"move the store", fmt.Sprintf("os.rename(%s, '/tmp/stolen')", quote(filepath.Join(a.workspace, ".runtime", "interpreter")))},
				{"become root", "os.setuid(0)"},
			} {
				x := a.run(object{"code": c.code})
				if x.Status != api.StatusError || x.Error == nil || x.Error.Name != "PermissionError" && x.Error.Name != "FileNotFoundError" {
					t.Errorf("%s: %s", c.what, show(x))
				}
			}
			// PTRACE_ATTACH
			trace := fmt.Sprintf("import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n(libc.ptrace(16, %d, 0, 0), os.strerror(ctypes.get_errno()))", pid)
			if got := a.cell("python", trace); got != "(-1, 'Operation not permitted')" {
				t.Error("trace the agent: ", got)
			}
			if got := a.cell("python", "sum('top-secret' in v for v in os.environ.values())"); got != "0" {
				t.Error("the token is in a cell's environment")
			}
			for _, path := range []string{kernelDir, filepath.Join(kernelDir, "connection.json")} {
				fi, err := os.Stat(path)
				if err != nil || fi.Mode().Perm()&0o077 != 0 {
					t.Errorf("%s: %v %v", path, fi, err)
				}
			}
			if got := a.cell("python", "len(open("+quote(ref)+").read())"); got != "100000" {
				t.Errorf("a ref can't be read: %s", got)
			}
			// The workspace and the home are the cells'.
			if got := a.cell("python", "open('mine', 'w').write('x')\nopen(os.path.expanduser('~/.mine'), 'w').write('x')\nos.environ['USER']"); got != "'nobody'" {
				t.Error(got)
			}
			// Its processes are ended with the context all the same.
			a.cell("python", "child = subprocess.Popen(['setsid', 'sh', '-c', 'trap \"\" INT TERM; sleep 1000'])")
			a.remove("python")
			if left := marked(a.instance); len(left) > 0 {
				t.Errorf("processes %v are left", left)
			}
			if got := a.cell("python", "import os\nos.getuid()"); got != nobody.Uid {
				t.Error(got)
			}
			if x := a.run(object{"code": "os.kill(os.getpid(), 11)"}); x.Status != api.StatusLost || x.Lost == nil || x.Lost.Signal == nil {
				t.Errorf("%s", show(x))
			}
		})
	}
}

// What the agent writes for a kernel never goes where a cell of another context leads it
// to: it tries, in the directories of the kernels to come, all the while they start.
func TestCellsPlantNoLinks(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can run cells as another user")
	}
	a := start(t, config{python: pythons.Newest(t), args: []string{"--user", "nobody"}})
	victim := filepath.Join(fixture.Dir(t, 0o755), "victim")
	if err := os.WriteFile(victim, []byte("untouched"), 0o600); err != nil {
		t.Fatal(err)
	}
	x := a.run(object{"code": `
import ipykernel.connect, os, threading
mine = os.path.dirname(ipykernel.connect.get_connection_file())
names = [n for n in os.listdir(mine) if n.endswith((".py", ".json"))] # the agent's
def plant():
    while True:
        for n in range(2, 8):
            for name in names:
                try:
                    os.symlink(` + quote(victim) + `, f"{mine[:-1]}{n}/{name}")
                except OSError:
                    pass
threading.Thread(target=plant, daemon=True).start()
mine[-2:], "launcher.py" in names`})
	if got := plain(x.Results[0]); got != "('k1', True)" {
		t.Fatalf("a kernel's directory: %s", got)
	}
	for n := range 4 {
		a.create(fmt.Sprintf("other-%d", n))
	}
	if b, err := os.ReadFile(victim); err != nil || string(b) != "untouched" {
		t.Errorf("a cell had the agent write through a link: %.40q %v", b, err)
	}
}

// wheel makes a tiny package.
func wheel(t *testing.T) string {
	t.Helper()
	name := filepath.Join(fixture.Dir(t, 0o755), "tiny_e2e-1-py3-none-any.whl")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z := zip.NewWriter(f)
	for _, m := range [][2]string{
		{"tiny_e2e.py", "ANSWER = 42\n"},
		{"tiny_e2e-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-e2e\nVersion: 1\n"},
		{"tiny_e2e-1.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{"tiny_e2e-1.dist-info/RECORD", "tiny_e2e.py,,\ntiny_e2e-1.dist-info/METADATA,,\ntiny_e2e-1.dist-info/WHEEL,,\ntiny_e2e-1.dist-info/RECORD,,\n"},
	} {
		w, err := z.Create(m[0])
		if err == nil {
			_, err = w.Write([]byte(m[1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return name
}

// The system's own Python, with its packages on PYTHONPATH: what a cell installs goes
// to its user's home, and can be imported at once.
func TestSystemPythonAsNobody(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can run cells as another user")
	}
	out, err := exec.Command(pythons.Newest(t), "-c", "import sys, sysconfig; print(sys._base_executable, sysconfig.get_path('purelib'))").Output()
	if err != nil {
		t.Fatal(err)
	}
	base, site, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	a := start(t, config{python: base, args: []string{"--user", "nobody"}, env: []string{"PYTHONPATH=" + site}})
	if got := a.cell("python", "import os, sys, pandas, site\nprint(sys.prefix == sys.base_prefix, os.getuid() != 0, site.getusersitepackages().startswith(os.path.expanduser('~')), end='')"); got != "True True True" {
		t.Error(got)
	}
	x := a.run(object{"timeoutMs": 0, "code": "try:\n  import tiny_e2e\nexcept ImportError:\n  pass\n!{sys.executable} -m pip install --no-index --disable-pip-version-check " + wheel(t)})
	if y := a.run(object{"code": "import tiny_e2e\ntiny_e2e.ANSWER"}); y.Status != api.StatusOK || plain(y.Results[0]) != "42" {
		t.Errorf("pip: %s\nimport: %s", show(x), show(y))
	}
}

// A workspace that cells can't enter is refused at the agent's start, by its name: no
// program gets the blame, and nothing is made there. A context's directory likewise.
func TestCellsCannotEnter(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can run cells as another user")
	}
	closed := fixture.Dir(t, 0o700)
	binary, err := binaries.tested()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(binary, "doctor", "--user", "nobody", "--workspace", closed, "--runtime-dir", fixture.Dir(t, 0o711))
	out, err := c.CombinedOutput()
	for _, want := range []string{closed, "nobody", "--workspace", "--user"} {
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("no %s: %v %s", want, err, out)
		}
	}
	if made, err := os.ReadDir(closed); err != nil || len(made) > 0 || strings.Contains(string(out), "python") {
		t.Errorf("made there: %v %v\n%s", made, err, out)
	}
	a := start(t, config{python: pythons.Newest(t), args: []string{"--user", "nobody"}})
	a.refused(400, api.CodeInvalidRequest, "POST", "/v1/interpreter/contexts", object{"id": "one", "cwd": closed})
}
