package bash

import (
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cellard/cellard/internal/environ"
)

// Of any text quote makes one word on one line, which bash reads as that text.
func TestQuote(t *testing.T) {
	for _, s := range []string{"", "a", "it's", `\`, "a\nb", "$x `y` \"z\"", "é☃", "\x01\x7f\t", "!", `\'`, "a'\n'b"} {
		q := quote(s)
		out, err := exec.Command("bash", "-c", "printf %s "+q).Output()
		if err != nil || string(out) != s || strings.Contains(q, "\n") {
			t.Errorf("%q: %s reads as %q %v", s, q, out, err)
		}
	}
}

// What trap -p prints is read as what was set, also between a stranger's lines.
func TestParseTraps(t *testing.T) {
	code := `trap 'echo "it'\''s"
two' INT; trap '' TERM; trap 'x' DEBUG; trap '\builtin :' ERR; echo "trap -- 'half"; trap -p`
	// One that is ignored by this process, as under nohup, would be printed too.
	hups := make(chan os.Signal, 1)
	signal.Notify(hups, syscall.SIGHUP)
	defer signal.Stop(hups)
	out, err := exec.Command("bash", "-c", code).Output()
	if err != nil {
		t.Fatal(err)
	}
	_, printed, _ := strings.Cut(string(out), "half\n")
	want := []trap{{`$'echo "it\'s"\ntwo'`, "SIGINT"}, {"''", "SIGTERM"}, {"'x'", "DEBUG"}}
	got := parseTraps(printed)
	slices.SortFunc(got, func(a, b trap) int { return strings.Compare(b.signal, a.signal) })
	slices.SortFunc(want, func(a, b trap) int { return strings.Compare(b.signal, a.signal) })
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Whatever a cell writes to the status pipe, reading it ends, and what it gives can be
// quoted.
func FuzzParseTraps(f *testing.F) {
	for _, s := range []string{"trap -- 'a' INT\n", "trap -- 'a'\\''b' INT\n", "trap -- '", "trap -- ''", "trap -- 'a' $(x)\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, tr := range parseTraps(s) {
			if strings.ContainsAny(tr.signal, " '\"$`;&|<>()\n") || strings.Contains(tr.action, "\n") {
				t.Errorf("%q: %q %q", s, tr.action, tr.signal)
			}
		}
	})
}

func TestFilter(t *testing.T) {
	const m = "\x1e"
	whole := "a" + m + m + m + " echo\n/proc/1/fd/2: line 3: x\n" + m + m + m + m + " b\n/proc/1/fd/3\n"
	want := "a+ echo\nbash: line 3: x\n++ b\n/proc/1/fd/3\n"
	for n := 1; n < len(whole); n++ {
		f := filter{level: 3, path: "/proc/1/fd/2"}
		got := ""
		for rest := whole; rest != ""; rest = rest[min(n, len(rest)):] {
			got += f.text(rest[:min(n, len(rest))], false)
		}
		if got += f.text("", true); got != want {
			t.Errorf("in pieces of %d: %q, want %q", n, got, want)
		}
	}
}

// A trap that bash loses is told of in a cell that isn't stopped, and only there.
func TestFilterLostTrap(t *testing.T) {
	line := "/proc/1/fd/2" + lostTrap
	for n := 1; n <= len(line)+3; n++ {
		for _, stopping := range []bool{false, true} {
			want := "a\nbash" + lostTrap + "b\n"
			f := filter{path: "/proc/1/fd/2"}
			if f.stopping.Store(stopping); stopping {
				want = "a\nb\n"
			}
			got := ""
			for rest := "a\n" + line + "b\n"; rest != ""; rest = rest[min(n, len(rest)):] {
				got += f.text(rest[:min(n, len(rest))], false)
			}
			if got += f.text("", true); got != want {
				t.Errorf("in pieces of %d, stopping %v: %q, want %q", n, stopping, got, want)
			}
		}
	}
}

func TestVersions(t *testing.T) {
	for version, want := range map[string]bool{"5.2.15(1)-release": true, "5.1.0": true, "6.0": true, "5.0.3": false, "4.4.23": false, "": false, "x.y": false} {
		if environ.AtLeast(version, minMajor, minMinor) != want {
			t.Errorf("%q", version)
		}
	}
}
