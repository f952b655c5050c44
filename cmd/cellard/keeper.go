package main

import (
	"fmt"
	"os"

	"github.com/cellard/cellard/supervisor"
)

// keep is the process that outlives a killed agent, and ends what its kernels had
// started. The agent starts it: cellard keeper MARK DIR GROUPS, with a pipe as stdin.
func keep(args []string) int {
	if len(args) != 3 {
		fmt.Fprintln(os.Stderr, "cellard keeper: the agent starts this by itself")
		return 2
	}
	supervisor.Keeper(os.Stdin, args[0], args[1], args[2])
	return 0
}
