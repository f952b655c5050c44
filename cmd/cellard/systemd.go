package main

import (
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sys/unix"

	"github.com/cellard/cellard/server"
	"github.com/cellard/cellard/supervisor"
)

// handedOver are the sockets that systemd has opened for this process; none where it was
// started otherwise. It is called before anything is started, which would inherit them.
// The variables that tell of them go. What they say is checked first: a number that is not
// true would have descriptors of the runtime's own taken for sockets.
func handedOver() ([]*os.File, error) {
	defer func() {
		for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
			_ = os.Unsetenv(name)
		}
	}()
	if pid, err := strconv.Atoi(os.Getenv("LISTEN_PID")); err != nil || pid != os.Getpid() {
		return nil, nil // they are another's
	}
	text, given := os.LookupEnv("LISTEN_FDS")
	if !given {
		return nil, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > maxHandedOver {
		return nil, usageError(fmt.Sprintf("LISTEN_FDS=%.40q: want a number of sockets from 0 to %d; unset it where none are handed over", text, maxHandedOver))
	}
	for fd := firstHandedOver; fd < firstHandedOver+n; fd++ {
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFSOCK {
			return nil, usageError(fmt.Sprintf("LISTEN_FDS=%d: descriptor %d is no socket; unset it where none are handed over", n, fd))
		}
	}
	return activation.Files(true), nil
}

// firstHandedOver is SD_LISTEN_FDS_START, and maxHandedOver bounds how many there may be.
const (
	firstHandedOver = 3
	maxHandedOver   = 64
)

// listenHandedOver makes listeners of them. After an error those that it returns are the
// caller's to close, as after none; the files are closed.
func listenHandedOver(files []*os.File, o server.ListenOptions) (all []*server.Listener, err error) {
	for _, f := range files {
		if err != nil {
			f.Close()
			continue
		}
		var l *server.Listener
		if l, err = server.ListenFile(f, o); err == nil {
			all = append(all, l)
		}
	}
	return all, err
}

// notify tells systemd what the agent is at (sd_notify(3)), where that has asked for it by
// NOTIFY_SOCKET.
func notify(log *slog.Logger, state ...string) {
	if _, err := daemon.SdNotify(false, strings.Join(state, "\n")); err != nil {
		log.Warn("systemd could not be told", "state", state[0], "error", err)
	}
}

// watchdog tells systemd that the agent lives, as often as its unit's WatchdogSec= asks
// for, as long as the Manager and every context answer. The caller calls stop, which
// returns when it is over.
func watchdog(m *supervisor.Manager, log *slog.Logger) (stop func()) {
	within, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		log.Warn("the watchdog's time can't be read", "error", err.Error())
	}
	if within <= 0 {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(within / 2)
		defer tick.Stop()
		for {
			m.Contexts() // takes the locks that all else needs
			notify(log, daemon.SdNotifyWatchdog)
			select {
			case <-tick.C:
			case <-done:
				return
			}
		}
	}()
	return func() { close(done); <-ended }
}
