package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/cellard/cellard/client"
	"github.com/cellard/cellard/internal/drawing"
	"github.com/cellard/cellard/protocol/api"
	"github.com/cellard/cellard/server"
)

const doctorHelp = `
cellard doctor tells what is ready here, what is missing, and how to mend it: the languages,
the ways for a host to call, what cells run as, and where. With --agent it asks that agent. It
exits with 0 if a cell could run in one language at least, else with 1.

Usage: cellard doctor [flags]`

// findings is what doctor tells.
type findings struct {
	Version  string    `json:"version"`
	Findings []finding `json:"findings"`
}

// finding is a line of it, and what to do. State is ready, missing, installable or idle.
type finding struct {
	State  string `json:"state"`
	What   string `json:"what"`
	Detail string `json:"detail"`
	Hint   string `json:"hint,omitempty"`
}

func (f findings) print() {
	fmt.Printf("cellard %s\n\n", drawing.Text(f.Version))
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, x := range f.Findings {
		fmt.Fprintf(w, "%s\t%s\t%s\n", shown(x.State), shown(x.What), shown(x.Detail))
		if x.Hint != "" {
			fmt.Fprintf(w, "\t\t→ %s\n", shown(x.Hint))
		}
	}
	_ = w.Flush()
}

// doctorTime bounds all that doctor asks.
const doctorTime = 2 * time.Minute

// doctor is cellard doctor.
func doctor(args []string) int {
	fs := newFlags("doctor")
	asJSON := fs.Bool("json", false, "print what is found as one line of JSON")
	call := newCallFlags(fs, true)
	if code, ok := parse(fs, args, doctorHelp); !ok {
		return code
	}
	ctx, cancel := context.WithTimeout(context.Background(), doctorTime)
	defer cancel()
	c, err := call.open(ctx)
	if err != nil {
		return fail("doctor", err)
	}
	defer c.Close()
	h, err := c.Health(ctx)
	if err != nil {
		return fail("doctor", err)
	}
	found := findings{Version: h.Version}
	finding := func(state, what, detail, hint string) {
		found.Findings = append(found.Findings, finding{state, what, detail, hint})
	}
	if c.ours {
		hostWays(ctx, finding)
		if c.boundary != "" {
			finding("ready", "boundary", "cells run as "+c.boundary, "")
		} else {
			finding("missing", "boundary", "cells run as the agent's own user, and can read, signal and trace it", "start the agent as root; --user names who cells run as")
		}
		switch dir, writable := c.workspace(ctx); {
		case writable:
			finding("ready", "workspace", "cells start in "+dir+", and can write there", "")
		case c.boundary != "":
			finding("missing", "workspace", "cells run as "+c.boundary+" and can't write to "+dir+", where they start", "--workspace names another")
		default:
			finding("missing", "workspace", "cells can't write to "+dir+", where they start", "--workspace names another")
		}
		if lo, err := net.InterfaceByName("lo"); err == nil && lo.Flags&net.FlagUp != 0 {
			finding("ready", "loopback", "lo is up, which JavaScript, TypeScript and Java take to stop cells", "")
		} else {
			finding("missing", "loopback", "lo is down: JavaScript and TypeScript don't start, Java can't stop a cell in a library", "ip link set lo up, as root")
		}
		if c.noGroups == nil {
			finding("ready", "groups", "each kernel has a control group: all that it has started ends with it", "")
		} else {
			finding("missing", "groups", "what a cell hides can outlive its kernel: "+plain(c.noGroups.Error()), "start the agent as root, where /sys/fs/cgroup (version 2) can be written to")
		}
	}
	all, err := c.Languages(ctx)
	ready := 0
	for _, l := range all {
		if l.State == api.LanguageReady {
			ready++
		}
		detail := strings.TrimSpace(l.Kernel.Name + " " + l.Kernel.Version)
		if l.State != api.LanguageReady {
			detail = l.Message
		}
		detail = strings.TrimSpace(detail + "  " + l.Path)
		if l.State == api.LanguageReady && l.Message != "" {
			detail += ": " + l.Message
		}
		finding(string(l.State), l.Name, plain(detail), plain(l.Hint))
	}
	if *asJSON {
		if code := tellJSON("doctor", found); code != exitOK {
			return code
		}
	} else {
		found.print()
	}
	if err != nil {
		return fail("doctor", err)
	}
	if ready == 0 {
		fmt.Fprintln(os.Stderr, "cellard doctor: no language is ready")
		return exitError
	}
	return exitOK
}

// plain is a text in one line, however long.
func plain(s string) string { return strings.Join(strings.Fields(s), " ") }

// vsockWay tells whether a host can call by vsock, of what was found and of how the device
// could be opened: a user who can't has no answer, not a no.
func vsockWay(guest bool, opened error) (state, detail, hint string) {
	switch {
	case guest:
		return "ready", "a host can call by vsock", ""
	case errors.Is(opened, fs.ErrPermission):
		return "missing", "this user can't open /dev/vsock", "start the agent as root, let the user open it, or serve on a Unix socket or TCP"
	}
	return "missing", "this machine is no guest with vsock", "give the VM a vsock device, or serve on a Unix socket or TCP"
}

// hostWays tells how a host could call here, and whether an agent serves already.
func hostWays(ctx context.Context, finding func(state, what, detail, hint string)) {
	device, err := os.Open("/dev/vsock")
	if err == nil {
		device.Close()
	}
	state, detail, hint := vsockWay(server.VsockGuest(), err)
	finding(state, "vsock", detail, hint)
	for _, a := range defaultAddresses(false) {
		if _, err := os.Stat(strings.TrimPrefix(a, "unix://")); err != nil {
			finding("idle", "agent", "none serves on "+a, "cellard serve starts one")
			continue
		}
		c, err := client.New(a, client.Options{DialTimeout: 2 * time.Second, AnswerTimeout: 2 * time.Second, Retries: -1})
		if err == nil {
			_, err = c.Health(ctx)
			c.Close()
		}
		if err != nil {
			finding("missing", "agent", fmt.Sprintf("the one on %s does not answer: %v", a, err), "remove the socket if no agent runs, and start one")
			continue
		}
		finding("ready", "agent", "one serves on "+a, "")
	}
}
