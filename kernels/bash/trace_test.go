package bash

import (
	"testing"
	"time"
)

// set -x shows nothing of how a cell is stopped or exits, and lasts through both.
func TestTraceThroughExits(t *testing.T) {
	s := start(t)
	s.run("set -x")
	for range 2 {
		d := s.runFor(300*time.Millisecond, "while :; do sleep 300; done")
		if want := "+ :\n+ sleep 300\n"; d.err == nil || d.Stream("stderr") != want {
			t.Errorf("stopped: %v; want stderr %q", d, want)
		}
		d = s.fails("ExitStatus", "4", "exit 4")
		if want := "+ exit 4\n"; d.Stream("stderr") != want {
			t.Errorf("%v; want stderr %q", d, want)
		}
		d = s.run("set -e; echo a")
		if want := "+ set -e\n+ echo a\n"; d.err != nil || d.Stream("stderr") != want {
			t.Errorf("%v; want stderr %q", d, want)
		}
		s.run("set +e")
	}
}

// An EXIT trap without an end costs its cell, and not what has taken over.
func TestExitTrapWithoutEnd(t *testing.T) {
	s := start(t)
	s.ok("x=41; trap 'while :; do :; done' EXIT", "")
	for range 2 {
		s.stopped("Interrupted", "while :; do :; done", "")
		if d := s.runFor(300*time.Millisecond, "exit"); d.err == nil {
			t.Errorf("an exit went well: %v", d)
		}
		s.ok("echo $x", "41\n")
	}
	s.ok("trap - EXIT", "")
	s.fails("ExitStatus", "3", "exit 3")
	s.ok("echo $x", "41\n")
}
