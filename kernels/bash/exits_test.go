package bash

import (
	"os"
	"os/signal"
	"syscall"
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

// Signals that end the shell cost the cell alone, also the second time.
func TestSignalsToTheShell(t *testing.T) {
	// One that is ignored by this process, as under nohup, would be by the shell.
	hups := make(chan os.Signal, 1)
	signal.Notify(hups, syscall.SIGHUP)
	defer signal.Stop(hups)
	s := start(t)
	s.ok("x=41", "")
	for range 2 {
		for signal, status := range map[string]string{"TERM": "143", "HUP": "129", "INT": "130", "USR1": "138", "ALRM": "142"} {
			s.fails("ExitStatus", status, "y=$x; kill -"+signal+" $BASHPID; sleep 300")
			s.ok("echo $x $y", "41 41\n")
		}
	}
	s.ok("trap 'echo mine' TERM; kill -TERM $BASHPID; trap - TERM", "mine\n")
}

// Functions and aliases that shadow what the kernel's own script says.
func TestShadows(t *testing.T) {
	s := start(t)
	s.ok("x=41; exec() { :; }; eval() { :; }; alias while=: case=: eval=false", "")
	s.ok("echo $x", "41\n")
	s.stopped("Interrupted", "sleep 300", "")
	s.fails("ExitStatus", "3", "exit 3")
	s.ok("alias while; unalias while case eval; unset -f eval\nwhile read -r line; do echo $line; done <<< $x", "alias while=':'\n41\n")
}
