// Package install installs languages that are not on this machine yet: what their
// kernels take, by the system's packages, or by npm or pip where those are too old.
//
// A Recipe is data: which packages, how new they must be, and what comes instead, from
// where.
// Installer runs recipes: one at a time on a machine, across processes, each at most
// once however many ask for it, with a line of progress now and then. Who waits can go
// away; the install goes on, since a package manager that is killed half-way leaves the
// system's packages broken. Programs are started by their arguments, never by a shell.
//
// Begin with New, Installer.Check and Installer.Install. Close ends what runs, and
// waits for it.
package install
