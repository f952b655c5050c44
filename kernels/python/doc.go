// Package python is what the agent knows of Python: where the interpreter is,
// and the kernel that runs in it.
//
// The kernel is ipykernel, 6.17 or newer, started by a launcher of ours that
// mends what a cell would trip over (lost output, interrupts that are swallowed,
// a matplotlib that shows nothing). The launcher is a handful of Python modules
// beside this file, embedded in the binary; launcher.py is the one that is run,
// cellard_kernel.py the one to read first. They run on Python 3.8 and newer, and
// import nothing but ipykernel and what it depends on.
//
// Begin with Finder, which looks for an interpreter, then Argv and Files, which
// say how to run the launcher in it. A Finder runs the interpreters that it asks
// and waits for them; nothing is left running when Find returns.
package python
