// Package wire has what the kernel and the front say to each other, and the mark that
// both know. It is in the agent's binary, unlike package compiler, so it is small.
package wire
