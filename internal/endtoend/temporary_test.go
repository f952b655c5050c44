package endtoend

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/cellard/cellard/internal/fixture"
	"github.com/cellard/cellard/internal/gocache"
)

// A kernel's temporary files go with it, however it ends; what it starts has the
// directory for such files that the agent has.
func TestTemporaryFilesGoWithTheKernel(t *testing.T) {
	if err := gocache.Setup(); err != nil {
		t.Fatal(err)
	}
	for _, kernel := range []struct {
		language string
		// told tells the kernel's own temporary files, and what children have for a directory.
		told, kill string
	}{
		{"r", `writeLines("x", tempfile()); cat(length(dir(tempdir())) > 0, Sys.getenv("TMPDIR"), Sys.getenv("CELLARD_TMPDIR", "none"))`,
			`tools::pskill(Sys.getpid(), 9); Sys.sleep(60)`},
		{"go", "import (\"fmt\"; \"os\")\n_, given := os.LookupEnv(\"CELLARD_TMPDIR\")\nfmt.Print(\"TRUE \", os.TempDir(), \" \", map[bool]string{false: \"none\"}[given])",
			"import (\"os\"; \"syscall\"; \"time\")\nsyscall.Kill(os.Getppid(), syscall.SIGKILL)\ntime.Sleep(time.Minute)"},
		{"java", `System.out.print("TRUE " + System.getenv("TMPDIR") + " " + System.getenv().getOrDefault("CELLARD_TMPDIR", "none"));`,
			`ProcessHandle.current().parent().get().destroyForcibly(); Thread.sleep(60000);`},
	} {
		t.Run(kernel.language, func(t *testing.T) {
			place := fixture.Dir(t, 0o777)
			a := start(t, config{env: []string{"TMPDIR=" + place}})
			all := func() []string {
				left, _ := filepath.Glob(filepath.Join(place, "cellard-"+kernel.language+"-*"))
				return left
			}
			session := func() {
				t.Helper()
				if told, want := a.cell(kernel.language, kernel.told), "TRUE "+place+" none"; told != want {
					t.Fatalf("its temporary files, and its children's directory: %s, want %s", told, want)
				}
				if dirs := all(); len(dirs) != 1 {
					t.Fatalf("directories: %q", dirs)
				}
			}
			gone := func(after string) {
				t.Helper()
				a.eventually("the temporary files go after "+after, func() error {
					if left := all(); len(left) > 0 {
						return fmt.Errorf("%q", left)
					}
					return nil
				})
			}
			session()
			a.run(object{"language": kernel.language, "code": kernel.kill})
			gone("it was killed")
			session()
			a.remove(kernel.language)
			gone("its context")
			session()
			_ = a.c.Process.Kill()
			<-a.ended
			gone("the agent was killed")
			keepers := func() (pids []int) {
				files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
				for _, file := range files {
					line, _ := os.ReadFile(file)
					if pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file))); pid > 1 && strings.Contains(string(line), a.runtime+"/agent-") && strings.Contains(string(line), "keeper") {
						pids = append(pids, pid)
					}
				}
				return pids
			}
			a.eventually("the keeper has ended", func() error {
				if pids := keepers(); len(pids) > 0 {
					return fmt.Errorf("%v", pids)
				}
				return nil
			})
			// The keeper may be killed as well: then the next agent cleans up.
			b := start(t, config{env: []string{"TMPDIR=" + place}, runtime: a.runtime})
			b.cell(kernel.language, kernel.told)
			killed := keepers()
			for _, pid := range killed {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			_ = b.c.Process.Kill()
			<-b.ended
			if len(killed) != 1 || len(all()) != 1 {
				t.Fatalf("keepers: %v, directories: %q", killed, all())
			}
			c := start(t, config{env: []string{"TMPDIR=" + place}, runtime: a.runtime})
			if dirs, _ := filepath.Glob(filepath.Join(a.runtime, "agent-*")); len(all()) > 0 || len(dirs) != 1 {
				c.eventually("the next agent removes what is left", func() error {
					if dirs, _ := filepath.Glob(filepath.Join(a.runtime, "agent-*")); len(all()) > 0 || len(dirs) != 1 {
						return fmt.Errorf("%q %q", all(), dirs)
					}
					return nil
				})
			}
			if left, err := os.ReadDir(place); err != nil || len(left) > 0 {
				t.Errorf("left: %v %v", left, err)
			}
		})
	}
}
