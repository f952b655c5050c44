// Package layout holds the rule that imports point one way.
package layout

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/cellard/cellard/"

// layers are the packages from the ground up. A package may import those of layers
// below its own; a path ending in /... stands for all under it too.
var layers = [][]string{
	{"protocol/api", "protocol/zmtp", "mime", "internal/environ", "internal/metrics", "internal/procfs", "internal/rawpipe"},
	{"protocol/jupyter", "internal/cgroup", "internal/drawing", "internal/logging"},
	{"protocol/jupyter/kernel"},
	{"kernels/output", "kernels/golang/wire", "kernels/golang/live/..."},
	{"kernels/golang/host", "kernels/golang/compiler"},
	{"store", "kernels/...", "client", "notebook"},
	{"execution"},
	{"supervisor"},
	{"server"},
	{"cmd/...", "demo", "bench", "examples/..."},
}

// testOnly are packages that nothing but tests and benchmarks imports.
var testOnly = []string{"protocol/jupyter/kernel/kerneltest", "internal/cases", "internal/endtoend", "internal/fakefirecracker", "internal/fakekernel", "internal/fixture", "internal/gocache",
	"internal/guest", "internal/guest/init",
	"internal/layout", "internal/openapi", "internal/pythons", "internal/testagent"}

// clientOnly is all that the package which a host's daemon imports may pull in.
var clientOnly = []string{"protocol/api", "github.com/mdlayher/vsock", "github.com/mdlayher/socket", "golang.org/x/"}

type pkg struct {
	ImportPath string
	Imports    []string
	Deps       []string
	Standard   bool
}

func TestImportsPointOneWay(t *testing.T) {
	all := list(t)
	for _, p := range all {
		name, own := strings.CutPrefix(p.ImportPath, module)
		if !own {
			continue
		}
		for _, fault := range faults(name, p.Imports) {
			t.Error(fault)
		}
		for _, d := range p.Deps {
			if name == "cmd/cellard" && d == "testing" {
				t.Errorf("%s has the package testing in it", name)
			}
			if name == "client" && !clientMay(d, all) {
				t.Errorf("client pulls in %s: a host's daemon would have it too", d)
			}
		}
	}
}

// faults tells what is wrong with the imports of a package of this module.
func faults(name string, imports []string) (out []string) {
	mine := layer(name)
	if mine < 0 && !slices.Contains(testOnly, name) {
		return []string{name + " is in no layer: give it one here, and in docs/architecture.md"}
	}
	for _, i := range imports {
		dep, own := strings.CutPrefix(i, module)
		if !own {
			continue
		}
		// A family of packages, such as a kernel's and the catalogue's, is one layer.
		family := strings.HasPrefix(dep, name+"/")
		switch theirs := layer(dep); {
		case slices.Contains(testOnly, dep) && !slices.Contains(testOnly, name) && name != "bench":
			out = append(out, name+" imports "+dep+", which is for tests")
		case mine >= 0 && theirs >= mine && !family:
			out = append(out, name+" imports "+dep+", which is not below it")
		case dep == "client" && !strings.HasPrefix(name, "cmd/") && !strings.HasPrefix(name, "examples/") && name != "demo" && name != "bench":
			out = append(out, name+" imports client, which is for hosts")
		}
	}
	return out
}

func layer(name string) int {
	return slices.IndexFunc(layers, func(l []string) bool {
		return slices.ContainsFunc(l, func(e string) bool {
			base, under := strings.CutSuffix(e, "/...")
			return name == base || under && strings.HasPrefix(name, base+"/")
		})
	})
}

func clientMay(dep string, all map[string]pkg) bool {
	return all[dep].Standard || slices.ContainsFunc(clientOnly, func(ok string) bool {
		return dep == module+ok || dep == ok || strings.HasSuffix(ok, "/") && strings.HasPrefix(dep, ok)
	})
}

// The rule itself is tried on imports that break it.
func TestRuleFindsFaults(t *testing.T) {
	for _, c := range []struct {
		name, dep string
		fault     bool
	}{
		{"cmd/cellard", "server", false},
		{"server", "protocol/api", false},
		{"execution", "store", false},
		{"kernels", "kernels/python", false},
		{"cmd/cellard", "client", false},
		{"store", "execution", true},
		{"protocol/zmtp", "protocol/jupyter", true},
		{"mime", "protocol/api", true},
		{"execution", "supervisor", true},
		{"kernels/python", "kernels", true},
		{"kernels", "store", true},
		{"server", "client", true},
		{"server", "internal/cases", true},
		{"bench", "internal/gocache", false},
		{"unheard", "mime", true},
	} {
		if got := faults(c.name, []string{"fmt", module + c.dep}); (len(got) > 0) != c.fault {
			t.Errorf("%s imports %s: %q", c.name, c.dep, got)
		}
	}
}

// list returns every package of the module and what they need, without tests.
func list(t *testing.T) map[string]pkg {
	t.Helper()
	c := exec.Command("go", "list", "-e", "-deps", "-json=ImportPath,Imports,Deps,Standard", module+"...")
	var stderr strings.Builder
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	all := map[string]pkg{}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all[p.ImportPath] = p
	}
	if _, ok := all[module+"protocol/api"]; !ok {
		t.Fatalf("go list told of %d packages, and not of protocol/api", len(all))
	}
	return all
}
