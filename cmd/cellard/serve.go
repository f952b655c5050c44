package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/cellard/cellard/internal/metrics"
	"github.com/cellard/cellard/server"
	"github.com/cellard/cellard/supervisor"
)

const serveHelp = `
cellard serve serves the host API, until it is stopped by SIGTERM, SIGINT or SIGHUP: then
running cells are interrupted and answered, and streams end with their last line. A
second signal, or 5 seconds, kills.

It exits with 0 after a signal; 2 where the command is wrong, or a setting: an address, the
account, a directory, the token; 3 where it could not start although they are right, as on an
address in use; 1 where it failed after that.

Usage: cellard serve [flags]

Addresses: vsock://:52, unix:///run/cellard.sock, tcp://127.0.0.1:7520. TCP asks for a
bearer token: the one in --token-file, or in CELLARD_TOKEN, or a new one, which is
written to token-PORT in the runtime directory, and removed at the end.

Under systemd it serves on the sockets of its socket unit, if there are any, in place of
the default, and tells when it is ready, stops and lives (Type=notify, WatchdogSec=).`

// memoryLimit is from where on the collector works harder: what large requests leave is
// given back soon, not minutes later.
const memoryLimit = 96 << 20

// stopTime bounds a stop: past it what is left is killed. drainTime is then left for
// the last answers to go out.
const (
	stopTime  = 5 * time.Second
	drainTime = time.Second
)

// serve is cellard serve.
func serve(args []string) int {
	files, handedErr := handedOver()
	fs := newFlags("serve")
	agent := newAgentFlags(fs, slog.LevelInfo)
	var (
		o         server.Options
		lo        server.ListenOptions
		addresses []string
		tokenFile string
	)
	fs.Var(list[string]{&addresses, func(s string) (string, error) { return s, nil }}, "listen",
		"`ADDRESS` to serve on; may be repeated (default: vsock://:52 in a VM that has it, and a Unix socket in the runtime directory of the user)")
	fs.StringVar(&tokenFile, "token-file", "", "`FILE` with the bearer token for TCP")
	fs.Var(list[int]{&lo.AllowUIDs, parseUID}, "allow-uid", "`UID` that may call on Unix sockets, besides the agent's own and root; may be repeated")
	fs.Var(list[uint32]{&lo.AllowCIDs, parseCID}, "vsock-allow-cid", "`CID` that may call on vsock, besides the host (2); may be repeated")
	fs.BoolVar(&lo.TCPAny, "tcp-any", false, "let TCP listen on other addresses than loopback")
	sizeVar(fs, &o.MaxBody, "max-body", 16<<20, "`SIZE` of a request's body")
	countVar(fs, &o.MaxConnections, "max-connections", 256, "`N` connections may be open on each listener")
	durationVar(fs, &o.Ping, "ping", 15*time.Second, "`TIME` of silence after which a stream has a ping")
	durationVar(fs, &o.Stall, "stall", 5*time.Minute, "`TIME` after which a client that takes nothing of an answer counts as gone")
	if code, ok := parse(fs, args, serveHelp); !ok {
		return code
	}
	log, err := agent.logger()
	if err != nil {
		fmt.Fprintf(os.Stderr, "cellard serve: %v\n", err)
		return exitUsage
	}
	if handedErr != nil {
		return cannotStart(log, handedErr)
	}
	if os.Getenv("GOGC") == "" {
		// Memory is dearer than the collector's time in a sandbox: a flood of output
		// leaves much garbage.
		debug.SetGCPercent(50)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}

	stop := make(chan os.Signal, 2)
	for _, s := range []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		if !signal.Ignored(s) { // nohup, or the background of a shell
			signal.Notify(stop, s)
		}
	}
	o.Metrics = &metrics.Registry{}
	agent.o.Metrics = o.Metrics
	m, err := agent.manager(log)
	if err != nil {
		return cannotStart(log, err)
	}
	if _, ok := m.Boundary(); ok {
		lo.CellUIDs = []int{m.CellUID()}
	} else {
		log.Warn("cells run as the agent's own user: they can read, signal and trace it, and call it; start it as root, with --user, for a boundary")
	}
	if err := m.Groups(); err != nil {
		log.Info("kernels have no control groups: what a cell hides can outlive its kernel", "reason", err)
	}
	o.Manager, o.Version, o.Logger = m, versionString(), log
	code := exitOK
	listeners, err := listenAll(addresses, files, lo, log)
	var token bearer
	if err == nil {
		token, err = tokenFor(listeners, tokenFile, agent.runtimeDir, log)
		o.Token = token.token
	}
	if err != nil {
		for _, l := range listeners {
			_ = l.Close()
		}
		code = cannotStart(log, err)
	} else {
		code = serveUntil(stop, server.New(o), listeners, m, token, log)
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	if err := m.Shutdown(ctx); err != nil { // a second time does nothing
		log.Warn("the agent's files could not all be removed", "error", err)
	}
	return code
}

// cannotStart says why, and returns the exit code.
func cannotStart(log *slog.Logger, err error) int {
	log.Error("cellard can't start", "error", err.Error()) // what the operator gave is in it, and nothing of a cell's
	var usage usageError
	var address server.AddressError
	if errors.As(err, &usage) || errors.As(err, &address) {
		return exitUsage
	}
	return exitAgent
}

// serveUntil serves until a signal comes, and then stops in an orderly way.
func serveUntil(stop chan os.Signal, s *server.Server, listeners []*server.Listener, m *supervisor.Manager, token bearer, log *slog.Logger) int {
	failed := make(chan error, len(listeners))
	for _, l := range listeners {
		log.Info("serving", "address", l.String(), "token", l.NeedsToken())
		go func() { failed <- s.Serve(l) }()
	}
	stopWatchdog := watchdog(m, log)
	defer stopWatchdog()
	notify(log, daemon.SdNotifyReady, "STATUS=serving")
	code := exitOK
	select {
	case sig := <-stop:
		log.Info("stopping", "signal", sig.String())
	case err := <-failed:
		log.Error("a listener failed", "error", err.Error())
		code = exitError
	}
	notify(log, daemon.SdNotifyStopping, "STATUS=stopping")
	token.forget(log)
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	go func() {
		select {
		case <-stop:
			log.Warn("stopping at once")
			cancel()
			signal.Stop(stop) // a third one ends the agent as it is
		case <-ctx.Done():
		}
	}()
	// The server stops listening at once, and waits for the answers that the
	// Manager's end brings about, also where that is a kill.
	drain, cut := context.WithCancel(context.Background())
	defer cut()
	drained := make(chan error, 1)
	go func() { drained <- s.Shutdown(drain) }()
	if err := m.Shutdown(ctx); err != nil {
		log.Warn("the agent's files could not all be removed", "error", err)
	}
	defer time.AfterFunc(drainTime, cut).Stop()
	if err := <-drained; err != nil {
		log.Warn("not all answers could be sent", "error", err)
	}
	return code
}

// listenAll opens the listeners: what systemd has handed over, and the addresses that
// were asked for. With neither those of the default are tried, of which some may fail as
// long as there is one.
func listenAll(addresses []string, files []*os.File, o server.ListenOptions, log *slog.Logger) ([]*server.Listener, error) {
	all, err := listenHandedOver(files, o)
	if err != nil {
		return all, err
	}
	asked := len(addresses) > 0 || len(files) > 0
	if !asked {
		addresses = defaultAddresses(server.VsockGuest())
	}
	var errs []error
	for _, a := range addresses {
		l, err := server.Listen(a, o)
		switch {
		case err == nil:
			all = append(all, l)
		case asked:
			return all, err
		default:
			log.Warn("not served on", "error", err.Error())
			errs = append(errs, err)
		}
	}
	if len(all) == 0 {
		return nil, errors.Join(errs...)
	}
	return all, nil
}

// defaultAddresses is where to serve if nothing else was asked for.
func defaultAddresses(guest bool) []string {
	var all []string
	if guest {
		all = append(all, "vsock://:"+strconv.Itoa(server.VsockPort))
	}
	switch dir := userRuntimeDir(); {
	case os.Getuid() == 0 && isDir("/run"):
		return append(all, "unix:///run/cellard.sock")
	case dir != "":
		return append(all, "unix://"+filepath.Join(dir, "cellard.sock"))
	}
	return append(all, "unix://"+filepath.Join(defaultRuntimeDir(), "cellard.sock"))
}

func parseUID(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		return 0, errors.New(strconv.Quote(s) + " is no uid")
	}
	return int(n), nil
}

func parseCID(s string) (uint32, error) {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		return 0, errors.New(strconv.Quote(s) + " is no CID")
	}
	return uint32(n), nil
}
