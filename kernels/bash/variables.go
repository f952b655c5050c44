package bash

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

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

// Variables tells those that were not there when the shell began: the environment is not
// the cells'. Each is expanded to a part of it alone. A name reference is not followed:
// the subscript of what it names may be a command.
func (k *Kernel) Variables(ctx context.Context) ([]api.Variable, int, error) {
	out, err := k.askIdle(ctx, tellNames)
	if err != nil {
		return nil, 0, err
	}
	names := slices.DeleteFunc(namesIn(out), func(name string) bool { return slices.Contains(k.initial, name) })
	total := len(names)
	names = names[:min(total, api.MaxVariables)]
	// Each is a record: its name, kind, number of elements and characters, and its text.
	var script strings.Builder
	for _, n := range names {
		fmt.Fprintf(&script, `if [[ -R %[1]s ]]; then \builtin printf '%%s\0' %[1]s n 0 0 ''; else \builtin printf '%%s\0' %[1]s "${%[1]s@a}" "${#%[1]s[@]}" "${#%[1]s}"; `+
			`if [[ ${%[1]s@a} == *[aA]* ]]; then \builtin printf ' %%.60s' "${%[1]s[@]:0:10}"; else \builtin printf %%s "${%[1]s:0:60}"; fi; \builtin printf '\0'; fi; `, n)
	}
	out, err = k.askIdle(ctx, script.String())
	if err != nil {
		return nil, 0, err
	}
	return variablesOf(strings.Split(out, "\x00")), total, nil
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
