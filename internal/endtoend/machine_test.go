package endtoend

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cellard/cellard/internal/fixture"
	"github.com/cellard/cellard/protocol/api"
)

// systemPath is the machine's PATH.
const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// onMachine runs a command on a machine of its own, which ends with it, whatever the end.
func onMachine(t *testing.T, files string, limit time.Duration, env []string, argv ...string) (string, error) {
	t.Helper()
	script, err := filepath.Abs("testdata/machine.sh")
	if err != nil {
		t.Fatal(err)
	}
	dir := fixture.Dir(t, 0o755)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	c := exec.CommandContext(ctx, "unshare", append([]string{"--mount", "--pid", "--fork", "--kill-child", "sh", script, dir, files}, argv...)...)
	mark := "CELLARD_TEST_MACHINE=" + dir
	c.Env = append(append(machineEnv(), mark), env...)
	// Where this process ends early, unshare ends, and its child with it. The signal comes
	// when the thread ends that started it.
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c.WaitDelay = patience
	out, err := c.CombinedOutput()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		left := withEnv(mark)
		if len(left) == 0 {
			break
		}
		if time.Now().After(end) {
			t.Errorf("processes %v of the machine are left", left)
			break
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left of the machine: %v %v", left, err)
	}
	return string(out), err
}

// machineEnv is this environment, by which the network is reached, without what names
// languages that are on this machine.
func machineEnv() []string {
	env := slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		for _, prefix := range []string{"PATH", "TMPDIR", "HOME", "JAVA_", "CONDA_", "VIRTUAL_ENV", "PYTHON", "JUPYTER", "CELLARD_", "R_", "GO"} {
			if strings.HasPrefix(name, prefix) {
				return true
			}
		}
		return strings.HasPrefix(name, "NODE_") && name != "NODE_EXTRA_CA_CERTS"
	})
	return append(env, "PATH="+systemPath, "HOME=/root")
}

// bare is the machine, once the languages are gone from it.
type bare struct {
	t      *testing.T
	binary string
	agent  *agent
}

// strip removes the languages that the agent is to install.
func (m *bare) strip() {
	m.must("dpkg", "--configure", "-a") // another install may run on the machine that this one was made of
	patterns := []string{"r-base-core", "openjdk-*-jre-headless", "openjdk-*-jdk-headless", "nodejs", "npm", "golang-go", "golang-*-go", "python3-ipykernel"}
	// It fails where it knows nothing by one of the patterns.
	listed, _ := exec.Command("dpkg-query", append([]string{"-W", "-f", "${db:Status-Abbrev} ${Package}\n"}, patterns...)...).Output()
	names := []string{"purge", "-yq"}
	for line := range strings.Lines(string(listed)) {
		if state, name, _ := strings.Cut(strings.TrimSpace(line), " "); state == "ii" {
			names = append(names, strings.TrimSpace(name))
		}
	}
	if len(names) > 2 {
		m.must("apt-get", names...)
	}
	// And what came without a package.
	for _, dir := range append(filepath.SplitList(systemPath), "/usr/local/go/bin") {
		for _, name := range []string{"R", "Rscript", "java", "javac", "node", "nodejs", "cellard-node", "npm", "go"} {
			if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
				m.t.Fatal(err)
			}
		}
	}
	for _, dir := range []string{"/opt/cellard", "/root/.npm"} {
		if err := os.RemoveAll(dir); err != nil {
			m.t.Fatal(err)
		}
	}
	m.must("apt-get", "update", "-q") // the tests ask what it has
}

// must runs a program that has to go well, as what an image is made by.
func (m *bare) must(program string, args ...string) string {
	m.t.Helper()
	c := exec.Command(program, args...)
	c.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	out, err := c.CombinedOutput()
	if err != nil {
		m.t.Fatalf("%s %q: %v\n%s", program, args, err, tail(string(out), 4000))
	}
	return string(out)
}

// has tells whether the archive has a package of that version or a newer one.
func (m *bare) has(name string, major, minor int) bool {
	m.t.Helper()
	found := regexp.MustCompile(`Candidate: (?:\d+:)?(\d+)\.(\d+)`).FindStringSubmatch(m.must("apt-cache", "policy", name))
	if found == nil {
		return false
	}
	haveMajor, _ := strconv.Atoi(found[1])
	haveMinor, _ := strconv.Atoi(found[2])
	return haveMajor > major || haveMajor == major && haveMinor >= minor
}

// packages is the system's record of what was ever installed and removed.
func (m *bare) packages() string {
	m.t.Helper()
	b, err := os.ReadFile("/var/log/dpkg.log")
	if err != nil {
		m.t.Fatal(err)
	}
	return string(b)
}

// install runs the command that is for when an image is made.
func (m *bare) install(languages ...string) (string, error) {
	out, err := exec.Command(m.binary, append([]string{"languages", "install"}, languages...)...).CombinedOutput()
	return string(out), err
}

func (m *bare) state(language string) api.Language {
	m.t.Helper()
	var list api.LanguageList
	m.agent.get("GET", "/v1/languages", nil, &list)
	for _, l := range list.Data {
		if l.Name == language {
			return l
		}
	}
	m.t.Fatalf("%s is not listed: %+v", language, list)
	return api.Language{}
}

// stream runs a cell, for as long as an install takes, and returns what a reader was told
// of progress with its end.
func (m *bare) stream(language, code string) (progress string, x *api.Execution) {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), installPatience)
	defer cancel()
	res, err := m.agent.do(ctx, "POST", "/v1/interpreter:run", object{"language": language, "code": code, "stream": true})
	if err != nil {
		m.t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(res.Body)
		m.t.Fatalf("%s: HTTP %d: %s", language, res.StatusCode, b)
	}
	s := newStream(m.t, res)
	x = s.rest()
	for _, ev := range s.events {
		if ev.K == api.KindProgress {
			progress += ev.Text + "\n"
		}
	}
	return progress, x
}
