package host

import (
	"context"
	"runtime/pprof"
	"strconv"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/cellard/cellard/kernels/golang/live"
)

// Cell is a cell that runs or has run.
type Cell struct {
	Number int
	// AllowStdin tells whether the cell may ask for input.
	AllowStdin bool

	program string // the cell's name, if it is evaluated; else ""
	line    int    // of program, where it is

	label   unsafe.Pointer
	context context.Context // holds the label

	stopped atomic.Bool  // its goroutines are to end
	over    atomic.Bool  // it was answered
	resting atomic.Bool  // stopped, over, and without a known goroutine
	alive   atomic.Int64 // goroutines that are known

	mu      sync.Mutex
	exit    *int
	failure *Failure
	ended   chan struct{} // closed when the cell ends before its run function does
}

// Failure is the panic that ended a cell.
type Failure struct {
	Name, Value string
	Traceback   []string
}

// keepCells is for how many cells it is known which goroutines are theirs.
const keepCells = 4096

var (
	current atomic.Pointer[Cell]

	cellsMu sync.RWMutex
	cells   = map[unsafe.Pointer]*Cell{}
	recent  []*Cell // those in cells, the oldest first
)

//go:linkname runtime_getProfLabel runtime/pprof.runtime_getProfLabel
func runtime_getProfLabel() unsafe.Pointer

// ofGoroutine is the cell that the calling goroutine belongs to, nil for none.
func ofGoroutine() *Cell {
	p := runtime_getProfLabel()
	if p == nil {
		return nil
	}
	if c := current.Load(); c != nil && c.label == p {
		return c
	}
	cellsMu.RLock()
	c := cells[p]
	cellsMu.RUnlock()
	return c
}

// NewCell makes the cell that Run runs.
func NewCell(number int, allowStdin bool) *Cell {
	c := &Cell{Number: number, AllowStdin: allowStdin, ended: make(chan struct{})}
	c.context = pprof.WithLabels(context.Background(), pprof.Labels("cell", strconv.Itoa(number)))
	return c
}

// adopt makes the calling goroutine one of the cell's.
func (c *Cell) adopt() {
	pprof.SetGoroutineLabels(c.context)
	if c.label == nil {
		c.label = runtime_getProfLabel()
		cellsMu.Lock()
		cells[c.label] = c
		recent = append(recent, c)
		if len(recent) > keepCells {
			delete(cells, recent[0].label)
			recent = recent[1:]
		}
		cellsMu.Unlock()
	}
	c.alive.Add(1)
}

// leave ends what adopt or Began began.
func (c *Cell) leave() {
	if c.alive.Add(-1) == 0 && c.over.Load() {
		c.rest()
	}
}

// rest ends the search for a stopped cell's goroutines: none that is known is left. The
// cell stays in the books, for what a library does in its name.
func (c *Cell) rest() {
	if c.stopped.Load() && c.resting.CompareAndSwap(false, true) {
		live.Stopping.Add(-1)
	}
}

// Stop makes the cell's goroutines end where they next look.
func (c *Cell) Stop() {
	if c.stopped.CompareAndSwap(false, true) {
		live.Stopping.Add(1)
	}
}

// end tells the runner that the cell is over though its run function isn't.
func (c *Cell) end(set func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.ended:
	default:
		set()
		close(c.ended)
	}
}
