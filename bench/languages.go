package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/cellard/cellard/internal/gocache"
	"github.com/cellard/cellard/internal/procfs"
	"github.com/cellard/cellard/kernels/java"
	"github.com/cellard/cellard/protocol/api"
)

// spoken are the languages beside Python. A trivial cell of each is what is run; aims are
// for the start of a kernel up to its first answer, such a cell, and the memory.
var (
	bashTrivial       = trivial{"bash", ":", "aims: 10 ms, 3 ms, 5.7 MiB"}
	javascriptTrivial = trivial{"javascript", "1", "aims: 300 ms, 1 ms, 57 MiB"}
	javaTrivial       = trivial{"java", "1", "aims: 1 s, 30 ms, 105 MiB"}

	spoken = []trivial{
		bashTrivial, javascriptTrivial, {"typescript", "1", javascriptTrivial.aims}, javaTrivial,
		{"r", "1", ""}, {"go", "1", "aims: 400 ms a cell"},
	}
)

type trivial struct{ language, cell, aims string }

// languagesFigure compares the kernel of each language with the one that others would
// use for it, both behind the same agent: the kernelspec peer-LANGUAGE of
// scripts/setup-peers.sh, where there is one.
func languagesFigure(e *env) (rows []row, err error) {
	// What Go's kernels need is built in the tree, and not in the homes of who runs them.
	if err := gocache.Setup(); err != nil {
		return nil, err
	}
	if os.Getenv(nodesVariable) == "" {
		return nil, errors.New(nodesVariable + " names no Node: make bench sets it")
	}
	a, err := e.startAgent()
	if err != nil {
		return nil, err
	}
	defer func() {
		if log := a.stop(); err != nil {
			err = fmt.Errorf("%w\n%s", err, log)
		}
	}()
	for _, s := range spoken {
		names := []string{s.language}
		other := "peer-" + s.language
		if _, err := os.Stat(filepath.Join(os.Getenv("JUPYTER_PATH"), "kernels", other)); err == nil {
			names = append(names, other)
		}
		costs := make([]cost, len(names))
		for range e.rounds {
			for i, name := range names {
				err := costs[i].measure(e, a, name, s.cell)
				if err == nil && i == 0 {
					err = costs[i].measureAlone(e, name, s.cell)
				}
				if err != nil {
					return nil, fmt.Errorf("%s: %w", name, err)
				}
			}
		}
		var peer *cost
		if len(costs) > 1 {
			peer = &costs[1]
		}
		rows = append(rows, costs[0].row(s.language, costs[0].note(peer, s.aims)))
		if peer != nil {
			rows = append(rows, peer.row(other, peer.kernel))
		}
	}
	for _, other := range []func(*env) (row, error){oldestNodeRow, preparedJavaRow} {
		r, err := other(e)
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// nodesVariable names the Nodes that the tests run on, the oldest first.
const nodesVariable = "CELLARD_TEST_NODES"

// oldestNodeRow measures JavaScript on the oldest of them.
func oldestNodeRow(e *env) (row, error) {
	oldest, _, _ := strings.Cut(os.Getenv(nodesVariable), ":")
	return rowWith(e, javascriptTrivial, "oldest Node", "CELLARD_NODE="+oldest)
}

// rowWith measures a language with something added to the agent's environment.
func rowWith(e *env, t trivial, how, variable string) (row, error) {
	a, err := e.startAgent(variable)
	if err != nil {
		return row{}, err
	}
	defer a.stop()
	var c cost
	for range e.rounds {
		if err := c.measure(e, a, t.language, t.cell); err != nil {
			return row{}, fmt.Errorf("%s, %s: %w", t.language, how, err)
		}
	}
	return c.row(t.language+", "+how, c.note(nil, t.aims)), nil
}

// preparedJavaRow measures Java with the archive that cellard languages install makes.
func preparedJavaRow(e *env) (row, error) {
	cache := "XDG_CACHE_HOME=" + filepath.Join(e.dir, "cache")
	j, err := java.Find(os.Environ())
	if err == nil {
		err = java.Prepare(e.ctx, j, java.CacheDir([]string{cache}), os.Environ())
	}
	if err != nil {
		return row{}, err
	}
	return rowWith(e, javaTrivial, "prepared", cache)
}

// row is the medians, and a note.
func (c *cost) row(name, note string) row {
	return row{name + ": start, cell, memory", "", fmt.Sprintf("%8s %10s %10s  %s",
		ms(median(c.start)), ms(median(c.cell)), mib(int64(median(c.memory))), note)}
}

// note is what is told of a kernel that is not a peer, beside its peer if there is one.
func (c *cost) note(peer *cost, aims string) string {
	var parts []string
	if len(c.alone) > 0 {
		parts = append(parts, "without the agent a cell "+ms(median(c.alone)))
	}
	if below := median(c.below); below > 0 {
		parts = append(parts, "the interpreter "+mib(int64(below)))
	}
	if peer != nil {
		parts = append(parts, fmt.Sprintf("of the peer's: start %s, cell %s, memory %s", times(median(c.start), median(peer.start)),
			times(median(c.cell), median(peer.cell)), times(median(c.memory), median(peer.memory))))
	}
	if aims != "" {
		parts = append(parts, aims)
	}
	return strings.Join(parts, "; ")
}

// cost is what a kernel takes: to start and run its first cell, for a further cell, for one
// without an agent in between; in memory at rest, and of that what the processes take that it
// has started, the interpreter of a kernel of our own.
type cost struct {
	start, cell, alone, memory, below []float64 // milliseconds, bytes
	kernel                            string
}

// firstCells are run before memory is read and cells are timed, for timedFor: code that is
// compiled as it runs has been by then.
const (
	firstCells = 20
	timedFor   = time.Second
)

func several(n int, run func() error) (err error) {
	for ; n > 0 && err == nil; n-- {
		err = run()
	}
	return err
}

// timed is the median time of a cell in milliseconds.
func timed(run func() error) (float64, error) {
	var took []float64
	for begin := time.Now(); time.Since(begin) < timedFor; {
		at := time.Now()
		if err := run(); err != nil {
			return 0, err
		}
		took = append(took, float64(time.Since(at))/1e6)
	}
	return median(took), nil
}

func (c *cost) measure(e *env, a *agent, language, code string) error {
	begin := time.Now()
	req := api.RunRequest{Code: code, Context: "bench-" + language}
	res, err := a.post(e.ctx, "/v1/interpreter/contexts", map[string]string{"id": req.Context, "language": language})
	if err != nil {
		return err
	}
	var made api.Context
	err = json.NewDecoder(res.Body).Decode(&made)
	res.Body.Close()
	if err != nil {
		return err
	}
	run := func() error { return runTrivial(e, a, req) }
	if err := run(); err != nil {
		return err
	}
	c.start = append(c.start, float64(time.Since(begin))/1e6)
	c.kernel = made.Kernel.Name
	if err := several(firstCells, run); err != nil {
		return err
	}
	below := 0.0
	for _, s := range procfs.Family(made.ProcessID, "") {
		below += float64(processMemory(s.PID))
	}
	c.below = append(c.below, below)
	c.memory = append(c.memory, below+float64(processMemory(made.ProcessID)))
	took, err := timed(run)
	if err != nil {
		return err
	}
	c.cell = append(c.cell, took)
	return a.remove(e, req.Context)
}

// measureAlone measures cells of the kernel with our own client alone.
func (c *cost) measureAlone(e *env, language, code string) error {
	b, err := e.startBare(language, code)
	if err != nil {
		return err
	}
	defer b.close()
	run := func() error {
		_, err := b.run(code)
		return err
	}
	if err := several(firstCells, run); err != nil {
		return err
	}
	took, err := timed(run)
	c.alone = append(c.alone, took)
	return err
}

// runTrivial runs a cell that must be ok.
func runTrivial(e *env, a *agent, req api.RunRequest) error {
	res, err := a.post(e.ctx, "/v1/interpreter:run", req)
	if err != nil {
		return err
	}
	var x api.Execution
	err = json.NewDecoder(res.Body).Decode(&x)
	res.Body.Close()
	if err == nil && x.Status != api.StatusOK {
		err = fmt.Errorf("a cell ended as %s: %+v", x.Status, x.Error)
	}
	return err
}

// remove deletes a context.
func (a *agent) remove(e *env, id string) error {
	req, err := http.NewRequestWithContext(e.ctx, "DELETE", "http://agent/v1/interpreter/contexts/"+id, nil)
	if err != nil {
		return err
	}
	res, err := a.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("DELETE: %s", res.Status)
	}
	return err
}

// processMemory is the memory of a process, where each page counts in the parts that share it
// (proc(5), smaps_rollup, Pss).
func processMemory(pid int) int64 {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/smaps_rollup")
	if err != nil {
		return 0 // it has ended
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "Pss:"); ok {
			n, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return n << 10
		}
	}
	return 0
}
