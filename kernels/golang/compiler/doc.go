// Package compiler makes a package of each cell: it splits the cell's text, checks it
// with the names of the cells before it, rewrites it to ordinary Go, compiles it and
// links it into a plugin that a worker loads.
//
// Begin with New and Session.Compile. A Session holds what is alive: the objects of
// earlier cells by name, the imports, and the packages' archives. It starts the
// toolchain's compiler and linker, and waits for them; nothing is left running when a
// call returns.
//
// The package is built with the toolchain of the image, whatever it is from Go 1.22 on,
// so that go/types knows the language and the export data of just that toolchain. It
// uses nothing but the standard library.
//
// How a cell is rewritten:
//   - A variable that a cell declares at its top becomes a variable of the cell's
//     package, and its declaration an assignment at its place in the function run.
//   - All cells are checked as packages of the one path main, so that the fields and
//     methods of earlier cells are theirs to use whatever their case. What is emitted
//     are packages of different paths: a lower-case name at package level, of a field or
//     of a method gets a letter before it that no user writes, and so is exported.
//   - Names of earlier cells become qualified ones of their package.
//   - Loops, function literals and recursive functions look whether their cell is to
//     stop; goroutines catch their panics.
//
// The edits are made in the text, so that lines stay the user's.
//
// Two kinds of cells are special. One that only looks at what is there, sets it and calls
// it becomes a wire.Program, which the worker evaluates (direct, order). One that has a
// method of an earlier cell's type gets the declarations before it that the type needs
// to be declared again (again).
package compiler
