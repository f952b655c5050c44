package execution

import (
	"cmp"
	"os"
	"sync"
	"time"

	"github.com/cellard/cellard/mime"
	"github.com/cellard/cellard/protocol/api"
	"github.com/cellard/cellard/store"
)

// Limits bound what one execution holds. A zero field stands for its default.
type Limits struct {
	Inline        int64 // bytes of JSON of one value kept in data; 48 KiB
	InlineTable   int64 // the same for a table; 256 KiB
	InlineResults int64 // the same for all results together; 4 MiB
	Results       int   // how many values, of all results together, are kept, a ref counting as three; 30,000
	Stream        int64 // bytes of stdout, and of stderr, kept inline; 1 MiB
	Traceback     int   // bytes of a traceback; 64 KiB
	LogMemory     int64 // bytes of the event log in memory; 2 MiB
	LogDisk       int64 // bytes of the event log on disk; 64 MiB
}

func (l Limits) withDefaults() Limits {
	l.Inline = cmp.Or(l.Inline, 48<<10)
	l.InlineTable = cmp.Or(l.InlineTable, 256<<10)
	l.InlineResults = cmp.Or(l.InlineResults, 4<<20)
	l.Results = cmp.Or(l.Results, 30_000)
	l.Stream = cmp.Or(l.Stream, 1<<20)
	l.Traceback = cmp.Or(l.Traceback, 64<<10)
	l.LogMemory = cmp.Or(l.LogMemory, 2<<20)
	l.LogDisk = cmp.Or(l.LogDisk, 64<<20)
	return l
}

// Options say what an Execution is of.
type Options struct {
	ID, ContextID, Language string
	RequestID               string // of the request that it came by
	Limits                  Limits
	Store                   *store.Store
	// Stdin holds the answers for a cell that asks.
	Stdin *api.Stdin
	// InterruptOnDisconnect calls Abandoned once no reader has been there for Grace
	// (2 s when 0).
	InterruptOnDisconnect bool
	Grace                 time.Duration
	Abandoned             func(*Execution)
	// Wrote, if set, is told how many bytes came on a stream (Stdout, Stderr), before they
	// are folded; Ending what the execution came to, without what it put out, or how it
	// was refused, just before its readers are. Both are called under the execution's lock,
	// so they may call nothing of it.
	Wrote  func(stream, bytes int)
	Ending func(x api.Execution, ran bool, refusal *api.Error)
}

// Execution is one cell's life. See the package's doc.
type Execution struct {
	o   Options
	lim Limits
	log *eventLog

	mu      sync.Mutex
	out     api.Execution // all but the streams and results, which are below
	streams [2]*stream
	results []*result
	inline  int64 // bytes of results in data
	about   int64 // bytes of their metadata
	values  int   // in data, refs and metadata of results
	pending pending
	clear   bool // clear_output(wait=true) came, and no output since
	began   time.Time
	created time.Time
	ended   time.Time
	failure *api.Error
	closed  bool
	done    chan struct{}

	readers int
	keep    bool
	grace   *time.Timer
	answers []string
	asking  bool
}

// New makes an Execution that waits to be run. The caller closes it.
func New(o Options) *Execution {
	e := &Execution{o: o, lim: o.Limits.withDefaults(), created: time.Now(), done: make(chan struct{})}
	temp := func() (*os.File, error) { return o.Store.Temp() }
	e.log = newEventLog(e.lim.LogMemory, e.lim.LogDisk, temp)
	for i, name := range []string{"stdout", "stderr"} {
		e.streams[i] = &stream{name: name, text: mime.NewHeadTail(int(e.lim.Stream))}
	}
	if o.Stdin != nil {
		e.answers = append(e.answers, o.Stdin.Answers...)
	}
	e.out = api.Execution{ID: o.ID, ContextID: o.ContextID, Language: o.Language,
		Status: api.StatusRunning, State: api.StateKept}
	return e
}

// ID is the execution's id.
func (e *Execution) ID() string { return e.o.ID }

// RequestID is the id of the request that it came by.
func (e *Execution) RequestID() string { return e.o.RequestID }

// ContextID is the id of the context that it runs in.
func (e *Execution) ContextID() string { return e.o.ContextID }

// Begin tells which kernel runs the cell: its generation, whether it was started
// for this cell, and, where the kernel before it had died while idle, how.
// It logs the start event.
func (e *Execution) Begin(generation, count int, started bool, lost *api.Lost) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.out.Generation, e.out.ContextStarted, e.out.ExecutionCount = generation, started, count
	if lost != nil {
		e.out.State, e.out.Lost = api.StateLost, lost
	}
	e.began = time.Now()
	e.out.QueuedMs = e.began.Sub(e.created).Milliseconds()
	e.log.append(api.Event{K: api.KindStart, ID: e.o.ID, N: count}, false)
}

// Busy marks the moment from which the duration counts: when the kernel was busy.
func (e *Execution) Busy(at time.Time) {
	e.mu.Lock()
	e.began = at
	e.mu.Unlock()
	e.Time(func(t *api.Timing) { t.Busy = &at })
}

// Time notes when the kernel said something of the cell.
func (e *Execution) Time(note func(*api.Timing)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := api.Timing{} // who has the old one may be reading it
	if e.out.Timing != nil {
		t = *e.out.Timing
	}
	note(&t)
	e.out.Timing = &t
}

// Count sets the kernel's own execution count, once it has told it.
func (e *Execution) Count(n int) {
	e.mu.Lock()
	e.out.ExecutionCount = n
	e.mu.Unlock()
}

// Progress logs what is going on before the cell can run.
func (e *Execution) Progress(text string) {
	e.log.append(api.Event{K: api.KindProgress, Text: text}, false)
}

// At tells the context's generation of a cell that never ran.
func (e *Execution) At(generation int) {
	e.mu.Lock()
	e.out.Generation = generation
	e.mu.Unlock()
}

// LostBytes counts what is known to have come and could not be kept.
func (e *Execution) LostBytes(n int64) {
	e.mu.Lock()
	e.out.LostBytes += n
	e.mu.Unlock()
}

// Ending is what an execution came to.
type Ending struct {
	Status api.Status
	// State is the state of the variables; empty leaves what Begin said.
	State api.State
	Lost  *api.Lost
	// Error is set where the cell's own error, if it raised one, is to be replaced.
	Error *api.CellError
	// Incomplete marks an execution of which outputs may be missing: the kernel
	// never sent one of its reply and its idle.
	Incomplete bool
	LostBytes  int64
	Usage      *api.Usage
	// NeverRan is set for a cell that was taken out of the queue.
	NeverRan bool
}

// End is the end of an execution: the terminal events, exactly once. Later
// calls do nothing.
func (e *Execution) End(end Ending) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.ended.IsZero() {
		return
	}
	e.flush()
	if end.Error != nil {
		e.setError(end.Error)
	}
	e.finishStreams()
	e.ended = time.Now()
	e.out.Status, e.out.Incomplete = end.Status, end.Incomplete
	e.out.LostBytes += end.LostBytes
	e.out.Usage = end.Usage
	if end.State != "" {
		e.out.State = end.State
	}
	if end.Lost != nil {
		e.out.Lost = end.Lost
	}
	if e.out.Status == api.StatusTimeout && e.out.State == api.StateLost {
		e.out.Status = api.StatusLost // a timeout never comes with lost state
	}
	if end.NeverRan {
		e.out.QueuedMs = e.ended.Sub(e.created).Milliseconds()
	} else {
		e.out.DurationMs = e.ended.Sub(e.began).Milliseconds()
	}
	if e.o.Ending != nil {
		e.o.Ending(e.out, !end.NeverRan, nil)
	}
	e.log.append(api.Event{K: api.KindEnd, ID: e.o.ID, Status: e.out.Status, Ms: e.out.DurationMs}, false)
	x := e.snapshot()
	e.log.append(api.Event{K: api.KindExecution, Execution: &x}, true)
	e.finish()
}

// Fail is the end of an execution whose code never ran, told as a refusal.
func (e *Execution) Fail(err *api.Error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.ended.IsZero() {
		return
	}
	e.flush()
	e.ended, e.failure = time.Now(), err
	if e.o.Ending != nil {
		e.o.Ending(e.out, false, err)
	}
	e.log.append(api.Event{K: api.KindFailure, Failure: err}, true)
	e.finish()
}

func (e *Execution) finish() {
	if e.grace != nil {
		e.grace.Stop()
	}
	close(e.done)
}

// Done is closed at the end.
func (e *Execution) Done() <-chan struct{} { return e.done }

// Snapshot is the Execution as it is now, or the refusal that it ended with, or, once it
// was closed, that of an execution that isn't there any more.
func (e *Execution) Snapshot() (api.Execution, *api.Error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.failure != nil {
		return api.Execution{}, e.failure
	}
	if e.closed {
		return api.Execution{}, api.Errorf(api.CodeGone, "execution %s is no longer kept", e.o.ID).WithHint("run the cell again")
	}
	return e.snapshot(), nil
}

// Outcome is the Execution as it is now, without its streams and results, and the refusal
// that it ended with, if it did.
func (e *Execution) Outcome() (api.Execution, *api.Error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.outcome(), e.failure
}

func (e *Execution) snapshot() api.Execution {
	x := e.outcome()
	x.Stdout, x.Stderr = e.streams[0].String(), e.streams[1].String()
	x.Results = make([]api.Result, len(e.results))
	for i, r := range e.results {
		x.Results[i] = r.Result
	}
	return x
}

func (e *Execution) outcome() api.Execution {
	x := e.out
	if e.ended.IsZero() && e.began.IsZero() {
		x.QueuedMs = time.Since(e.created).Milliseconds()
	}
	if e.ended.IsZero() && !e.began.IsZero() {
		x.DurationMs = time.Since(e.began).Milliseconds()
	}
	x.Overflow = []api.Overflow{}
	for _, s := range e.streams {
		if s.info != nil {
			x.Overflow = append(x.Overflow, *s.info)
		}
	}
	return x
}

// Ended is when it ended; false while it has not.
func (e *Execution) Ended() (time.Time, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ended, !e.ended.IsZero()
}

// Events follows the events after seq; 0 is from the start.
func (e *Execution) Events(after int64) *Reader { return &Reader{log: e.log, after: after} }

// LastSeq is the seq of its newest event; 0 before the first.
func (e *Execution) LastSeq() int64 { return e.log.last() }

// valueBytes is about what a value of a result takes beside its text: two maps, and a
// ref's path and hash.
const valueBytes = 1 << 10

// Size is about how many bytes of memory it holds.
func (e *Execution) Size() int64 {
	n := e.log.size()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.streams {
		n += min(s.text.Total(), e.lim.Stream)
	}
	return n + e.inline + e.about + int64(e.values)*valueBytes + 4<<10
}

// HasReader reports whether a reader is there.
func (e *Execution) HasReader() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.readers > 0
}

// Spill moves the log from memory to the disk, as far as there is room.
func (e *Execution) Spill() { e.log.spill() }

// Close forgets all it holds: readers get ErrFreed.
func (e *Execution) Close() {
	e.log.free()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	for _, r := range e.results {
		r.drop()
	}
	e.results = nil
	for _, s := range e.streams {
		s.text.Reset()
		s.fold.Reset()
		if s.over != nil && s.info == nil {
			s.over.Discard()
		}
	}
	if e.grace != nil {
		e.grace.Stop()
	}
}

// Attach counts a reader in. The returned function counts it out: gone says that
// it went away, rather than got its answer while the cell goes on (then nobody's
// absence interrupts the cell any more). It may be called once.
func (e *Execution) Attach() (leave func(gone bool)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.readers++
	if e.grace != nil {
		e.grace.Stop()
	}
	return func(gone bool) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.readers--
		if !gone {
			e.keep = true
		}
		if e.readers > 0 || e.keep || !e.o.InterruptOnDisconnect || !e.ended.IsZero() {
			return
		}
		grace := cmp.Or(e.o.Grace, 2*time.Second)
		e.grace = time.AfterFunc(grace, func() {
			e.mu.Lock()
			alone := e.readers == 0 && e.ended.IsZero()
			e.mu.Unlock()
			if alone && e.o.Abandoned != nil {
				e.o.Abandoned(e)
			}
		})
	}
}
