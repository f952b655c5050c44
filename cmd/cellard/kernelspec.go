package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// installKernel is cellard kernel install.
func installKernel(args []string, about string) int {
	fs := newFlags("kernel install")
	user := fs.Bool("user", false, "for this user alone, where Jupyter keeps a user's data")
	prefix := fs.String("prefix", "", "in `DIR`/share/jupyter, as of a virtual environment (default /usr/local)")
	var names []string
	code, ok := parseAlone(fs, args, about, func(name string) error {
		names = append(names, name)
		return nil
	})
	if !ok {
		return code
	}
	if len(names) == 0 || *user && *prefix != "" {
		fmt.Fprintln(os.Stderr, "cellard kernel install: want NAME, and one of --user and --prefix at most; see cellard kernel --help")
		return 2
	}
	for _, name := range names {
		i := slices.IndexFunc(ownKernels(), func(k ownKernel) bool { return k.name == name })
		if i < 0 {
			fmt.Fprintf(os.Stderr, "cellard kernel install: there is no kernel %q; see cellard kernel --help\n", name)
			return 2
		}
		dir, err := kernelspecDir(*user, *prefix)
		if err == nil {
			dir = filepath.Join(dir, "kernels", name)
			err = writeKernelspec(dir, ownKernels()[i])
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "cellard kernel install %s: %v\n", name, err)
			return 1
		}
		fmt.Println(dir)
	}
	return 0
}

// parseAlone is parseMixed without the environment: CELLARD_USER, say, means another thing,
// and a kernel's environment is not for it.
func parseAlone(fs *flagSet, args []string, about string, take func(string) error) (code int, ok bool) {
	err := fs.readMixed(args, take)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Println(strings.TrimSpace(about) + "\n\nFlags:")
		fs.describe(os.Stdout, false)
		return 0, false
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "cellard %s: %v\nrun cellard kernel --help\n", fs.Name(), err)
		return 2, false
	}
	return 0, true
}

// kernelspecDir is where Jupyter looks for kernelspecs (jupyter_core's data
// directories).
func kernelspecDir(user bool, prefix string) (string, error) {
	switch {
	case prefix != "":
		dir, err := filepath.Abs(prefix)
		return filepath.Join(dir, "share", "jupyter"), err
	case !user:
		return "/usr/local/share/jupyter", nil
	}
	for _, dir := range []string{os.Getenv("JUPYTER_DATA_DIR"), filepath.Join(os.Getenv("XDG_DATA_HOME"), "jupyter")} {
		if filepath.IsAbs(dir) {
			return dir, nil
		}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("%w: set HOME, or use --prefix", err)
	}
	return filepath.Join(home, ".local", "share", "jupyter"), nil
}

// writeKernelspec writes kernel.json in one step: who sees it sees all of it.
func writeKernelspec(dir string, k ownKernel) (err error) {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	spec, err := json.MarshalIndent(map[string]any{
		"argv":           []string{self, "kernel", k.name, "-f", "{connection_file}"},
		"display_name":   k.display,
		"language":       cmp.Or(k.language, k.name),
		"interrupt_mode": "message",
		"metadata":       map[string]any{"debugger": false, "cellard": map[string]string{"version": versionString()}},
	}, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		if errors.Is(err, os.ErrPermission) {
			err = fmt.Errorf("%w: use --user, or --prefix with a directory of yours", err)
		}
		return err
	}
	f, err := os.CreateTemp(dir, ".kernel-*.json")
	if err != nil {
		return err
	}
	_, err = f.Write(append(spec, '\n'))
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, "kernel.json"))
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
