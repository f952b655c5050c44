// Package notebook is Jupyter's notebook, nbformat 4: one that is read, run and saved, and
// one that is made of a session.
//
// Begin with [Read] for a file, with [Outputs] for how a cell's events become what a cell of
// a notebook has put out, with [Journal] for a session.
//
// A Journal remembers a context's cells and their events: the newest within a bound, in
// memory as long as they are few and then in unlinked files. [Journal.Write] makes the
// notebook of that, a cell at a time, so that neither holds more in memory than one cell.
// Whoever makes a Journal closes it. It starts no goroutine, and is safe for concurrent use.
// What else is here is one goroutine's.
package notebook
