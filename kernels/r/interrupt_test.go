package r

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// An interrupt between two cells is nobody's.
func TestInterruptWhileIdle(t *testing.T) {
	k := start(t)
	k.cell("x <- 1")
	for range 5 {
		if err := k.cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		if _, reply := k.ask("kernel_info_request", "kernel_info_reply", struct{}{}); text(reply, "status") != `"ok"` {
			t.Errorf("kernel info: %v", reply)
		}
		if _, reply := k.cell("for (i in 1:1000) x; Sys.sleep(0.01); x"); text(reply, "status") != `"ok"` {
			t.Errorf("a cell after an interrupt: %v", reply)
		}
	}
}

// An interrupt at any moment of a cell costs the cell at most.
func TestInterruptAtAnyMoment(t *testing.T) {
	k := start(t)
	k.cell("kept <- 41")
	for i := range 60 {
		code := fmt.Sprintf("cat('start\\n'); Sys.sleep(%v); message('m'); 1\n2", []float64{0, 0.002, 60}[i%3])
		done, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			wait := rand.N(20 * time.Millisecond)
			for {
				select {
				case <-done:
					return
				case <-time.After(wait):
				}
				_ = k.cmd.Process.Signal(os.Interrupt)
				wait = 100 * time.Millisecond // it may have come before the cell
			}
		}()
		_, reply := k.cell(code)
		close(done)
		<-stopped
		if text(reply, "status") != `"ok"` && text(reply, "ename") != `"interrupt"` {
			t.Fatalf("%s: %v", code, reply)
		}
		k.ask("kernel_info_request", "kernel_info_reply", struct{}{}) // a late one is nobody's
		if all, _ := k.cell("kept"); text(one(all, "execute_result"), "data", "text/plain") != `"[1] 41"` {
			t.Fatalf("the cell after %s: %v", code, all)
		}
	}
}

// An interrupt may come when Sys.sleep has put its handler in place and not yet stored the
// one before it, in the very first wait of a cell: R lives, and takes the next one too.
func TestInterruptAsFirstSleepBegins(t *testing.T) {
	dir := t.TempDir()
	source, library, armed := filepath.Join(dir, "signal.c"), filepath.Join(dir, "signal.so"), filepath.Join(dir, "armed")
	if err := os.WriteFile(source, []byte(`
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

typedef void (*handler)(int);

handler signal(int number, handler new) {
	handler old = ((handler (*)(int, handler))dlsym(RTLD_NEXT, "signal"))(number, new);
	const char *armed = getenv("SIGNAL_ARMED");
	if (number == SIGINT && armed != NULL && unlink(armed) == 0) raise(SIGINT);
	return old;
}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-shared", "-fPIC", "-o", library, source, "-ldl").CombinedOutput(); err != nil {
		t.Fatalf("%v: the race detector needs gcc too\n%s", err, out)
	}
	k := start(t, "LD_PRELOAD="+library, "SIGNAL_ARMED="+armed)
	code := fmt.Sprintf("invisible(file.create(%q)); Sys.sleep(60)", armed)
	for i := range 3 {
		if _, reply := k.cell(code); text(reply, "ename") != `"interrupt"` {
			t.Fatalf("interrupt %d: %v", i+1, reply)
		}
		if _, err := os.Stat(armed); err == nil {
			t.Fatal("R's Sys.sleep has set no handler")
		}
		if _, reply := k.cell("tools::pskill(Sys.getpid(), tools::SIGINT); Sys.sleep(60)"); text(reply, "ename") != `"interrupt"` {
			t.Fatalf("the one after it: %v", reply)
		}
	}
}
