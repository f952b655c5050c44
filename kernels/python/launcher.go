package python

import (
	"embed"
	"fmt"
	"io/fs"
	"syscall"
)

//go:embed launcher.py cellard_*.py
var sources embed.FS

// WhileIgnored is the signal that the launcher takes for SIGINT, as while that is ignored: a
// real-time signal that nothing else uses. cellard_interrupts.py has it, too.
const WhileIgnored = syscall.Signal(62)

// Argv is the command line of the kernel in an interpreter. The tokens {dir} and
// {connection_file} stand for the directory that Files were written into, and
// for the connection file.
func Argv(interpreter []string) []string {
	argv := append([]string(nil), interpreter...)
	return append(argv, "-X", "utf8", "{dir}/launcher.py", "-f", "{connection_file}")
}

// Files are the launcher's modules by name. They belong into one directory that
// the kernel can read and write, and that only its user can.
func Files() map[string][]byte {
	files := make(map[string][]byte)
	err := fs.WalkDir(sources, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files[name], err = sources.ReadFile(name)
		return err
	})
	if err != nil {
		panic(fmt.Sprintf("python: the embedded launcher: %v", err)) // can't be: they are in the binary
	}
	return files
}
