// Package store keeps what is too large for an Execution: results as refs and
// streams as overflow, in files that the next cell can open too.
//
// Begin with [Open]. [Store.Put] streams a value into a file and returns its
// ref; [Store.NewOverflow] takes a stream as it comes; [Store.Open] reads either
// back by the names that the host API shows. A file lies at
// <dir>/<context>/out/<generation>-<hash>.<ending>, read-only, and lives until
// its context is dropped or it is the oldest when room is needed.
//
// The Store is safe for concurrent use and starts no goroutine. Who opens it
// closes it; who gets an [Overflow] finishes or discards it, and a [File] or a
// spool file ([Store.Temp]) is its getter's to close. One process at a time has a
// directory: it holds a lock on it. A file comes under its name whole or not at
// all, so an agent may be killed at any moment; what it leaves behind, the next
// Open removes or counts.
//
// The directory is within the cells' reach. Every component of a path below the
// workspace is opened by itself, relative to the one before and without
// following links (os.Root would follow those that stay inside); what a cell put
// in the way of a context's directory is removed, what is in the way of the store's own
// is moved aside, a directory that it removed is
// made again, and a file is served only while its content has the hash that its
// ref names. Cells that run as another user than the agent can't change it at
// all; against cells of its own user the hash is a check, not a boundary: see
// [Store.Open] for what it can miss.
package store
