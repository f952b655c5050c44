// Package endtoend has only tests: the binary as a host sees it, with real kernels.
// What it takes to start an agent, ask it, and see that nothing of it is left is in
// agent_test.go; each other file is one part of the contract.
//
// An agent belongs to the test that started it, and is stopped at that test's end: it
// must then end well, and leave no process and no file in its runtime directory.
package endtoend
