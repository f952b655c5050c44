package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"text/tabwriter"

	"github.com/cellard/cellard/kernels"
	"github.com/cellard/cellard/kernels/install"
	"github.com/cellard/cellard/protocol/api"
)

const aboutLanguages = `
cellard languages tells which languages can be run here, or where the agent of --agent is. With
install it installs those that are not there, and prepares what makes their first start
quicker: for when an image is made.

Usage: cellard languages [flags]
       cellard languages [flags] install NAME ...
`

// languages is the command of that name.
func languages(args []string) int {
	fs := newFlags("languages")
	python := fs.String("python", "", "`COMMAND` that starts Python, as in \"uv run python\" (default: that of an active environment, else of the PATH)")
	asJSON := fs.Bool("json", false, "print each language as a line of JSON, as GET /v1/languages has it")
	call := addressFlags(fs, "none, and what can be run here is told")
	call.here = true
	var names []string
	code, ok := parseMixed(fs, args, aboutLanguages, func(arg string) error {
		names = append(names, arg)
		return nil
	})
	if !ok {
		return code
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	for _, name := range fs.given() {
		switch {
		case len(names) > 0 && name != "python":
			fmt.Fprintf(os.Stderr, "cellard languages: %s is for the list; what is installed is so on this machine\n", dashed(name))
			return exitUsage
		case call.agent != "" && name == "python":
			fmt.Fprintln(os.Stderr, "cellard languages: --python is for this machine: an agent that serves has its own; leave --agent out, or --python")
			return exitUsage
		}
	}
	if len(names) == 0 && call.agent != "" {
		return agentLanguages(ctx, call, *asJSON)
	}
	if err := call.check(); err != nil {
		return fail("languages", err)
	}
	installer := install.New(install.Options{Enabled: true, Privileged: os.Geteuid() == 0})
	defer installer.Close()
	catalogue := kernels.New(kernels.Options{Python: *python, Installer: installer})
	switch {
	case len(names) == 0:
		return showLanguages(catalogue.Languages(ctx), *asJSON)
	case names[0] == "install" && len(names) > 1:
		return installLanguages(ctx, catalogue, names[1:], os.Stderr)
	case names[0] == "install":
		fmt.Fprintln(os.Stderr, "cellard languages install: name at least one language")
	default:
		fmt.Fprintf(os.Stderr, "cellard languages: there is no %q; only: cellard languages install NAME ...\n", names[0])
	}
	return exitUsage
}

func agentLanguages(ctx context.Context, call *callFlags, asJSON bool) int {
	c, err := call.open(ctx)
	if err != nil {
		return fail("languages", err)
	}
	defer c.Close()
	all, err := c.Languages(ctx)
	if err != nil {
		return fail("languages", err)
	}
	return showLanguages(all, asJSON)
}

func showLanguages(all []api.Language, asJSON bool) int {
	if !asJSON {
		return listLanguages(all, os.Stdout)
	}
	for _, l := range all {
		if code := tellJSON("languages", l); code != exitOK {
			return code
		}
	}
	return exitOK
}

func listLanguages(all []api.Language, w io.Writer) int {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, l := range all {
		about := l.Path
		if l.Message != "" {
			about += ": " + l.Message + "; " + l.Hint
		}
		if l.State != api.LanguageReady {
			about = l.Hint
			if l.State == api.LanguageMissing {
				about = l.Message + "; " + l.Hint
			}
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", shown(l.Name), l.State, shown(l.Kernel.Name+" "+l.Kernel.Version), shown(plain(about)))
	}
	if err := t.Flush(); err != nil {
		return fail("languages", err)
	}
	return exitOK
}

// installLanguages installs and warms each; one that fails doesn't keep the others.
func installLanguages(ctx context.Context, c *kernels.Catalogue, names []string, w io.Writer) int {
	code := 0
	for _, name := range names {
		tell := func(text string) { fmt.Fprintf(w, "%s: %s\n", name, text) }
		if err := installLanguage(ctx, c, name, tell); err != nil {
			tell(err.Error()) // with its hint
			code = 1
		}
	}
	return code
}

func installLanguage(ctx context.Context, c *kernels.Catalogue, name string, tell func(string)) error {
	if _, err := c.Launch(ctx, name); err != nil {
		if _, err := c.Install(ctx, name, tell); err != nil {
			return err
		}
	}
	if err := c.Warm(ctx, name, tell); err != nil {
		return fmt.Errorf("it can be run, but its first start could not be made quicker: %w", err)
	}
	tell("ready")
	return nil
}
