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
cellard languages tells which languages can be run here. With install it installs those
that are not there, and prepares what makes their first start quicker: for when an image
is made.

Usage: cellard languages [flags]
       cellard languages [flags] install NAME ...
`

// languages is the command of that name.
func languages(args []string) int {
	fs := newFlags("languages")
	python := fs.String("python", "", "`COMMAND` that starts Python, as in \"uv run python\" (default: that of an active environment, else of the PATH)")
	code, ok := parse(fs, args, aboutLanguages, len(args))
	if !ok {
		return code
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	installer := install.New(install.Options{Enabled: true, Privileged: os.Geteuid() == 0})
	defer installer.Close()
	catalogue := kernels.New(kernels.Options{Python: *python, Installer: installer})
	names := fs.Args()
	if len(names) > 1 && names[0] == "install" {
		switch names[1] { // flags after it, of which there is but this
		case "-h", "-help", "--help":
			help(os.Stdout, fs, aboutLanguages)
			return 0
		}
	}
	switch {
	case len(names) == 0:
		return listLanguages(ctx, catalogue, os.Stdout)
	case names[0] == "install" && len(names) > 1:
		return installLanguages(ctx, catalogue, names[1:], os.Stderr)
	case names[0] == "install":
		fmt.Fprintln(os.Stderr, "cellard languages install: name at least one language")
	default:
		fmt.Fprintf(os.Stderr, "cellard languages: there is no %q; only: cellard languages install NAME ...\n", names[0])
	}
	return 2
}

func listLanguages(ctx context.Context, c *kernels.Catalogue, w io.Writer) int {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, l := range c.Languages(ctx) {
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
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", l.Name, l.State, l.Kernel.Name+" "+l.Kernel.Version, about)
	}
	if err := t.Flush(); err != nil {
		return 1
	}
	return 0
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
