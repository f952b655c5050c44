package kernels

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"syscall"

	"github.com/cellard/cellard/internal/environ"
)

const (
	maxSpec  = 1 << 20 // of a kernel.json, in bytes
	maxSpecs = 1000    // in one directory
)

// Spec is an installed kernelspec (jupyter_client's "Kernel specs").
type Spec struct {
	// Name is the directory's name in lower case: kernelspecs are known by it.
	Name string
	// Dir is the kernelspec's directory ({resource_dir}).
	Dir string
	// Err tells why it can't be used; then only Name and Dir are set.
	Err error

	DisplayName string
	Language    string
	Argv        []string
	Env         map[string]string
	// InterruptMode is "signal" or "message".
	InterruptMode string
	Metadata      map[string]any
}

// nameOf matches the names that Jupyter takes as a kernelspec's.
var nameOf = regexp.MustCompile(`^[a-z0-9._-]+$`)

// Discover reads the kernelspecs in the directories "kernels" of the given data
// directories, in their order. Of two with the same name the first counts. One
// that can't be read is there too, with its Err.
func Discover(paths []string) []Spec {
	var specs []Spec
	seen := make(map[string]bool)
	for _, path := range paths {
		dir := filepath.Join(path, "kernels")
		for _, entry := range names(dir) {
			name := strings.ToLower(entry)
			file := filepath.Join(dir, entry, "kernel.json")
			if seen[name] || !nameOf.MatchString(name) {
				continue
			}
			if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
				continue // not a kernelspec
			}
			seen[name] = true
			specs = append(specs, readSpec(name, filepath.Dir(file)))
		}
	}
	return specs
}

func names(dir string) []string {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	list, _ := f.Readdirnames(maxSpecs)
	sort.Strings(list)
	return list
}

func readSpec(name, dir string) Spec {
	spec := Spec{Name: name, Dir: dir}
	file := filepath.Join(dir, "kernel.json")
	data, err := readBounded(file)
	if err != nil {
		spec.Err = fmt.Errorf("kernelspec %s: %w", name, err)
		return spec
	}
	var text struct {
		Argv          []string          `json:"argv"`
		DisplayName   string            `json:"display_name"`
		Language      string            `json:"language"`
		InterruptMode string            `json:"interrupt_mode"`
		Env           map[string]string `json:"env"`
		Metadata      map[string]any    `json:"metadata"`
	}
	if err := json.Unmarshal(data, &text); err != nil {
		spec.Err = fmt.Errorf("kernelspec %s: %s: %w", name, file, err)
		return spec
	}
	switch {
	case len(text.Argv) == 0:
		spec.Err = fmt.Errorf("kernelspec %s: %s has no argv", name, file)
		return spec
	case text.InterruptMode == "":
		text.InterruptMode = "signal"
	case text.InterruptMode != "signal" && text.InterruptMode != "message":
		spec.Err = fmt.Errorf("kernelspec %s: %s: interrupt_mode %.40q is neither signal nor message", name, file, text.InterruptMode)
		return spec
	}
	spec.DisplayName, spec.Language, spec.Argv = text.DisplayName, text.Language, text.Argv
	spec.Env, spec.InterruptMode, spec.Metadata = text.Env, text.InterruptMode, text.Metadata
	return spec
}

// readBounded reads a regular file of at most maxSpec bytes. A cell may have put
// something else there: it is opened without blocking.
func readBounded(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSpec+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxSpec {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, maxSpec)
	}
	return data, nil
}

// SearchPath is where Jupyter keeps its data on this machine, for a process with
// that environment (jupyter_core's jupyter_path): each directory may hold a
// directory "kernels".
func SearchPath(env []string) []string {
	var paths []string
	add := func(path string) {
		if !filepath.IsAbs(path) {
			return
		}
		path = filepath.Clean(path)
		for _, p := range paths {
			if p == path {
				return
			}
		}
		paths = append(paths, path)
	}
	for _, path := range filepath.SplitList(environ.Get(env, "JUPYTER_PATH")) {
		add(path)
	}
	// An active environment comes before the user's own, as in jupyter_core 5.
	for _, name := range []string{"VIRTUAL_ENV", "CONDA_PREFIX"} {
		if prefix := environ.Get(env, name); prefix != "" {
			add(filepath.Join(prefix, "share", "jupyter"))
		}
	}
	home := environ.Get(env, "HOME")
	switch {
	case environ.Get(env, "JUPYTER_DATA_DIR") != "":
		add(environ.Get(env, "JUPYTER_DATA_DIR"))
	case environ.Get(env, "XDG_DATA_HOME") != "":
		add(filepath.Join(environ.Get(env, "XDG_DATA_HOME"), "jupyter"))
	case home != "":
		add(filepath.Join(home, ".local", "share", "jupyter"))
	}
	if home != "" {
		add(filepath.Join(home, ".local", "share", "jupyter")) // where pip install --user puts it
	}
	add("/usr/local/share/jupyter")
	add("/usr/share/jupyter")
	return paths
}
