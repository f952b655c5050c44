// Package golang is the Go kernel: cells are compiled by the image's own toolchain, and
// their values live.
//
// Three processes run it. The kernel (this package, in the agent's binary) speaks the
// protocol. The front (package front, with package compiler in it) makes a plugin of
// each cell. The worker (package worker, with package live) loads the plugins and runs
// them; all that cells make lives in it. Front and worker are built from the sources
// that are embedded here, by the toolchain of the image, since a plugin and its host
// must be of one toolchain, and since go/types reads only its own toolchain's archives.
// What they need is built once for a toolchain and kept in a workspace: see Warm. A front
// that dies is replaced: see compilation.
//
// What a cell writes to its stdout and stderr comes through two pipes, what it shows
// through a third, as events. Before an event is handed on, the pipes are emptied, and
// before the cell writes to another of the three it waits until the last was taken
// (settled in package host): so all keep their order. Past fmt and log, a cell's own
// writes are not seen, so each display waits.
//
// Begin with NewFinder and New. Who made a Kernel closes it: that ends the front and the
// worker, and removes the files of the session.
package golang
