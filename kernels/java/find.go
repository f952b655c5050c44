package java

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cellard/cellard/internal/environ"
)

// MinVersion is the oldest Java that will do.
const MinVersion = 17

// Java is one that the kernel can run on.
type Java struct {
	// Home is its directory, without links; Executable is the program in it.
	Home       string
	Executable string
	// Version is its own name for its version ("17.0.15"), Major the first number.
	Version string
	Major   int
}

// NotFoundError tells why there is no Java to run on.
type NotFoundError struct {
	// Tried has what was looked at, and what is wrong with each.
	Tried []string
}

func (e *NotFoundError) Error() string {
	if len(e.Tried) == 0 {
		return "there is no Java on this machine: none in JAVA_HOME or on PATH"
	}
	return "no Java that will do: " + strings.Join(e.Tried, "; ")
}

// Hint tells what to do where Find finds none.
func Hint() string {
	return fmt.Sprintf("install a JDK, %d or newer (apt-get install default-jdk-headless), or name one in JAVA_HOME", MinVersion)
}

// Find looks for a Java in an environment: in JAVA_HOME, then on PATH. It reads what the
// installation says of itself, and runs nothing.
func Find(env []string) (*Java, error) {
	failure := &NotFoundError{}
	var programs []string
	if home, _ := environ.Lookup(env, "JAVA_HOME"); home != "" {
		programs = append(programs, filepath.Join(home, "bin", "java"))
	}
	if program, err := environ.LookPath(env, "java"); err == nil {
		programs = append(programs, program)
	}
	for _, program := range programs {
		j, err := At(program)
		if err == nil {
			return j, nil
		}
		failure.Tried = append(failure.Tried, fmt.Sprintf("%s: %v", program, err))
	}
	return nil, failure
}

// At is the Java of a program, by its path.
func At(program string) (*Java, error) {
	real, err := filepath.EvalSymlinks(program)
	if err != nil {
		return nil, errors.New("there is no such program")
	}
	if real, err = filepath.Abs(real); err != nil {
		return nil, err
	}
	if info, err := os.Stat(real); err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return nil, errors.New("not a program that can be run")
	}
	j := &Java{Home: filepath.Dir(filepath.Dir(real)), Executable: real}
	properties, err := release(filepath.Join(j.Home, "release"))
	if err != nil {
		return nil, err
	}
	j.Version = properties["JAVA_VERSION"]
	first, _, _ := strings.Cut(j.Version, ".")
	first, _, _ = strings.Cut(first, "-") // 26-ea
	if j.Major, err = strconv.Atoi(first); err != nil {
		return nil, fmt.Errorf("its version is %q", j.Version)
	}
	if j.Major < MinVersion {
		return nil, fmt.Errorf("its version is %s, older than %d", j.Version, MinVersion)
	}
	modules := strings.Fields(properties["MODULES"])
	for _, need := range []string{"jdk.jshell", "jdk.compiler"} {
		if len(modules) > 0 && !slices.Contains(modules, need) {
			return nil, fmt.Errorf("it has no module %s: it is a runtime, not a JDK", need)
		}
	}
	return j, nil
}

// release reads the file of that name in a JDK: NAME="value" a line.
func release(path string) (map[string]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, errors.New("it does not lie in a JDK: there is no file \"release\" above it")
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, 64<<10))
	if err != nil {
		return nil, err
	}
	properties := make(map[string]string)
	for line := range bytes.Lines(data) {
		if name, value, ok := strings.Cut(strings.TrimSpace(string(line)), "="); ok {
			properties[name] = strings.Trim(value, `"`)
		}
	}
	return properties, nil
}
