package compiler

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cellard/cellard/kernels/golang/wire"
)

// modules is the session's Go module, by which cells import what isn't of the standard
// library.
type modules struct {
	dir, cache, shared, goroot, language string
	got                                  bool
}

// get gets modules for the session, as go get would.
func (s *Session) get(ctx context.Context, args []string) (note string, err error) {
	for _, a := range args {
		if strings.HasPrefix(a, "-") && a != "-u" && a != "-t" {
			return "", fmt.Errorf("get: the flag %s is not known here: name modules, with @version", a)
		}
	}
	out, err := s.modules.run(ctx, append([]string{"get"}, args...)...)
	if err != nil {
		return "", err
	}
	s.modules.got = true
	return strings.TrimSpace(out), nil
}

// run runs the go command in the session's module.
func (m *modules) run(ctx context.Context, args ...string) (string, error) {
	if err := m.prepare(); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(m.goroot, "bin", "go"), args...)
	cmd.Dir = m.dir
	cmd.Env = append(os.Environ(), "GOROOT="+m.goroot, "GOFLAGS=-mod=mod -trimpath", "GOTOOLCHAIN=local", "GOWORK=off",
		"GO111MODULE=on", "CGO_ENABLED=1", "GOCACHE="+m.cache,
		"GOTMPDIR="+filepath.Dir(m.dir), // what a go command that is killed leaves goes with the session
		"GO_TELEMETRY_CHILD=2",          // no process in the background, see the kernel's noSidecar
		wire.NoIndex(os.Getenv("GODEBUG")))
	out, said := &limited{max: 16 << 20}, &limited{max: maxToolOutput}
	cmd.Stdout, cmd.Stderr = out, said
	err := runGroup(cmd)
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		return "", fmt.Errorf("go %s: %s%s", strings.Join(args[:1], " "), strings.TrimSpace(said.String()), offline(said.String()))
	}
	if args[0] == "get" {
		return said.String(), nil
	}
	return out.String(), nil
}

// offline is a hint for an error that the network is the cause of.
func offline(text string) string {
	for _, sign := range []string{"dial tcp", "no such host", "connection refused", "i/o timeout", "network is unreachable", "module lookup disabled"} {
		if strings.Contains(text, sign) {
			return "\nthe module proxy can't be reached: put the module into the image's module cache (GOMODCACHE), or set GOPROXY to one that can"
		}
	}
	return ""
}

// prepare makes the module if it isn't there.
func (m *modules) prepare() error {
	file := filepath.Join(m.dir, "go.mod")
	if _, err := os.Stat(file); err == nil {
		return nil
	}
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		return err
	}
	// Without it a module's first use takes minutes, and works.
	_ = seed(m.cache, m.shared)
	return os.WriteFile(file, []byte("module session\n\ngo "+strings.TrimPrefix(m.language, "go")+"\n"), 0o600)
}

// missing says what to do about a package that there is no archive of.
func (m *modules) missing(path string) string {
	if first, _, _ := strings.Cut(path, "/"); !strings.Contains(first, ".") {
		return fmt.Sprintf("package %s is not in the standard library of this toolchain", path)
	}
	return fmt.Sprintf("no module that was got has the package %s: run %%get %s first", path, path)
}

// resolve builds the packages of modules that a cell imports and that have no archive
// yet.
func (s *Session) resolve(ctx context.Context, p *parsed) error {
	var paths []string
	for _, d := range p.decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.IMPORT {
			continue
		}
		for _, spec := range g.Specs {
			path, err := strconv.Unquote(spec.(*ast.ImportSpec).Path.Value)
			first, _, _ := strings.Cut(path, "/")
			if err == nil && s.modules.got && s.archives[path] == "" && strings.Contains(first, ".") && path != RuntimePath {
				paths = append(paths, path)
			}
		}
	}
	if len(paths) == 0 {
		return nil
	}
	out, err := s.modules.run(ctx, append([]string{"list", "-buildmode=plugin", "-export", "-deps",
		"-f", "{{if .Export}}packagefile {{.ImportPath}}={{.Export}}{{end}}", "--"}, paths...)...)
	if err != nil {
		return err
	}
	found := archives{}
	found.readImportcfg(out)
	for path, file := range found {
		// What is loaded stays as it is: another build of it could not be loaded.
		if s.archives[path] == "" {
			s.archives[path] = file
		}
	}
	return nil
}

// seed gives a build cache that isn't there yet the entries of another, so that the
// standard library isn't built anew. They are copied: what a link points to may go.
func seed(cache, from string) error {
	if from == "" {
		return nil
	}
	if _, err := os.Stat(cache); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(cache), 0o700); err != nil {
		return err
	}
	temp, err := os.MkdirTemp(filepath.Dir(cache), "seed-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	err = filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(temp, strings.TrimPrefix(path, from))
		switch {
		case d.IsDir():
			return os.MkdirAll(to, 0o700)
		case d.Type().IsRegular():
			return copyFile(path, to)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return os.Rename(temp, cache)
}

// copyFile copies a file, by a link where it can.
func copyFile(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
