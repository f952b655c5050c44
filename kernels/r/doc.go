// Package r is what the agent knows of R: where it is, and the kernel that runs in
// it.
//
// The kernel is a handful of R files beside this one, embedded in the binary:
// launcher.R is the one that is run, cellard_kernel.R the one to read first. It
// takes the place of IRkernel's loop and executor, and stands on what IRkernel
// stands on (pbdZMQ, jsonlite, digest): IRkernel holds back what a cell prints until
// its expression is over and loses it at an interrupt, never says which value is the
// result, answers an interrupt with nothing, and starts in three times the time and
// with half as much memory again. IRkernel itself is loaded for completions and help,
// and must be installed, which brings the rest. R 4.0.1 and newer will do.
//
// Begin with Finder, which looks for an R, then Argv and Files, which say how to run
// the launcher in it; package front is what other clients than the agent need before
// it. A Finder runs the R that it asks and waits for it; nothing is left running when
// Find returns.
package r
