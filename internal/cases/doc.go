// Package cases runs the cases of testdata/cases against a running agent: cells
// sent over HTTP, and what must come back. testdata/cases/README.md tells the
// format. Only tests use it.
//
// Begin with Load and Agent.Run. An Agent keeps no connection open between its
// calls, and starts nothing that outlives them.
package cases
