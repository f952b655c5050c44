package bash

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cellard/cellard/internal/procfs"
	"github.com/cellard/cellard/protocol/api"
	"github.com/cellard/cellard/protocol/jupyter/kernel"
)

// maxLate is how many cells are kept whose processes may still write.
const maxLate = 256

// variableName is what bash can have as a variable.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Execute runs a cell.
func (k *Kernel) Execute(ctx context.Context, c *kernel.Cell) error {
	if strings.IndexByte(c.Code, 0) >= 0 {
		return &kernel.Error{Name: "InvalidCode", Value: "a zero byte in the code: bash can't run that"}
	}
	restored := false
	pipes, err := k.settled(ctx)
	if err != nil {
		// It was killed while idle: the copy has all that the last cell has left.
		if pipes, err = k.promoteAndSettle(ctx, err); err != nil {
			return err
		}
	}
	given, err := k.surroundings(c)
	if err != nil {
		return err
	}
	r, err := k.begin(c)
	if err != nil {
		return fmt.Errorf("bash: the pipes of a cell: %w", err)
	}
	k.words.add(c.Code)
	born := procfs.Now()
	stdin, closeStdin, err := k.openStdin(ctx, r)
	if err != nil {
		return err
	}
	err = k.command(k.setup(r, pipes, stdin, given), k.prefix()+c.Code+"\n")
	if err == nil {
		err = k.finish(ctx, r.n, born)
	}
	closeStdin()
	gone := (*goneError)(nil)
	if errors.As(err, &gone) {
		restored = true
		r.closeEnds()
		r.streams.Drain()
		if err := k.promote(gone); err != nil {
			return err
		}
	} else if err != nil && !errors.Is(err, kernel.ErrInterrupted) && !errors.Is(err, kernel.ErrShutdown) && !errors.Is(err, context.Canceled) {
		return err
	}
	interrupted := context.Cause(ctx)
	if interrupted != nil {
		k.endChildren(born)
		k.dropAnswers()
	}
	r.closeEnds()
	r.streams.Drain()
	k.shell.mu.Lock()
	end := k.shell.end
	k.shell.mu.Unlock()
	if err := k.copyShell(); err != nil {
		return err
	}
	switch {
	case restored:
		return restoredError(gone, interrupted)
	case interrupted != nil:
		return &kernel.Error{Name: "Interrupted", Value: "the cell was interrupted"}
	case end.bad == "cwd":
		return &kernel.Error{Name: "InvalidDirectory", Value: fmt.Sprintf("the directory of the cell can't be entered: %s", c.Cwd)}
	case end.bad != "":
		return &kernel.Error{Name: "InvalidEnvironment", Value: fmt.Sprintf("the variable %s of the cell can't be set: it is read-only", end.bad)}
	}
	if status := k.shell.result(); status != 0 {
		return &kernel.Error{Name: "ExitStatus", Value: strconv.Itoa(status)}
	}
	return nil
}

// restoredError is the error of a cell whose shell ended and whose copy has taken over.
func restoredError(gone *goneError, interrupted error) error {
	lost := &api.Lost{Reason: api.LostExit}
	value := fmt.Sprintf("the cell's shell ended (%s)", howEnded(gone.status))
	if gone.status.Signaled() {
		name := unix.SignalName(gone.status.Signal())
		lost.Reason, lost.Signal = api.LostSignal, &name
	} else {
		code := gone.status.ExitStatus()
		lost.ExitCode = &code
	}
	if interrupted != nil {
		lost.Reason, value = api.LostUnresponsive, "the cell did not stop, and its shell was killed"
	}
	lost.Message = value
	return &kernel.Error{Name: "KernelDied", Value: value + ": the variables are those from before it", Restored: lost}
}

// given are a cell's variables and directory.
type given struct {
	names  []string
	values map[string]string
	dir    string
}

func (k *Kernel) surroundings(c *kernel.Cell) (given, error) {
	g := given{values: c.Env}
	for name, value := range c.Env {
		if !variableName.MatchString(name) || strings.HasPrefix(name, "__cellard_") || strings.IndexByte(value, 0) >= 0 {
			return g, &kernel.Error{Name: "InvalidEnvironment", Value: fmt.Sprintf("%q can't be a variable of bash, which has letters, digits and _ in its name and no zero byte in its value", name)}
		}
		g.names = append(g.names, name)
	}
	slices.Sort(g.names)
	if c.Cwd == "" {
		return g, nil
	}
	if strings.IndexByte(c.Cwd, 0) >= 0 {
		return g, &kernel.Error{Name: "InvalidDirectory", Value: "a zero byte in the directory's path"}
	}
	g.dir = c.Cwd
	if !filepath.IsAbs(g.dir) {
		k.shell.mu.Lock()
		here, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", k.shell.main))
		k.shell.mu.Unlock()
		if err == nil {
			g.dir = filepath.Join(here, g.dir)
		}
	}
	return g, nil
}

// begin gives a cell its number and its pipes, and closes those of earlier cells that
// nobody holds any more.
func (k *Kernel) begin(c *kernel.Cell) (*running, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last.streams.Drain()
	for n, r := range k.cells {
		if r != k.last && (r.streams.Ended() || n < k.count-maxLate) {
			r.streams.Drain()
			r.streams.Close()
			delete(k.cells, n)
		}
	}
	k.count++
	r, err := k.newRunning(k.count, c)
	if err != nil {
		return nil, err
	}
	k.shell.mu.Lock()
	r.filter = &filter{level: k.shell.level, path: k.shell.paths.code}
	k.shell.mu.Unlock()
	r.streams.FilterStderr(r.filter.text)
	k.cells[r.n] = r
	return r, nil
}

// setup is the code that the shell sources before a cell's. The descriptors that are the
// last cell's output become this one's; those that a cell has sent elsewhere stay.
func (k *Kernel) setup(r *running, pipes map[int]uint64, stdin string, g given) string {
	k.shell.forget()
	var b strings.Builder
	// No prefix gets past a function called exec and leaves redirections as they are.
	fmt.Fprintf(&b, `__cellard_bad= __cellard_n=%d; \builtin unset -f exec; \exec 0<%s`, r.n, stdin)
	k.shell.mu.Lock()
	moved := k.shell.took != k.applied
	k.applied = k.shell.took
	main, traps := k.shell.main, k.shell.end.traps
	k.shell.mu.Unlock()
	for fd, inode := range pipes {
		i := slices.Index(k.last.inodes[:], inode)
		switch {
		case moved && (fd >= 10 && savedByBash(main, fd) || fd >= 40 && fd < 64 && k.pipes[fd] != inode):
			// Put aside by bash for a redirection, or of a <(…), that the exit has cut short.
			fmt.Fprintf(&b, " %d>&-", fd)
		case moved && fd < 3:
		case i >= 0 && fd > 0:
			fmt.Fprintf(&b, " %d>%s", fd, procPath(r.ends[i]))
		}
	}
	k.pipes = pipes
	if moved {
		// Where the old shell ended, a redirection of a part of the cell may have been in
		// force, which nobody takes back.
		fmt.Fprintf(&b, " 1>%s 2>%s", procPath(r.ends[0]), procPath(r.ends[1]))
	}
	b.WriteString(`; \builtin trap '` + stopTrap + `' USR2; `)
	if stdin == os.DevNull {
		b.WriteString("__cellard_in=; ")
	} else {
		b.WriteString("__cellard_in=1; ")
	}
	if moved { // it is a copy, which has no traps but those of ignored signals
		for _, t := range traps {
			if !t.ours() && !t.quiet() {
				b.WriteString(t.String())
			}
		}
		b.WriteString(k.shell.endingTraps(traps))
	}
	do, undo := environment(g.names, g.values)
	if g.dir != "" {
		cd, back := directory(g.dir)
		do, undo = do+cd, back+undo
	}
	if undo != "" {
		fmt.Fprintf(&b, "__cellard_undo=%s; %s", quote(undo), do)
	}
	if moved || r.n == 1 {
		b.WriteString(`\builtin test ! "$__cellard_a" || \builtin shopt -s expand_aliases; __cellard_a=; `)
	}
	b.WriteString(`\builtin test ! "$__cellard_bad"` + "\n")
	k.last = r
	return b.String()
}

// savedByBash tells whether a descriptor is one that bash has put aside for the time of a
// redirection: those are closed on exec, a user's are not.
func savedByBash(pid, fd int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%d", pid, fd))
	if err != nil {
		return false
	}
	_, rest, ok := strings.Cut(string(b), "flags:")
	line, _, _ := strings.Cut(rest, "\n")
	flags, err := strconv.ParseUint(strings.TrimSpace(line), 8, 64)
	return ok && err == nil && flags&unix.O_CLOEXEC != 0
}

// prefix restores what was off while no cell ran. It stands on the cell's first line.
func (k *Kernel) prefix() string {
	k.shell.mu.Lock()
	defer k.shell.mu.Unlock()
	var b strings.Builder
	for _, t := range k.shell.end.traps {
		if t.quiet() {
			b.WriteString(t.String())
		}
	}
	flags := ""
	for _, f := range "euxv" {
		if strings.ContainsRune(k.shell.end.flags, f) {
			flags += string(f)
		}
	}
	if flags != "" {
		fmt.Fprintf(&b, `\builtin set -%s; `, flags)
	}
	return b.String()
}

// finish waits for the end of a cell, which is stopped when ctx ends. The error is
// ctx's cause where it was stopped, or a *goneError.
func (k *Kernel) finish(ctx context.Context, n int, born procfs.Moment) error {
	over := func() bool {
		s := k.shell
		return s.end.pid != 0 && s.end.cell == n && len(s.dying) == 0
	}
	err := k.await(ctx, over)
	if ctx.Err() == nil || err == nil {
		return err
	}
	if gone := (*goneError)(nil); errors.As(err, &gone) {
		return err
	}
	k.mu.Lock()
	k.cells[n].filter.stopping.Store(true)
	k.mu.Unlock()
	return k.stop(over, born, context.Cause(ctx))
}
