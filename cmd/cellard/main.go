// Command cellard is the agent that runs cells in long-lived kernels for a host: see
// cellard --help, and docs/. Each subcommand is a file; what they do is in the
// packages that they call.
package main

import (
	"fmt"
	"io"
	"os"
)

// command is a subcommand. run returns the exit code: 0, 1 for what went wrong, 2
// for what was asked wrongly, and more where its help says so.
type command struct {
	name  string
	about string // empty hides it from the help
	run   func(args []string) int
}

func commands() []command {
	return []command{
		{"serve", "serve the host API", serve},
		{"run", "run cells and show what they put out", runCell},
		{"repl", "talk with a kernel", runRepl},
		{"doctor", "tell what is ready, what is missing, how to mend it", doctor},
		{"contexts", "list contexts, make, restart or delete them, look into them", contexts},
		{"kernel", "run a Jupyter kernel of cellard's own", runKernel},
		{"languages", "list the languages, or install some", languages},
		{"version", "print the version", printVersion},
		{"keeper", "", keep},
	}
}

func main() { os.Exit(dispatch(os.Args[1:])) }

func dispatch(args []string) int {
	if len(args) == 0 {
		usage(os.Stderr)
		return 2
	}
	switch args[0] {
	case "-h", "-help", "--help", "help":
		if len(args) > 1 && args[0] == "help" {
			return dispatch([]string{args[1], "--help"})
		}
		usage(os.Stdout)
		return 0
	case "-version", "--version":
		return printVersion(nil)
	}
	for _, c := range commands() {
		if c.name == args[0] {
			return c.run(args[1:])
		}
	}
	fmt.Fprintf(os.Stderr, "cellard: there is no command %q\n\n", args[0])
	usage(os.Stderr)
	return 2
}

func usage(w io.Writer) {
	fmt.Fprint(w, "cellard runs cells in long-lived kernels, for a host outside the sandbox.\n\nUsage: cellard COMMAND [flags]\n\n")
	for _, c := range commands() {
		if c.about != "" {
			fmt.Fprintf(w, "  %-10s %s\n", c.name, c.about)
		}
	}
	fmt.Fprint(w, "\ncellard COMMAND --help tells a command's flags. Each exits with 0 where all went well, 2 where\n"+
		"the command or a setting is wrong, 3 where an agent refused, could not start or be reached;\n"+
		"with what else, its help tells.\n")
}
