package java

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	dir := t.TempDir()
	install := func(name, release string) string {
		home := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Join(home, "bin"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, "bin", "java"), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		if release != "" {
			if err := os.WriteFile(filepath.Join(home, "release"), []byte(release), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return home
	}
	good := install("good", "JAVA_VERSION=\"21.0.2\"\nMODULES=\"java.base jdk.compiler jdk.jshell\"\n")
	early := install("early", "JAVA_VERSION=\"26-ea\"\n")
	old := install("old", "JAVA_VERSION=\"11.0.2\"\nMODULES=\"java.base jdk.compiler jdk.jshell\"\n")
	runtime := install("jre", "JAVA_VERSION=\"21.0.2\"\nMODULES=\"java.base\"\n")
	stray := install("stray", "")
	odd := install("odd", "JAVA_VERSION=\"x\"\n")
	links := filepath.Join(dir, "links")
	if err := os.Mkdir(links, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(good, "bin", "java"), filepath.Join(links, "java")); err != nil {
		t.Fatal(err)
	}
	path := func(home string) string { return "PATH=" + filepath.Join(home, "bin") }
	for _, c := range []struct {
		name string
		env  []string
		home string // "" for none
		says string
	}{
		{"none", []string{"PATH=" + dir}, "", "JAVA_HOME"},
		{"PATH", []string{path(good)}, good, ""},
		{"a link", []string{"PATH=" + links}, good, ""},
		{"JAVA_HOME first", []string{path(good), "JAVA_HOME=" + early}, early, ""},
		{"JAVA_HOME of none", []string{path(good), "JAVA_HOME=" + dir}, good, ""},
		{"JAVA_HOME of an old one", []string{path(good), "JAVA_HOME=" + old}, good, ""},
		{"old", []string{path(old)}, "", "11.0.2, older than 17"},
		{"a runtime", []string{path(runtime)}, "", "no module jdk.jshell"},
		{"no JDK around it", []string{path(stray)}, "", "release"},
		{"no version", []string{path(odd)}, "", `"x"`},
		{"two that will not do", []string{path(runtime), "JAVA_HOME=" + old}, "", "; "},
	} {
		j, err := Find(c.env)
		if c.home == "" {
			var missing *NotFoundError
			if !errors.As(err, &missing) || !strings.Contains(err.Error(), c.says) || !strings.Contains(Hint(), "JAVA_HOME") {
				t.Errorf("%s: %+v %v", c.name, j, err)
			}
			continue
		}
		if err != nil || j.Home != c.home || j.Major < 17 {
			t.Errorf("%s: %+v %v", c.name, j, err)
		}
	}
}
