package supervisor

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cellard/cellard/execution"
	"github.com/cellard/cellard/internal/procfs"
	"github.com/cellard/cellard/protocol/api"
)

// What a kernel may do in a cell that then ends well: its output arrives, once and
// in order, and nobody else's.
func TestCellThatEndsWell(t *testing.T) {
	t.Parallel()
	a := newAgent(t, nil)
	for _, c := range []struct{ name, code, out string }{
		{"plain", lines("print a", "print b"), "a\nb\n"},
		{"idle first", lines("!idle-first", "print a"), "a\n"},
		{"reply first", lines("!reply-first", "print a"), "a\n"},
		{"idle twice", lines("!idle-twice", "print a"), "a\n"},
		{"reply twice", lines("!reply-twice", "print a"), "a\n"},
		{"no busy", lines("!no-busy", "print a"), "a\n"},
		{"foreign parent", lines("print a", "!foreign-parent", "sleep 100", "print b"), "a\nb\n"},
		{"bad signature", lines("print a", "!bad-signature", "sleep 100", "print b"), "a\nb\n"},
		{"replay", lines("!replay", "print b"), "said once\nb\n"},
		{"garbage JSON", lines("!garbage-json", "print b"), "b\n"},
		{"deep JSON", lines("!deep-json", "print b"), ""},
		{"bad UTF-8", lines("!bad-utf8", "print b"), "a\uFFFDb\uFFFD(c\uFFFDd\nb\n"},
		{"many frames", lines("!many-frames 100", "print b"), "many frames\nb\n"},
		{"redrawn line", lines(`write 10%\r`, `write 20%\r`, `write 100%\n`), "100%\n"},
		{"cleared", lines("print a", "clear", "print b"), "b\n"},
		{"cleared by what comes", lines("print a", "clear wait", "print b"), "b\n"},
		{"cleared, and nothing comes", lines("print a", "clear wait"), "a\n"},
	} {
		x := a.cell(c.code)
		if c.name == "deep JSON" { // taken or counted as lost; never fatal
			if !strings.HasSuffix(x.Stdout, "b\n") || x.Stdout == "b\n" && x.LostBytes == 0 {
				t.Errorf("%s: %s", c.name, show(x))
			}
			continue
		}
		a.ok(x)
		if x.Stdout != c.out {
			t.Errorf("%s: stdout is %q, want %q", c.name, x.Stdout, c.out)
		}
		if x.Generation != 1 {
			t.Fatalf("%s: the kernel was lost: %s", c.name, a.logs)
		}
	}
	if a.unmatched.Load() == 0 {
		t.Error("the messages of a foreign parent were not counted")
	}
}

// A cell whose kernel never sends all that ends it. Each has a context of its own,
// since each waits for the bound.
func TestCellWithoutItsEnd(t *testing.T) {
	t.Parallel()
	a := newAgent(t, nil)
	for _, c := range []struct {
		id, code   string
		status     api.Status
		incomplete bool
	}{
		{"no-idle", lines("set x 1", "print a", "!no-idle"), api.StatusOK, true},
		{"no-reply", lines("set x 1", "print a", "!no-reply"), api.StatusOK, true},
		{"no-idle-raised", lines("set x 1", "print a", "!no-idle", "error E v"), api.StatusError, true},
		{"no-reply-raised", lines("set x 1", "print a", "!no-reply", "error E v"), api.StatusError, true},
	} {
		a.context(c.id)
		r := a.queue(c.code, in(c.id))
		defer func() {
			x := a.end(r)
			if x.Status != c.status || x.Incomplete != c.incomplete || x.State != api.StateKept || x.Stdout != "a\n" {
				t.Errorf("%s: %s", c.id, show(x))
			}
			a.kept(in(c.id))
		}()
	}
}

// Neither reply nor idle nor busy: only the deadline ends the cell. It counts from
// 5 s after the send, and the kernel, which answers, is kept.
func TestDeadlineWithoutBusy(t *testing.T) {
	t.Parallel()
	a := newAgent(t, nil)
	x := a.cell(lines("!no-busy", "set x 1", "print a", "sleep 3600000"), timeout(time.Millisecond))
	a.is(x, api.StatusTimeout, api.StateKept, "KeyboardInterrupt")
	if x.Stdout != "a\n" {
		t.Errorf("the output before the deadline: %q", x.Stdout)
	}
	if x.DurationMs < 5000 {
		t.Errorf("the deadline counted before a busy could come: after %d ms", x.DurationMs)
	}
	a.kept()
}

func TestDeadline(t *testing.T) {
	t.Parallel()
	a := newAgent(t, nil)
	r := a.queue(lines("set x 1", "sleep 3600000"), timeout(time.Millisecond))
	a.is(a.end(r), api.StatusTimeout, api.StateKept, "KeyboardInterrupt")
	checkEvents(t, a.events(r))
	a.kept()
}

// checkEvents: numbered from 1, exactly one end, and the execution last.
func checkEvents(t *testing.T, all []api.Event) {
	t.Helper()
	ends := 0
	for i, ev := range all {
		if ev.Seq != int64(i+1) {
			t.Errorf("event %d has seq %d", i+1, ev.Seq)
		}
		if ev.K == api.KindEnd {
			ends++
		}
	}
	if n := len(all); n < 2 || ends != 1 || all[n-2].K != api.KindEnd || all[n-1].K != api.KindExecution {
		t.Errorf("the last events are not end and execution: %+v", all)
	}
}

// After these the channels can't be trusted any more: the kernel goes, and the next
// cell gets another one.
func TestBrokenChannel(t *testing.T) {
	t.Parallel()
	a := newAgent(t, nil)
	for i, c := range []struct {
		code   string
		reason api.LostReason
		signal string
	}{
		{lines("print a", "!frame-2^63", "sleep 3600000"), api.LostUnresponsive, ""},
		{lines("print a", "!garbage-zmtp", "sleep 3600000"), api.LostUnresponsive, ""},
		{lines("print a", "!close-iopub", "sleep 3600000"), api.LostUnresponsive, ""},
		{lines("print a", "!die-mid-message"), api.LostSignal, "SIGKILL"},
	} {
		x := a.cell(c.code)
		a.lostBy(x, c.reason, c.signal, -1)
		if x.Stdout != "a\n" {
			t.Errorf("%s: the output before it is lost: %q", c.code, x.Stdout)
		}
		if x.Lost.Message == "" || x.Generation != 2*i+1 {
			t.Errorf("%s: %s", c.code, show(x))
		}
		a.fresh(2*i + 2)
		a.cell("exit 0")
	}
}

func TestLateOutput(t *testing.T) {
	t.Parallel()
	a := newAgent(t, nil)
	r := a.queue(lines("print a", "!late afterwards"))
	a.end(r)
	a.shows(r, "afterwards") // the one that it names, though it has ended
	if x := a.cell("print b"); x.Stdout != "b\n" {
		t.Errorf("late output went to another cell: %q", x.Stdout)
	}
	if x, _ := r.Snapshot(); x.Stdout != "a\nafterwards\n" {
		t.Errorf("late output: %q", x.Stdout)
	}
	checkEvents(t, a.events(r))
}

func TestUpdateAndClearAcrossCells(t *testing.T) {
	t.Parallel()
	a := newAgent(t, nil)
	first := a.queue(lines("display-id d one", "display-id e other"))
	a.end(first)
	second := a.queue("update-id d two")
	if x := a.end(second); len(x.Results) != 0 {
		t.Errorf("an update made a result of its own: %s", show(x))
	}
	x, _ := first.Snapshot()
	if len(x.Results) != 2 || string(x.Results[0].Data["text/plain"]) != `"two"` || string(x.Results[1].Data["text/plain"]) != `"other"` {
		t.Errorf("the result was not updated: %s", show(x))
	}
	var updates int
	for _, ev := range a.events(second) {
		if ev.K == api.KindUpdate && ev.DisplayID == "d" && ev.ID == first.ID() {
			updates++
		}
	}
	if updates != 1 {
		t.Errorf("%d update events", updates)
	}
	if x := a.cell(lines("print c", "clear")); x.Stdout != "" {
		t.Errorf("clear left %q", x.Stdout)
	}
	if x, _ := first.Snapshot(); len(x.Results) != 2 {
		t.Errorf("clear took another cell's results: %s", show(x))
	}
	unmatched := a.unmatched.Load()
	if x := a.cell("update-id nobody three"); len(x.Results) != 0 || a.unmatched.Load() == unmatched {
		t.Errorf("an update of nothing: %s", show(x))
	}
}

func TestTooManyDisplays(t *testing.T) {
	t.Parallel()
	a := newAgent(t, func(o *Options) { o.Limits = execution.Limits{Results: 50} })
	x := a.cell(lines("display 120", "print done"))
	a.ok(x)
	if len(x.Results) != 50 || x.LostBytes == 0 || x.Stdout != "done\n" {
		t.Errorf("%d results, %d bytes lost, stdout %q", len(x.Results), x.LostBytes, x.Stdout)
	}
}

// A message of 300 MB, and a flood, cost the agent bounded memory, and nothing is lost.
// Not parallel: the memory is the whole process's.
func TestBoundedMemory(t *testing.T) {
	a := newAgent(t, nil)
	a.ok(a.cell("set x 1"))
	const most = 192 << 20 // far below what comes; -race takes several times the usual
	for _, c := range []struct {
		code  string
		bytes int64
	}{
		{fmt.Sprintf("!huge %d", hugeBytes), hugeBytes},
		{"!flood 100000", 1_088_895},
	} {
		runtime.GC()
		m := procfs.NewMeter(os.Getpid())
		defer m.Close()
		m.Begin()
		before := m.Peak()
		x := a.cell(c.code, func(r *api.RunRequest) { ms := int64(0); r.TimeoutMs = &ms })
		a.ok(x)
		if grown := m.Peak() - before; grown > most {
			t.Errorf("%s: took %d MiB", c.code, grown>>20)
		} else {
			t.Logf("%s: took %d MiB", c.code, grown>>20)
		}
		if x.LostBytes != 0 || len(x.Overflow) != 1 || x.Overflow[0].Bytes != c.bytes || x.Overflow[0].Dropped != 0 {
			t.Fatalf("%s: lost %d, overflow %+v", c.code, x.LostBytes, x.Overflow)
		}
		fi, err := os.Stat(x.Overflow[0].Path)
		if err != nil || fi.Size() != c.bytes {
			t.Errorf("%s: %v, %v", c.code, fi, err)
		}
		if n := len(x.Stdout); n > 2<<20 {
			t.Errorf("%s: %d bytes inline", c.code, n)
		}
	}
	a.kept()
}

// A message that is too large for memory and can't be put on disk is lost, and that is
// said; the cell goes on.
func TestMessageThatCannotBeKept(t *testing.T) {
	t.Parallel()
	a := newAgent(t, nil)
	a.ok(a.cell("print start"))
	if err := os.RemoveAll(a.o.Workspace); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(a.o.Workspace, nil, 0o644); err != nil { // or the store would make its directories again
		t.Fatal(err)
	}
	x := a.cell(lines("print a", "!huge 3000000", "print b"))
	a.ok(x)
	if x.Stdout != "a\nb\n" || x.LostBytes < 3_000_000 {
		t.Errorf("lost %d bytes: %s", x.LostBytes, show(x))
	}
	if x := a.cell("print c"); x.LostBytes != 0 || x.Stdout != "c\n" {
		t.Errorf("the next cell: %s", show(x))
	}
}
