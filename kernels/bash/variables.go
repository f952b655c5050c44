package bash

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cellard/cellard/internal/procfs"
	"github.com/cellard/cellard/protocol/api"
	"github.com/cellard/cellard/protocol/jupyter/kernel"
)

// isName matches what can be named in a script as it is.
var isName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// shellsOwn are variables that the shell sets by itself, though not at its start.
var shellsOwn = []string{"_", "FUNCNAME", "PIPESTATUS", "BASH_REMATCH", "BASH_ARGC", "BASH_ARGV", "BASH_LINENO", "BASH_SOURCE", "COPROC", "OPTARG"}

// tellNames has the shell tell the names of its variables.
const tellNames = `\builtin compgen -A variable`

// namesIn are the names that tellNames has printed, less what is the shell's own.
func namesIn(out string) (names []string) {
	for name := range strings.Lines(out) {
		name = strings.TrimSuffix(name, "\n")
		if isName.MatchString(name) && !strings.HasPrefix(name, "__cellard_") && !slices.Contains(shellsOwn, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

var _ kernel.Lister = (*Kernel)(nil)

// listWithin is how long the shell may take to list the names of its variables: for some ten
// thousands of them it takes longer.
const listWithin = 4 * time.Second

// names are those of the cells' variables, and how many there are in all. Where the shell
// takes too long it is asked which of the cells' words are some: then one more stands for
// the others.
func (k *Kernel) names(ctx context.Context) ([]string, int, error) {
	bounded, cancel := context.WithTimeout(ctx, k.listing)
	defer cancel()
	out, err := k.askForked(bounded, tellNames)
	more := 0
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		var script strings.Builder
		for _, word := range k.words.order {
			fmt.Fprintf(&script, `[[ ! -R %[1]s && ! -v %[1]s && ! ${%[1]s@a} ]] || \builtin echo %[1]s; `, word)
		}
		more = 1
		out, err = k.askForked(ctx, script.String()+`\builtin :`)
	}
	if err != nil {
		return nil, 0, err
	}
	names := slices.DeleteFunc(namesIn(out), func(name string) bool { return slices.Contains(k.initial, name) })
	return names, len(names) + more, nil
}

// Variables tells those that were not there when the shell began: the environment is not
// the cells'. Each is expanded to a part of it alone. A name reference is not followed:
// the subscript of what it names may be a command.
func (k *Kernel) Variables(ctx context.Context) ([]api.Variable, int, error) {
	names, total, err := k.names(ctx)
	if err != nil {
		return nil, 0, err
	}
	names = names[:min(len(names), api.MaxVariables)]
	// Each is a record: its name, kind, number of elements and characters, and its text.
	var script strings.Builder
	for _, n := range names {
		fmt.Fprintf(&script, `if [[ -R %[1]s ]]; then \builtin printf '%%s\0' %[1]s n 0 0 ''; else \builtin printf '%%s\0' %[1]s "${%[1]s@a}" "${#%[1]s[@]}" "${#%[1]s}"; `+
			`if [[ ${%[1]s@a} == *[aA]* ]]; then \builtin printf ' %%.60s' "${%[1]s[@]:0:10}"; else \builtin printf %%s "${%[1]s:0:60}"; fi; \builtin printf '\0'; fi; `, n)
	}
	out, err := k.askForked(ctx, script.String())
	if err != nil {
		return nil, 0, err
	}
	return variablesOf(strings.Split(out, "\x00")), total, nil
}

// askForked captures what code prints in a fork of the idle shell, which is killed when ctx
// ends: bash takes the square of their number to list the names of its variables, for 50,000
// half a minute, and no signal that it lives on after stops that. Without job control the
// fork's end runs no CHLD trap of a cell's.
func (k *Kernel) askForked(ctx context.Context, code string) (string, error) {
	if _, err := k.settled(ctx); err != nil {
		return "", err
	}
	// Else what makes the shell's copy could be taken for the fork.
	if err := k.await(ctx, func() bool { return !k.shell.copying }); err != nil {
		return "", err
	}
	born := procfs.Now()
	out, err := k.capture(ctx, `__cellard_r=; [[ $- != *m* ]] || __cellard_r=m; \builtin set +m; ( `+code+` ); [[ ! $__cellard_r ]] || \builtin set -m; __cellard_r=()`)
	if ctx.Err() == nil || err == nil {
		return out, err
	}
	for begin := time.Now(); time.Since(begin) < stopMost; {
		k.shell.mu.Lock()
		main, spared := k.shell.main, k.shell.copy
		k.shell.mu.Unlock()
		for _, p := range procfs.Children(main) {
			if p.PID != spared && born.Before(p) {
				_ = unix.Kill(p.PID, unix.SIGKILL)
			}
		}
		bound, cancel := context.WithTimeout(context.Background(), 5*stopAgain)
		ended := k.await(bound, func() bool { return k.shell.end.pid != 0 })
		cancel()
		if gone := (*goneError)(nil); ended == nil || errors.As(ended, &gone) {
			break
		}
	}
	return "", err
}

// variablesOf reads records of five fields.
func variablesOf(fields []string) (list []api.Variable) {
	for ; len(fields) >= 5; fields = fields[5:] {
		v := api.Variable{Name: fields[0], Type: "string", Preview: fields[4]}
		elements, _ := strconv.ParseInt(fields[2], 10, 64)
		size, _ := strconv.ParseInt(fields[3], 10, 64)
		switch attributes := fields[1]; {
		case attributes == "n":
			v.Type, v.Preview = "reference", ""
			list = append(list, v)
			continue
		case strings.Contains(attributes, "A"):
			v.Type, size, v.Preview = "associative array", elements, strings.TrimPrefix(v.Preview, " ")
		case strings.Contains(attributes, "a"):
			v.Type, size, v.Preview = "array", elements, strings.TrimPrefix(v.Preview, " ")
		case strings.Contains(attributes, "i"):
			v.Type = "integer"
		}
		if v.Type != "integer" {
			v.Size = &size
		}
		if len(v.Type) > 6 && elements > 10 || v.Type == "string" && size > 60 {
			v.Preview += " …"
		}
		v.Preview = strings.ToValidUTF8(v.Preview, "") // a character may be cut
		list = append(list, v)
	}
	return list
}
