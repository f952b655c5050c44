package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/cellard/cellard/kernels"
	"github.com/cellard/cellard/kernels/install"
)

// The list has each language once, and the reason and the remedy where one is missing.
func TestListLanguages(t *testing.T) {
	installer := install.New(install.Options{Enabled: true})
	defer installer.Close()
	c := kernels.New(kernels.Options{Env: []string{"PATH=" + t.TempDir(), "JUPYTER_PATH=" + t.TempDir()}, Python: "no-such-python", Installer: installer})
	var out bytes.Buffer
	if code := listLanguages(c.Languages(t.Context()), &out); code != 0 {
		t.Errorf("code %d", code)
	}
	for _, name := range []string{"python", "javascript", "typescript", "r", "java", "go"} {
		if n := strings.Count("\n"+out.String(), "\n"+name+" "); n != 1 {
			t.Errorf("%s is there %d times:\n%s", name, n, &out)
		}
	}
	if !strings.Contains(out.String(), "as root, run: cellard languages install r") {
		t.Errorf("no remedy for r:\n%s", &out)
	}
	out.Reset()
	if code := installLanguages(t.Context(), c, []string{"r", "cobol"}, &out); code != 1 {
		t.Errorf("code %d of an install that can't be", code)
	}
	for _, want := range []string{"r: r is not installed, and can't be: the agent isn't root", "cobol: "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("lacks %q:\n%s", want, &out)
		}
	}
}
