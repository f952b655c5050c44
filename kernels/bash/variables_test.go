package bash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cellard/cellard/internal/procfs"
	"github.com/cellard/cellard/protocol/api"
	"github.com/cellard/cellard/protocol/jupyter/kernel"
	"github.com/cellard/cellard/protocol/jupyter/kernel/kerneltest"
)

func (s *session) variables() ([]api.Variable, int) {
	s.t.Helper()
	list, total, _ := kerneltest.Variables(s.t, s.k, patience)
	return list, total
}

// What cells have set is told with kind, size and a beginning; nothing of it is run, and
// what the shell or its environment brings is not theirs.
func TestVariables(t *testing.T) {
	s := start(t)
	if list, total := s.variables(); len(list) != 0 || total != 0 {
		t.Errorf("at the start: %v", list)
	}
	evil := filepath.Join(t.TempDir(), "evil")
	s.ok(strings.Join([]string{
		`text='a b' empty= wide=äöü`, `lines=$'one\ntwo'`, `declare -i n=5`, `list=(1 'a b' 3)`, `declare -A map=([key]=value)`, `none=()`,
		`many=({1..1000})`, `long=$(printf 'x%.0s' {1..1000})`, `code='$(touch ` + evil + `)'`,
		`declare -n followed='map[$(touch ` + evil + `)]'`, `export PATH=$PATH:/x SHOWN=1`, `readonly fixed=1`, `[[ a =~ a ]]; echo hi | cat >/dev/null`,
	}, "\n"), "")
	list, total := s.variables()
	var got []string
	for _, v := range list {
		b, _ := json.Marshal(v.Size)
		got = append(got, fmt.Sprintf("%s %s %s %.20q", v.Name, v.Type, b, v.Preview))
	}
	want := strings.Join([]string{`SHOWN string 1 "1"`, `code string ` + fmt.Sprint(len(evil)+9) + ` "$(touch ` + evil[:12] + `"`, `empty string 0 ""`, `fixed string 1 "1"`,
		`followed reference null ""`, `lines string 7 "one\ntwo"`, `list array 3 "1 a b 3"`,
		`long string 1000 "` + strings.Repeat("x", 20) + `"`, `many array 1000 "1 2 3 4 5 6 7 8 9 10"`, `map associative array 1 "value"`,
		`n integer null "5"`, `none array 0 ""`, `text string 3 "a b"`, `wide string ` + s.run(`echo -n ${#wide}`).Stream("stdout") + ` "äöü"`}, "\n")
	if strings.Join(got, "\n") != want || total != len(list) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
	if _, err := os.Stat(evil); err == nil {
		t.Error("a value was run")
	}
	// The questions leave no trace.
	s.ok(`echo $? $n ${#list[@]}; compgen -A variable | grep -c '^__' | grep -qx "$(compgen -A variable | grep -c ^__cellard_)" && echo same`, "0 5 3\nsame\n")

	s.ok(`for i in {1..1200}; do printf -v v$i %s $i; done; unset i`, "")
	if list, more := s.variables(); len(list) != api.MaxVariables || more != total+1200 {
		t.Errorf("%d of %d", len(list), more)
	}
}

// Where the shell takes too long to list the names, those that stand in cells are told.
func TestVariablesThatAreVeryMany(t *testing.T) {
	s := start(t)
	s.ok(`for i in {1..30000}; do printf -v v$i %s $i; done; unset i; text=ab list=(1 2) none=(); declare -A map=([k]=v); declare -n follows=text; declare -i num=7; export PATH`, "")
	s.ok(`v17=x; gone=1; unset gone; f() { local inner=1; }; f; evil='$(touch /tmp/x)'`, "")
	s.k.listing = time.Millisecond
	for range 3 {
		list, total := s.variables()
		var got []string
		for _, v := range list {
			got = append(got, v.Name+" "+v.Type+" "+v.Preview)
		}
		want := []string{"evil string $(touch /tmp/x)", "follows reference ", "list array 1 2", "map associative array v", "none array ", "num integer 7", "text string ab", "v17 string x"}
		if !slices.Equal(got, want) || total != len(want)+1 {
			t.Errorf("of %d, got %q, want %q", total, got, want)
		}
	}
	s.ok(`echo $text ${#list[@]} $v29999`, "ab 2 29999\n")
	var w words
	for i := range maxWords {
		w.add(fmt.Sprintf("a%d=1 9x _%d", i, i))
	}
	if len(w.order) != maxWords || len(w.has) != maxWords || w.order[maxWords-1] != fmt.Sprintf("_%d", maxWords-1) || w.has["a0"] {
		t.Errorf("%d words, the last %v", len(w.order), w.order[maxWords-3:])
	}
}

// Bash lists very many names slowly, and takes no signal meanwhile: the list ends at the
// interrupt, and the shell stays as it is.
func TestVariablesInterrupted(t *testing.T) {
	s := start(t)
	s.ok(`set -m; for i in {1..20000}; do printf -v v$i %s $i; done`, "")
	if err := s.k.await(t.Context(), func() bool { return !s.k.shell.copying }); err != nil {
		t.Fatal(err)
	}
	if _, err := s.k.settled(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.k.shell.mu.Lock()
	shell := s.k.shell.main
	s.k.shell.mu.Unlock()
	before := procfs.Now()
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	ended := make(chan error, 1)
	go func() {
		_, _, err := s.k.Variables(ctx)
		ended <- err
	}()
	lists := func() bool {
		return slices.ContainsFunc(procfs.Children(shell), func(p procfs.Stat) bool { return before.Before(p) && p.State == 'R' })
	}
	for end := time.Now().Add(patience); !lists(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nothing lists the names beside the shell")
		}
	}
	cancel(kernel.ErrInterrupted)
	select {
	case err := <-ended:
		if !errors.Is(err, kernel.ErrInterrupted) {
			t.Errorf("the list: %v", err)
		}
	case <-time.After(patience):
		t.Fatal("the list doesn't end")
	}
	if lists() {
		t.Error("it goes on with the list")
	}
	s.ok(`echo "$v20000 $BASHPID ${-//[^m]}"`, fmt.Sprintf("20000 %d m\n", shell))
}
