package java

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

//go:generate go run build.go

//go:embed kernel.jar
var kernelJar []byte

//go:embed lib/asm-9.9.1.jar
var asmJar []byte

// jarTime is the date of both files: an archive of classes is only used with jars of
// the date that it was made with.
var jarTime = time.Unix(1_000_000_000, 0)

// writeJars writes both jars into a directory, where they are not there yet, and returns
// the path of the one to start.
func writeJars(dir string) (string, error) {
	for name, data := range map[string][]byte{"kernel.jar": kernelJar, "asm-9.9.1.jar": asmJar} {
		path := filepath.Join(dir, name)
		if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, data) {
			continue
		}
		// By a rename, so that nobody meets half a file.
		f, err := os.CreateTemp(dir, name+".*")
		if err != nil {
			return "", fmt.Errorf("java: %w", err)
		}
		_, err = f.Write(data)
		if err == nil {
			err = f.Chmod(0o644)
		}
		if e := f.Close(); err == nil {
			err = e
		}
		if err == nil {
			err = os.Chtimes(f.Name(), jarTime, jarTime)
		}
		if err == nil {
			err = os.Rename(f.Name(), path)
		}
		if err != nil {
			os.Remove(f.Name())
			return "", fmt.Errorf("java: %w", err)
		}
	}
	return filepath.Join(dir, "kernel.jar"), nil
}
