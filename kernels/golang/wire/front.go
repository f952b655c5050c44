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
}

// Result is a cell that was compiled, to be loaded.
type Result struct {
	// Number is the cell's, for Commit and for the worker. 0: there is nothing to run.
	Number int
	// Plugin is the path of the shared object; its reader removes it.
	Plugin string
	// Direct is there in place of a Plugin where the cell needs none.
	Direct *Program `json:",omitempty"`
	// Notes are what was done on the way, for the user: modules that were got.
	Notes []string
}

// Completion is what can stand between two bytes of a cell's text.
type Completion struct {
	Matches, Types []string
	Start, End     int
}
