package kernels

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cellard/cellard/protocol/api"
)

// install writes a kernel.json into a data directory.
func install(t *testing.T, data, name, text string) string {
	t.Helper()
	dir := filepath.Join(data, "kernels", name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "kernel.json"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

const good = `{"argv":["/bin/sh","{resource_dir}/k","-f","{connection_file}"],"display_name":"Good","language":"Fine",
	"interrupt_mode":"message","env":{"A":"$HOME/x","B":"${NONE} $$5"}}`

func TestDiscover(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	install(t, first, "Good", good)
	install(t, second, "good", `{"argv":["other"]}`) // the first counts
	for name, text := range map[string]string{
		"garbage": `{`, "noargv": `{"argv":[]}`, "mode": `{"argv":["a"],"interrupt_mode":"x"}`,
		"large": `{"argv":["` + strings.Repeat("a", maxSpec) + `"]}`, "wrong": `{"argv":"a"}`,
	} {
		install(t, second, name, text)
	}
	install(t, second, "bad name", good)
	pipe := filepath.Join(second, "kernels", "pipe")
	if err := os.MkdirAll(pipe, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(pipe, "kernel.json"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(second, "kernels", "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range Discover([]string{first, filepath.Join(first, "none"), second}) {
		names = append(names, s.Name)
		if s.Name == "good" {
			if s.Err != nil || s.DisplayName != "Good" || s.Dir != filepath.Join(first, "kernels", "Good") || s.InterruptMode != "message" {
				t.Errorf("%+v", s)
			}
		} else if s.Err == nil || !strings.Contains(s.Err.Error(), s.Name) {
			t.Errorf("%s: %v", s.Name, s.Err)
		}
	}
	if got := strings.Join(names, " "); got != "good garbage large mode noargv pipe wrong" {
		t.Errorf("found %s", got)
	}
}

func TestSearchPath(t *testing.T) {
	home := t.TempDir()
	for _, c := range []struct {
		env  []string
		want []string // in this order
	}{
		{[]string{"HOME=" + home, "JUPYTER_PATH=/a:/b"}, []string{"/a", "/b", home + "/.local/share/jupyter", "/usr/local/share/jupyter", "/usr/share/jupyter"}},
		{[]string{"HOME=" + home, "XDG_DATA_HOME=/x"}, []string{"/x/jupyter", "/usr/local/share/jupyter"}},
		{[]string{"HOME=" + home, "JUPYTER_DATA_DIR=/d"}, []string{"/d", "/usr/local/share/jupyter"}},
	} {
		got, last := SearchPath(c.env), -1
		for _, dir := range c.want {
			i := slices.Index(got, dir)
			if i <= last {
				t.Errorf("%v: %v, wanted %s after the %d first", c.env, got, dir, last+1)
			}
			last = i
		}
	}
}

func TestLaunchOfAKernelspec(t *testing.T) {
	data := t.TempDir()
	dir := install(t, data, "good", good)
	install(t, data, "broken", `{`)
	env := []string{"JUPYTER_PATH=" + data, "HOME=" + t.TempDir(), "PATH=/usr/bin:/bin"}
	c := New(Options{Env: env})
	l, err := c.Launch(t.Context(), "good")
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"/bin/sh", dir + "/k", "-f", "{connection_file}"}; !slices.Equal(l.Argv, want) {
		t.Errorf("argv %q, wanted %q", l.Argv, want)
	}
	if l.Language != "good" || l.InterruptMode != "message" || l.Transport != "tcp" || l.CellEnv {
		t.Errorf("%+v", l)
	}
	slices.Sort(l.Env)
	if want := []string{"A=" + strings.TrimPrefix(env[1], "HOME=") + "/x", "B=${NONE} $5"}; !slices.Equal(l.Env, want) {
		t.Errorf("env %q, wanted %q", l.Env, want)
	}
	for name, want := range map[string]api.Code{"nothing": api.CodeNotFound, "java": api.CodeKernelFailed, "broken": api.CodeKernelFailed} {
		if _, err := c.Launch(t.Context(), name); !errors.Is(err, &api.Error{Code: want}) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !c.Has("good") || !c.Has("java") || !c.Has("broken") || c.Has("nothing") {
		t.Error("Has is wrong")
	}
	states := map[string]api.LanguageState{}
	for _, l := range c.Languages(t.Context()) {
		states[l.Name] = l.State
	}
	if states["good"] != api.LanguageReady || states["broken"] != api.LanguageMissing || states["java"] != api.LanguageMissing {
		t.Errorf("%v", states)
	}
}

// A Python without ipykernel, or none at all, is an error that says what to do; one
// that comes later is found.
func TestPythonThatLacksSomething(t *testing.T) {
	dir := t.TempDir()
	fake := filepath.Join(dir, "python3")
	if err := os.WriteFile(fake, []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]string{fake: fake, filepath.Join(dir, "none"): "none", "'unclosed": "closing quote"} {
		_, err := New(Options{Python: command}).Launch(t.Context(), "python")
		var refusal *api.Error
		if !errors.As(err, &refusal) || refusal.Code != api.CodeKernelFailed || !strings.Contains(refusal.Error(), want) {
			t.Errorf("%s: %v", command, err)
		}
	}
}
