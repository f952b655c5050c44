// Command bench measures the agent, each figure beside its peer in the same run:
//
//	bench [-agent BINARY] [-python INTERPRETER] [FIGURE ...]
//
// What is compared is measured in turns, so that a busy machine is busy for both,
// and medians are told. Without figures all are measured; they are the list in
// figures.go, which is where to begin. agent.go starts agents, bare.go talks to a
// kernel without one, peer.go runs the Python peers in peers/.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// env is what the figures are measured with.
type env struct {
	ctx    context.Context
	binary string // the agent's
	python string
	rounds int
	dir    string // for sockets and the like; removed at the end
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == floorCommand {
		serveFloor(os.Args[2])
		return
	}
	binary := flag.String("agent", "bin/cellard", "the agent's `binary`")
	python := flag.String("python", "python3", "the `interpreter` with ipykernel, jupyter_client and pyzmq")
	rounds := flag.Int("rounds", 5, "how many `turns` each side has")
	flag.Usage = func() {
		fmt.Fprintf(os.Stderr, "usage: bench [flags] [FIGURE ...]\n\nFigures:\n")
		for _, f := range figures {
			fmt.Fprintf(os.Stderr, "  %-8s %s\n", f.name, f.about)
		}
		fmt.Fprintln(os.Stderr, "\nFlags:")
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	e := &env{ctx: ctx, binary: *binary, python: *python, rounds: max(1, *rounds)}
	if err := e.run(flag.Args()); err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

func (e *env) run(names []string) (err error) {
	for _, n := range names {
		if !slices.ContainsFunc(figures, func(f figure) bool { return f.name == n }) {
			return fmt.Errorf("there is no figure %q; bench -h lists them", n)
		}
	}
	if e.binary, err = filepath.Abs(e.binary); err != nil {
		return err
	}
	if strings.Contains(e.python, "/") {
		if e.python, err = filepath.Abs(e.python); err != nil {
			return err
		}
	}
	if e.dir, err = os.MkdirTemp("", "cellard-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(e.dir)
	// Cells of an agent that root runs are another user's, who has to get here.
	if err := os.Chmod(e.dir, 0o755); err != nil {
		return err
	}
	fmt.Printf("%s, %s/%s, %d CPUs, medians of %d rounds\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), e.rounds)
	for _, f := range figures {
		if len(names) > 0 && !slices.Contains(names, f.name) {
			continue
		}
		begin := time.Now()
		rows, err := f.measure(e)
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		fmt.Printf("\n%s: %s\n", f.name, f.about)
		for _, r := range rows {
			fmt.Println(strings.TrimRight(fmt.Sprintf("  %-42s %12s  %s", r.what, r.value, r.note), " "))
		}
		fmt.Fprintf(os.Stderr, "  (%.0f s)\n", time.Since(begin).Seconds())
	}
	return nil
}

// row is a line of a figure's table. note has the ratio, and what is aimed at.
type row struct{ what, value, note string }

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	if len(v) == 0 {
		return 0
	}
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

func ms(v float64) string { return fmt.Sprintf("%.2f ms", v) }

func mib(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }

func times(a, b float64) string { return fmt.Sprintf("%.2f", a/b) }
