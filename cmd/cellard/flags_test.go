package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestSizes(t *testing.T) {
	for s, want := range map[string]int64{"1": 1, "65536": 65536, "64KiB": 65536, "64k": 65536, "64KB": 65536, "1.5MiB": 3 << 19, "2 GiB": 2 << 30, "1TiB": 1 << 40, "7B": 7} {
		if n, err := parseSize(s); err != nil || n != want {
			t.Errorf("parseSize(%q) = %d, %v, want %d", s, n, err, want)
		}
	}
	for _, s := range []string{"", "x", "1x", "-1", "1e30", "KiB", "1KiBB", "999999999TiB", "NaN", "Inf", "1 2"} {
		if n, err := parseSize(s); err == nil {
			t.Errorf("parseSize(%q) = %d", s, n)
		}
	}
	for _, n := range []int64{0, 1, 1000, 1024, 1536, 48 << 10, 1 << 20, 3 << 30, 5 << 40} {
		if back, err := parseSize(printSize(n)); err != nil || back != n {
			t.Errorf("%d is printed as %s, which is %d, %v", n, printSize(n), back, err)
		}
	}
}

func TestDefaultAddresses(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_RUNTIME_DIR", dir)
	socket := "unix://" + filepath.Join(dir, "cellard.sock")
	if os.Getuid() == 0 {
		socket = "unix:///run/cellard.sock"
	}
	if got := strings.Join(defaultAddresses(false), " "); got != socket {
		t.Errorf("no guest: %s", got)
	}
	if got := strings.Join(defaultAddresses(true), " "); got != "vsock://:52 "+socket {
		t.Errorf("a guest: %s", got)
	}
}

func TestRuntimeDir(t *testing.T) {
	base := filepath.Join(t.TempDir(), "a", "b")
	one, err := makeRuntimeDir(base)
	if err != nil {
		t.Fatal(err)
	}
	two, err := makeRuntimeDir(base)
	if err != nil || one == two || filepath.Dir(one) != base {
		t.Errorf("%s, then %s, %v", one, two, err)
	}
	for _, dir := range []string{base, one} {
		if fi, err := os.Stat(dir); err != nil || fi.Mode().Perm()&0o066 != 0 {
			t.Errorf("%s: %v %v", dir, fi.Mode(), err)
		}
	}
	// Where others can write, they could put what they like.
	if err := os.Chmod(base, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := makeRuntimeDir(base); err == nil {
		t.Error("a directory that all can write to was taken")
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(one, link); err != nil {
		t.Fatal(err)
	}
	if _, err := makeRuntimeDir(link); err == nil {
		t.Error("a link was taken")
	}
}

// The table of limits in the documentation has the flags' defaults, and no other page tells
// one once more.
func TestDocumentedLimits(t *testing.T) {
	code, help, _ := output(t, nil, "serve", "--help")
	if code != 0 {
		t.Fatalf("code %d", code)
	}
	defaults := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^  (--[a-z-]+) [A-Z]+\n.*\(default ([0-9][^)]*)\)$`).FindAllStringSubmatch(help, -1) {
		defaults[m[1]] = m[2]
	}
	b, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(b), "\n## Limits\n")
	told := 0
	for _, row := range regexp.MustCompile("(?m)^\\| .* \\| (.*) \\| (`--.*`) \\|$").FindAllStringSubmatch(table, -1) {
		values, flags := strings.Split(row[1], "; "), regexp.MustCompile("--[a-z-]+").FindAllString(row[2], -1)
		if len(values) != len(flags) {
			t.Errorf("%q is of %q", values, flags)
			continue
		}
		for i, flag := range flags {
			told++
			if got := strings.NewReplacer(" min", "m", " ", "").Replace(values[i]); got != defaults[flag] {
				t.Errorf("%s is told as %s, and is %q", flag, values[i], defaults[flag])
			}
		}
	}
	if told != len(defaults) {
		t.Errorf("%d of %d limits are told: %v", told, len(defaults), defaults)
	}
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) < 5 {
		t.Fatalf("%q, %v", pages, err)
	}
	again := regexp.MustCompile("[0-9]+( [KMG]iB| s| min| minutes)?[^.,;:|(]{0,40} \\(`(--[a-z-]+)`\\)")
	for _, page := range append(pages, "../../README.md") {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range again.FindAllSubmatch(b, -1) {
			if defaults[string(m[2])] != "" {
				t.Errorf("%s: %s", page, m[0])
			}
		}
	}
}

// Who may not open the device is not told that the machine has none.
func TestVsockWay(t *testing.T) {
	denied := &fs.PathError{Op: "open", Path: "/dev/vsock", Err: fs.ErrPermission}
	absent := &fs.PathError{Op: "open", Path: "/dev/vsock", Err: fs.ErrNotExist}
	for _, c := range []struct {
		guest       bool
		opened      error
		state, tell string
	}{{true, nil, "ready", "can call"}, {false, denied, "missing", "this user"}, {false, absent, "missing", "no guest"}, {false, nil, "missing", "no guest"}} {
		state, detail, hint := vsockWay(c.guest, c.opened)
		if state != c.state || !strings.Contains(detail, c.tell) || (hint == "") != c.guest {
			t.Errorf("%t, %v: %s: %s (%s)", c.guest, c.opened, state, detail, hint)
		}
	}
}
