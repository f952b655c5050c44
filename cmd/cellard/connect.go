package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/cellard/cellard/client"
	"github.com/cellard/cellard/internal/environ"
	"github.com/cellard/cellard/kernels/golang"
	"github.com/cellard/cellard/protocol/api"
	"github.com/cellard/cellard/server"
	"github.com/cellard/cellard/supervisor"
)

// callFlags are the flags of every command that calls an agent.
type callFlags struct {
	agent     string
	tokenFile string
	own       *agentFlags // of an agent in this process; nil where the command has none
	here      bool        // without --agent the command calls none that serves
	fs        *flagSet
}

// usageError says what of the command itself is wrong.
type usageError string

func (e usageError) Error() string { return string(e) }

// check refuses a flag of the command's that would do nothing. What the environment says
// is for other commands too.
func (f *callFlags) check() error {
	for _, name := range f.fs.given() {
		if f.agent != "" && f.fs.agent[name] {
			return usageError(fmt.Sprintf("%s is for an agent of the command's own, not for one that serves already: give it to cellard serve there, or leave --agent out", dashed(name)))
		}
		if f.agent == "" && f.here && name == "token-file" {
			return usageError("--token-file is for --agent, which is missing")
		}
		if f.agent == "" && f.here && name == "context" {
			return usageError("--context names a context of an agent that serves, and --agent, which names that, is missing: name it, or leave --context out")
		}
	}
	return nil
}

func newCallFlags(fs *flagSet, own bool) *callFlags {
	if !own {
		return addressFlags(fs, "the one on this machine's default socket")
	}
	others := map[string]bool{}
	fs.VisitAll(func(f *flag.Flag) { others[f.Name] = true })
	agent := newAgentFlags(fs, slog.LevelWarn)
	fs.VisitAll(func(f *flag.Flag) { fs.agent[f.Name] = !others[f.Name] })
	f := addressFlags(fs, "one of its own, which ends with the command")
	f.own, f.here = agent, true
	return f
}

// addressFlags are the flags that name an agent which serves. about is what is called
// without them.
func addressFlags(fs *flagSet, about string) *callFlags {
	f := &callFlags{fs: fs}
	fs.StringVar(&f.agent, "agent", "", "`URL` of the agent to call: unix:///PATH, vsock://CID:52, firecracker:///PATH/v.sock?port=52 or http://HOST:PORT (default: "+about+")")
	if fs.Lookup("token-file") == nil {
		fs.StringVar(&f.tokenFile, "token-file", "", "`FILE` with the bearer token for --agent http://…; or "+tokenVariable)
	}
	return f
}

// agentCall is a client of an agent, and what goes with it.
type agentCall struct {
	*client.Client
	ours     bool            // the agent is of this process
	keep     bool            // files of the agent's stay: their paths were shown
	boundary string          // who cells run as, where that is another user than the agent
	noGroups error           // why kernels have no control groups, where they have none
	stop     func(keep bool) // ends an agent of this process

	workspace func(context.Context) (dir string, writable bool) // of an agent of this process
}

// Close drops the connections, and ends an agent of this process.
func (c *agentCall) Close() {
	c.Client.Close()
	if c.stop != nil {
		c.stop(c.keep)
	}
}

// open makes the client that the flags describe, and the agent, where it is to be one
// of this process. The caller closes it.
func (f *callFlags) open(ctx context.Context) (*agentCall, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	token := os.Getenv(tokenVariable)
	// The environment is inherited by what an agent of this process starts.
	if err := os.Unsetenv(tokenVariable); err != nil {
		return nil, err
	}
	var err error
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if f.tokenFile != "" {
		if token, err = readToken(f.tokenFile, log); err != nil {
			return nil, err
		}
	}
	address := f.agent
	if address == "" {
		if f.own != nil {
			return f.start(ctx)
		}
		for _, a := range defaultAddresses(false) {
			if _, err := os.Stat(strings.TrimPrefix(a, "unix://")); err == nil {
				address = a
			}
		}
		if address == "" {
			return nil, fmt.Errorf("no agent serves on %s; start one (cellard serve), or name one with --agent", strings.Join(defaultAddresses(false), ", "))
		}
	}
	c, err := client.New(address, client.Options{Token: token, DialTimeout: 5 * time.Second})
	if err != nil {
		return nil, usageError("--agent: " + err.Error())
	}
	return &agentCall{Client: c}, nil
}

// start starts an agent in this process, on a socket that nobody else can reach.
func (f *callFlags) start(ctx context.Context) (_ *agentCall, err error) {
	// The workspace's own place may be that of an agent that serves.
	state, err := os.MkdirTemp("", "cellard-run-")
	if err != nil {
		return nil, err
	}
	var m *supervisor.Manager
	var s *server.Server
	stop := func(keep bool) {
		ctx, cancel := context.WithTimeout(context.Background(), stopTime)
		defer cancel()
		if m != nil {
			_ = m.Shutdown(ctx)
		}
		if s != nil {
			_ = s.Close()
		}
		if !keep { // else for whoever reads the paths
			_ = environ.RemoveAll(state)
		}
	}
	defer func() {
		if err != nil {
			stop(false)
		}
	}()
	if err := os.Chmod(state, 0o755); err != nil { // the cells' user looks there
		return nil, err
	}
	f.own.o.StateDir = state
	log, err := f.own.logger()
	if err != nil {
		return nil, err
	}
	if m, err = f.own.manager(log); err != nil {
		return nil, err
	}
	socket := filepath.Join(f.own.o.RuntimeDir, "run.sock")
	lo := server.ListenOptions{}
	boundary := ""
	if name, ok := m.Boundary(); ok {
		boundary = name
		lo.CellUIDs = []int{m.CellUID()}
		// The home that the agent makes for an account without one goes with the command.
		if err := keepGoCache(m.CellUID(), golang.KeptIn); err != nil {
			return nil, err
		}
	}
	l, err := server.Listen("unix://"+socket, lo)
	if err != nil {
		return nil, err
	}
	s = server.New(server.Options{Manager: m, Version: versionString(), Logger: log, MaxBody: 1 << 30})
	go func() { _ = s.Serve(l) }() // ends by Close
	c, err := client.New("unix://"+socket, client.Options{})
	if err != nil {
		return nil, err
	}
	return &agentCall{Client: c, ours: true, boundary: boundary, noGroups: m.Groups(), stop: stop, workspace: m.Workspace}, nil
}

// keepGoCache has what Go cells are built with stay for the next command, in a directory in
// temp of the account that cells run as, unless that has a home of its own or another
// directory was named. The kernel makes it: nobody else's is taken, nor what a link leads to.
func keepGoCache(uid int, temp string) error {
	if os.Getenv(golang.CacheVariable) != "" {
		return nil
	}
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil && ownedBy(uid, u.HomeDir) == nil {
		return nil
	}
	dir := golang.KeptCache(temp, uid)
	if err := ownedBy(uid, dir); err != nil && !errors.Is(err, fs.ErrNotExist) || !isDir(temp) {
		return nil // another's is in the way
	}
	return os.Setenv(golang.CacheVariable, dir)
}

// The exit codes of the commands that run cells: a different one for each status.
const (
	exitOK          = 0
	exitError       = 1 // the code raised
	exitUsage       = 2
	exitAgent       = 3 // it refused, or could not be reached
	exitTimeout     = 4
	exitLost        = 5
	exitInterrupted = 130 // as a shell has it
)

func exitOf(s api.Status) int {
	switch s {
	case api.StatusOK:
		return exitOK
	case api.StatusError:
		return exitError
	case api.StatusTimeout:
		return exitTimeout
	case api.StatusLost:
		return exitLost
	case api.StatusInterrupted:
		return exitInterrupted
	}
	return exitAgent
}

// tellJSON prints v as a line of JSON.
func tellJSON(command string, v any) int {
	b, err := api.Marshal(v)
	if err == nil {
		_, err = os.Stdout.Write(append(b, '\n'))
	}
	if err != nil {
		return fail(command, err)
	}
	return exitOK
}

// shown leaves out of a text what a terminal would obey, and keeps its lines.
func shown(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return ' '
		}
		return r
	}, s)
}

// fail says what went wrong, and what to do.
func fail(command string, err error) int {
	var e *api.Error
	var dial *net.OpError
	var usage usageError
	code := exitAgent
	message, hint := err.Error(), ""
	switch {
	case errors.As(err, &e):
		message, hint = e.Message, strings.NewReplacer("POST /v1/interpreter/contexts", "cellard contexts create", "GET /v1/languages", "cellard doctor").Replace(e.Hint)
		if e.Code == api.CodeUnauthorized && strings.Contains(e.Message, "token") {
			hint = "give the token that the agent was started with, by --token-file FILE or " + tokenVariable
		}
	case errors.As(err, &usage):
		code = exitUsage
	case errors.As(err, &dial) && dial.Op == "dial" && errors.Is(err, fs.ErrPermission):
		hint = "another user's agent serves there; it has to be started with --allow-uid " + strconv.Itoa(os.Getuid()) + ", or call it as its own user"
	case strings.Contains(message, "HTTP response to HTTPS client"):
		hint = "an agent speaks plain HTTP: name it as http://HOST:PORT; https:// is for one behind a proxy"
	case errors.As(err, &dial) && dial.Op == "dial":
		hint = "no agent serves there; start one (cellard serve), or name another with --agent"
	}
	fmt.Fprintf(os.Stderr, "cellard %s: %s\n", command, shown(message))
	if hint != "" {
		fmt.Fprintf(os.Stderr, "  %s\n", shown(hint))
	}
	return code
}

// ready makes the context that a command runs its cells in, where it must: an agent of
// this process has none yet, and makes but languages' own by itself.
func (c *agentCall) ready(ctx context.Context, id, language string) error {
	if !c.ours || id == "" || id == language {
		return nil
	}
	if language == "" {
		all, err := c.Languages(ctx)
		if err != nil || slices.ContainsFunc(all, func(l api.Language) bool { return l.Name == id }) {
			return err
		}
		language = "python"
	}
	_, err := c.CreateContext(ctx, api.ContextRequest{ID: id, Language: language})
	return err
}
