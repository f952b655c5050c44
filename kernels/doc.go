// Package kernels is the catalogue: which languages there are on this machine,
// and how the kernel of each is started.
//
// A language is run by a kernel of the agent's choice where it has one (Python:
// package kernels/python), else by a kernelspec that is installed for it. Any
// installed kernelspec can be named itself, and is then run as it says.
//
// Begin with New and Catalogue.Launch, whose Launch is all that the supervisor
// needs to start a kernel; Discover reads kernelspecs where SearchPath says that
// Jupyter keeps them. Nothing here owns a process: what is run to ask an
// interpreter has ended when the call returns.
package kernels
