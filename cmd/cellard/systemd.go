package main

import (
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/cellard/cellard/server"
	"github.com/cellard/cellard/supervisor"
)

// handedOver are the sockets that systemd has opened for this process; none where it was
// started otherwise. It is called before anything is started, which would inherit them.
// The variables that tell of them go.
func handedOver() []*os.File { return activation.Files(true) }

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
