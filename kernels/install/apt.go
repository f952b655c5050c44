package install

import (
	"bufio"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/cellard/cellard/internal/environ"
)

// aptPrograms are what a way with packages takes.
var aptPrograms = []string{"apt-get", "apt-cache"}

// noApt says which of them there isn't on this machine; "" for none.
func (i *Installer) noApt() string {
	for _, program := range aptPrograms {
		if !i.has(program) {
			return "there is no " + program + " on this machine"
		}
	}
	return ""
}

func (i *Installer) has(program string) bool {
	_, err := environ.LookPath(i.o.Env, program)
	return err == nil
}

// candidates asks apt which version of each package it would install; "" for one that
// it doesn't know. It neither needs rights nor a network.
func (i *Installer) candidates(ctx context.Context, names []string) (map[string]string, error) {
	if len(names) == 0 {
		return nil, nil
	}
	out := &strings.Builder{}
	argv := append([]string{"apt-cache", "policy"}, names...)
	if err := i.run(ctx, argv, nil, func(line string) {
		if out.Len() < maxPolicy {
			out.WriteString(line + "\n")
		}
	}); err != nil {
		return nil, err
	}
	return parsePolicy(out.String()), nil
}

// maxPolicy bounds what is kept of apt-cache's answer, in bytes.
const maxPolicy = 256 << 10

// parsePolicy reads what apt-cache policy prints.
func parsePolicy(text string) map[string]string {
	versions := make(map[string]string)
	name := ""
	for s := bufio.NewScanner(strings.NewReader(text)); s.Scan(); {
		line := s.Text()
		if !strings.HasPrefix(line, " ") && strings.HasSuffix(line, ":") {
			name = strings.TrimSuffix(line, ":")
		} else if v, ok := strings.CutPrefix(strings.TrimSpace(line), "Candidate:"); ok && name != "" {
			if v = strings.TrimSpace(v); v != "(none)" {
				versions[name] = v
			}
		}
	}
	return versions
}

// choose is the first way that can be gone with the programs that are here and what the
// archive has; the error says what each lacks.
func (i *Installer) choose(r *Recipe, versions map[string]string) (*Way, error) {
	var lacks []string
	for k := range r.Ways {
		fault := i.needs(r.Ways[k])
		if fault == "" {
			fault = r.Ways[k].lacks(versions)
		}
		if fault == "" {
			return &r.Ways[k], nil
		}
		lacks = append(lacks, fault)
	}
	return nil, fmt.Errorf("this system's packages won't do: %s", strings.Join(lacks, "; "))
}

// needs says which program a way takes that isn't here; "" for none.
func (i *Installer) needs(w Way) string {
	for _, program := range w.Needs {
		if !i.has(program) {
			return "there is no " + program + " on the system's PATH"
		}
	}
	return ""
}

// lacks says what a way can't get; "" for nothing.
func (w Way) lacks(versions map[string]string) string {
	for _, p := range w.Packages {
		switch v := versions[p.Name]; {
		case v == "":
			return "there is no package " + p.Name
		case !atLeast(v, p.Min):
			return fmt.Sprintf("%s is %s, and %s or newer is needed", p.Name, upstream(v), p.Min)
		}
	}
	return ""
}

// upstream is a version of Debian's without the epoch and the revision.
func upstream(version string) string {
	if _, after, ok := strings.Cut(version, ":"); ok {
		version = after
	}
	if end := strings.IndexAny(version, "-~+"); end >= 0 {
		version = version[:end]
	}
	return version
}

// atLeast compares the numbers of two versions, as far as min has them.
func atLeast(version, minimum string) bool {
	if minimum == "" {
		return true
	}
	have := strings.Split(upstream(version), ".")
	for k, m := range strings.Split(minimum, ".") {
		want, _ := strconv.Atoi(m)
		got := 0
		if k < len(have) {
			got, _ = strconv.Atoi(have[k])
		}
		if got != want {
			return got > want
		}
	}
	return true
}
