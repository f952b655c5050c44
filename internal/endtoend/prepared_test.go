package endtoend

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cellard/cellard/internal/fixture"
	"github.com/cellard/cellard/protocol/api"
)

// What "cellard languages install java" prepares is what Java starts with afterwards: the
// archive of classes. All as one user, whose cache it is: root's would be the machine's.
func TestJavaStartsWithWhatWasPrepared(t *testing.T) {
	var user *syscall.SysProcAttr
	own := func(dir string) string { return dir }
	if os.Getuid() == 0 {
		const nobody = 65534
		user = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		own = func(dir string) string {
			if err := os.Chown(dir, nobody, nobody); err != nil {
				t.Fatal(err)
			}
			return dir
		}
	}
	cache := own(fixture.Dir(t, 0o700))
	env := []string{"XDG_CACHE_HOME=" + cache}
	socket := filepath.Join(own(fixture.Dir(t, 0o755)), "s")
	a := start(t, config{
		runtime: own(fixture.Dir(t, 0o700)),
		socket:  socket,
		env:     env,
		command: func(binary string, args ...string) *exec.Cmd {
			c := exec.Command(binary, append([]string{"serve", "--listen", "unix://" + socket}, args...)...)
			c.SysProcAttr = user
			return c
		},
	})
	const uses = `Files.lines(Path.of("/proc/self/maps")).anyMatch(l -> l.contains("/cellard/java-") && l.endsWith(".jsa"))`
	used := func() string { // by a kernel that is started for it
		t.Helper()
		x := a.run(object{"language": "java", "code": uses, "timeoutMs": 0})
		a.remove("java")
		if x.Status != api.StatusOK || len(x.Results) != 1 {
			t.Fatalf("%s", show(x))
		}
		return plain(x.Results[0])
	}
	if got := used(); got != "false" {
		t.Errorf("before it was made: %s", got)
	}
	binary, err := binaries.tested()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // it is done again at no cost
		c := exec.Command(binary, "languages", "install", "java")
		c.Env, c.Dir, c.SysProcAttr = append(os.Environ(), env...), "/", user
		if out, err := c.CombinedOutput(); err != nil || !strings.HasSuffix(string(out), "java: ready\n") {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	if got := used(); got != "true" {
		t.Errorf("after it was made: %s", got)
	}
}
