package wire

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// LinkerVariable is the environment variable by which Link is given a Linker as JSON.
const LinkerVariable = "CELLARD_GO_LINKER"

// Linker is how a shared object is linked without the C compiler's driver, which takes
// three times as long as the linker that it starts.
type Linker struct {
	// Driver is the C compiler, for what isn't known here.
	Driver string
	// Program is the linker, "" for none: then the driver does it.
	Program string
	// Before and After stand around the objects.
	Before, After []string
}

// FindLinker looks for what Link needs. run runs a command.
func FindLinker(driver string, run func(*exec.Cmd) error) (Linker, error) {
	l := Linker{Driver: driver}
	for _, name := range []string{"ld.gold", "ld.bfd", "ld"} {
		if path, err := exec.LookPath(name); err == nil {
			l.Program = path
			break
		}
	}
	files := map[string]string{}
	for _, name := range []string{"crti.o", "crtbeginS.o", "crtendS.o", "crtn.o", "libgcc.a", "libc.so"} {
		var out strings.Builder
		cmd := exec.Command(driver, "-print-file-name="+name)
		cmd.Stdout = &out
		if err := run(cmd); err != nil {
			return l, fmt.Errorf("%s: %w", driver, err)
		}
		files[name] = strings.TrimSpace(out.String())
		if !filepath.IsAbs(files[name]) {
			l.Program = "" // another layout than is known here
		}
	}
	l.Before = []string{files["crti.o"], files["crtbeginS.o"], "-L" + filepath.Dir(files["libgcc.a"]), "-L" + filepath.Dir(files["libc.so"])}
	l.After = []string{"-lgcc", "--as-needed", "-lgcc_s", "--no-as-needed", "-lpthread", "-lc", "-lgcc", files["crtendS.o"], files["crtn.o"]}
	return l, nil
}
