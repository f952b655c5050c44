package compiler

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/cellard/cellard/kernels/golang/wire"
)

// linker is a wire.Linker that links.
type linker wire.Linker

// Link does what the toolchain's linker asks its external linker for, and gives the exit
// code. It is run as a program of its own.
func Link(args []string) int {
	var l linker
	if err := json.Unmarshal([]byte(os.Getenv(wire.LinkerVariable)), &l); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for _, a := range args {
		// The toolchain tries options on a small C file. It does without those it can't have.
		if strings.HasSuffix(a, "trivial.c") {
			return 1
		}
	}
	if direct, ok := l.translate(args); ok {
		cmd := exec.Command(l.Program, direct...)
		cmd.Stderr = os.Stderr
		if cmd.Run() == nil {
			return 0
		}
	}
	driver, err := exec.LookPath(l.Driver)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	err = syscall.Exec(driver, append([]string{driver}, args...), os.Environ())
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// translate makes a linker's arguments of a C compiler's; false where one of them is
// not known.
func (l linker) translate(args []string) (out []string, ok bool) {
	if l.Program == "" {
		return nil, false
	}
	out = append(out, l.Before...)
	shared := false
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "-shared":
			shared = true
			out = append(out, a)
		case a == "-m64", a == "-O2", a == "-g", a == "-pthread", a == "-lpthread", strings.HasPrefix(a, "-fuse-ld"), strings.HasPrefix(a, "-march"):
		case a == "-s":
			out = append(out, a)
		case a == "-rdynamic":
			out = append(out, "--export-dynamic")
		case a == "-o" && i+1 < len(args):
			out = append(out, a, args[i+1])
			i++
		case strings.HasPrefix(a, "-Wl,"):
			if !strings.Contains(a, "compress-debug") {
				out = append(out, strings.Split(a[len("-Wl,"):], ",")...)
			}
		case strings.HasPrefix(a, "-l"), strings.HasPrefix(a, "-L"), strings.HasSuffix(a, ".o"), strings.HasSuffix(a, ".a"):
			out = append(out, a)
		default:
			return nil, false
		}
	}
	return append(out, l.After...), shared
}
