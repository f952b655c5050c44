package r

import (
	"embed"
	"fmt"
	"io/fs"

	"github.com/cellard/cellard/internal/environ"
)

//go:embed launcher.R cellard_*.R
var sources embed.FS

const run = `sys.source(file.path(commandArgs(TRUE)[[1L]], "launcher.R"), new.env())`

// Argv is the command line of the kernel in an R. The tokens {dir} and
// {connection_file} stand for the directory that Files were written into, and for
// the connection file.
func Argv(program string) []string {
	// By -e: R's own shell script takes a path after -f apart at its spaces.
	return []string{program, "--no-save", "--no-restore", "--no-init-file", "--slave", "-e", run, "--args", "{dir}", "{connection_file}"}
}

// Env is what the kernel needs in its environment, as NAME=value, beside that of
// kernels.
func Env(env []string) []string {
	if profile := environ.Get(env, "R_PROFILE_USER"); profile != "" {
		return []string{"CELLARD_R_PROFILE=" + profile}
	}
	return nil
}

// Files are the launcher's parts by name. They belong into one directory that the
// kernel can read and write, and that only its user can.
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
		panic(fmt.Sprintf("r: the embedded launcher: %v", err)) // can't be: they are in the binary
	}
	return files
}
