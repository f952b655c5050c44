// Package kernel is the kernel's side of the Jupyter messaging protocol, for kernels
// of our own: they bring a Language, and Serve does all that is the same for each of
// them.
package kernel
