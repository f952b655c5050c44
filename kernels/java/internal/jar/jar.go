// Package jar compiles the Java side, for build.go, which makes kernel.jar, and for the
// test that it is what the sources say.
package jar

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Manifest is the manifest of kernel.jar; its verb is for Sum's.
//
// Add-Opens is what takes the place of flags, which would keep the virtual machine from
// using its archive of modules: Threads reads which cell a thread came from, Environment
// what Java remembers of the process's environment and directory.
const Manifest = `Manifest-Version: 1.0
Main-Class: cellard.kernel.Main
Class-Path: asm-9.9.1.jar
Add-Opens: java.base/java.lang java.base/java.io java.base/sun.nio.fs
Add-Exports: java.base/jdk.internal.vm
Sources-SHA256: %s

`

// Sources are the Java files of a directory's src, sorted.
func Sources(dir string) ([]string, error) {
	return files(filepath.Join(dir, "src"), ".java")
}

func files(dir, ext string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ext) {
			found = append(found, path)
		}
		return err
	})
	slices.Sort(found)
	return found, err
}

// Sum is a hash over the sources: their names and what they hold. The first 40 digits
// fit into a line of a manifest.
func Sum(dir string) (string, error) {
	sources, err := Sources(dir)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, path := range sources {
		data, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		name, _ := filepath.Rel(dir, path)
		fmt.Fprintf(h, "%s %d\n%s", filepath.ToSlash(name), len(data), data)
	}
	return fmt.Sprintf("%x", h.Sum(nil))[:40], nil
}

// Compile compiles the sources of a directory for Java 17 into out.
func Compile(javac, dir, out string) error {
	sources, err := Sources(dir)
	if err != nil {
		return err
	}
	asm, err := filepath.Glob(filepath.Join(dir, "lib", "asm-*.jar"))
	if err != nil || len(asm) != 1 {
		return fmt.Errorf("lib has %d jars of ASM (%v)", len(asm), err)
	}
	args := append([]string{"--release", "17", "-proc:none", "-Xlint:all", "-Werror", "-encoding", "UTF-8", "-g:source,lines", "-cp", asm[0], "-d", out}, sources...)
	if b, err := exec.Command(javac, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", javac, err, b)
	}
	return nil
}

// Classes are the class files under a directory, relative to it, sorted.
func Classes(dir string) []string {
	found, err := files(dir, ".class")
	if err != nil {
		return nil
	}
	for i, path := range found {
		found[i], _ = filepath.Rel(dir, path)
	}
	return found
}
