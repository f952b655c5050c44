package java

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cellard/cellard/kernels/java/internal/jar"
)

// The jar that is embedded is what the sources say: by their hash, which it has, and
// where there is a JDK 17, by compiling them.
func TestJar(t *testing.T) {
	z, err := zip.NewReader(bytes.NewReader(kernelJar), int64(len(kernelJar)))
	if err != nil {
		t.Fatal(err)
	}
	have := make(map[string][]byte)
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		if have[f.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
		r.Close()
	}
	sum, err := jar.Sum(".")
	if err != nil {
		t.Fatal(err)
	}
	if got := string(have["META-INF/MANIFEST.MF"]); got != fmt.Sprintf(jar.Manifest, sum) {
		t.Fatalf("kernel.jar is not of these sources: run `go generate ./kernels/java` with a JDK 17\n%s", got)
	}
	for _, j := range javas(t) {
		javac := filepath.Join(j.Home, "bin", "javac")
		if _, err := os.Stat(javac); j.Major != 17 || err != nil {
			continue
		}
		out := t.TempDir()
		if err := jar.Compile(javac, ".", out); err != nil {
			t.Fatal(err)
		}
		classes := jar.Classes(out)
		if len(classes) != len(have)-1 {
			t.Errorf("%d classes were compiled, the jar has %d", len(classes), len(have)-1)
		}
		for _, name := range classes {
			data, err := os.ReadFile(filepath.Join(out, name))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(data, have[name]) {
				t.Errorf("%s is another than in the jar", name)
			}
		}
	}
}

func TestWriteJars(t *testing.T) {
	dir := t.TempDir()
	path, err := writeJars(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("other"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := writeJars(dir); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(data, kernelJar) {
		t.Errorf("a file that is not ours stayed: %v", err)
	}
	info, _ := os.Stat(path)
	if !info.ModTime().Equal(jarTime) {
		t.Errorf("its date is %v", info.ModTime())
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".jar") {
			t.Errorf("%s is left", e.Name())
		}
	}
}
