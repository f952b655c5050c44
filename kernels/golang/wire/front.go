package wire

// Options of a Session.
type Options struct {
	// Goroot is the toolchain's, Language its version (go1.26).
	Goroot, Language string
	// Importcfg is a file that says where the archives of the standard library and of
	// package live are.
	Importcfg string
	// Dir is for the session's files. It must be there; its owner removes it.
	Dir string
	// Linker is how the toolchain's linker links; its program is LinkProgram, which runs
	// Link.
	Linker      Linker
	LinkProgram string
	// Cache is the build cache (GOCACHE) for modules. Shared, if not "", is another, whose
	// entries it begins with.
	Cache, Shared string
	// Past, if not "", is a file with the cells that a Session before this one has
	// compiled, one a line, and Number is the highest number that it has given one.
	Past   string
	Number int
}

// Past is a cell that has run, by which another Session comes to what it declares.
type Past struct {
	// Number, Name and Code are those of Compile, Done is that of Commit.
	Number, Done int
	Name, Code   string
	// Direct: it was not compiled.
	Direct bool
}

// Result is a cell that was compiled, to be loaded.
type Result struct {
	// Number is the cell's, for Commit and for the worker. 0: there is nothing to run.
	Number int
	// Plugin is the path of the shared object; its reader removes it.
	Plugin string
	// Direct is there in place of a Plugin where the cell needs none.
	Direct *Program `json:",omitempty"`
	// Lasts tells that the cell means something to those after it.
	Lasts bool
	// Notes are what was done on the way, for the user: modules that were got.
	Notes []string
}

// Completion is what can stand between two bytes of a cell's text.
type Completion struct {
	Matches, Types []string
	Start, End     int
}
