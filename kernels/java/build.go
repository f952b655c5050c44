//go:build ignore

// Build makes kernel.jar of src. It takes a JDK 17: JAVAC, or javac on the PATH. The same
// sources and compiler make the same file.
package main

import (
	"archive/zip"
	"bytes"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/cellard/cellard/kernels/java/internal/jar"
)

func main() {
	log.SetFlags(0)
	javac := os.Getenv("JAVAC")
	if javac == "" {
		javac = "javac"
	}
	version, err := exec.Command(javac, "-version").Output()
	if err != nil || !bytes.HasPrefix(version, []byte("javac 17.")) {
		log.Fatalf("%s is %q (%v): want a JDK 17, set JAVAC", javac, version, err)
	}
	out, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(out)
	if err := jar.Compile(javac, ".", out); err != nil {
		log.Fatal(err)
	}
	sum, err := jar.Sum(".")
	if err != nil {
		log.Fatal(err)
	}
	var file bytes.Buffer
	z := zip.NewWriter(&file)
	add := func(name string, data []byte) {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: time.Unix(1e9, 0).UTC()})
		if err == nil {
			_, err = w.Write(data)
		}
		if err != nil {
			log.Fatal(err)
		}
	}
	add("META-INF/MANIFEST.MF", []byte(fmt.Sprintf(jar.Manifest, sum)))
	for _, name := range jar.Classes(out) {
		data, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			log.Fatal(err)
		}
		add(name, data)
	}
	if err := z.Close(); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile("kernel.jar", file.Bytes(), 0o644); err != nil {
		log.Fatal(err)
	}
}
