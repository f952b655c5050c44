package compiler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/cellard/cellard/kernels/golang/wire"
)

// noPackage marks the importer's error among the checker's words.
const noPackage = "\u00B7"

// Session compiles the cells of one kernel. Its methods are called one at a time.
type Session struct {
	tools    tools
	archives archives
	fset     *token.FileSet
	modules  modules
	built    []string // the files that every cell is made with, which were built once
	*Rewriter
}

// New returns a Session in which nothing is declared, but what the cells have of the one
// before it, if it is told of any.
func New(o wire.Options) (*Session, error) {
	cfg, err := os.ReadFile(o.Importcfg)
	if err != nil {
		return nil, err
	}
	linker, err := json.Marshal(o.Linker)
	if err != nil {
		return nil, err
	}
	s := &Session{
		tools: tools{goroot: o.Goroot, language: o.Language, dir: o.Dir, linker: []string{"-extld", o.LinkProgram},
			env: []string{wire.LinkerVariable + "=" + string(linker)}},
		archives: archives{},
		fset:     token.NewFileSet(),
		modules:  modules{dir: filepath.Join(o.Dir, "module"), cache: o.Cache, shared: o.Shared, goroot: o.Goroot, language: o.Language},
	}
	s.archives.readImportcfg(string(cfg))
	s.built = []string{o.LinkProgram, o.Importcfg}
	for _, file := range s.archives {
		s.built = append(s.built, file)
	}
	if s.archives[RuntimePath] == "" {
		return nil, fmt.Errorf("%s: %s is not in it: remove the directory, so that it is made anew", o.Importcfg, RuntimePath)
	}
	s.Rewriter = NewRewriter(&packages{s: s, gc: importer.ForCompiler(s.fset, "gc", s.lookup)}, o.Language)
	if o.Past != "" {
		if err := s.takeOver(o); err != nil {
			return nil, fmt.Errorf("the cells before: %w", err)
		}
	}
	return s, nil
}

// gone tells of a file that was removed since this session began, of those that were built
// for all cells: any step may fail for want of one, and each in words of its own.
func (s *Session) gone() error {
	for _, file := range s.built {
		if _, err := os.Stat(file); err != nil {
			return fmt.Errorf("what was built for Go cells is gone (%w): restart the kernel, which builds it anew", err)
		}
	}
	return nil
}

// lookup opens a package's archive.
func (s *Session) lookup(path string) (io.ReadCloser, error) {
	file := s.archives[path]
	if file == "" {
		return nil, errNoArchive
	}
	return os.Open(file)
}

// packages is the importer of the checker.
type packages struct {
	s  *Session
	gc types.Importer
}

// Named are the packages of the standard library whose paths end with a name.
func (p *packages) Named(name string) (paths []string) {
	for path := range p.s.archives {
		if isStandard(path) && path[strings.LastIndex(path, "/")+1:] == name {
			paths = append(paths, path)
		}
	}
	return paths
}

// Import gives a package's types. Its error says what to do, between noPackage and the
// checker's parenthesis.
func (p *packages) Import(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	if p.s.archives[path] == "" {
		return nil, errors.New(noPackage + p.s.modules.missing(path))
	}
	pkg, err := p.gc.Import(path)
	if err != nil {
		if gone := p.s.gone(); gone != nil {
			err = gone
		}
		return nil, fmt.Errorf("%s%s: %w", noPackage, path, err)
	}
	return pkg, nil
}

// Compile makes a plugin of a cell, or a program of one that needs none, unless the
// worker could not make sense of that (whole). The error is an *Errors, the cause of the end of
// ctx, or tells that the toolchain does not work. Nothing of a cell that fails is kept.
func (s *Session) Compile(ctx context.Context, name, code string, whole bool) (*wire.Result, error) {
	split, err := split(name, code)
	if err != nil {
		return nil, err
	}
	parsed, err := split.parse()
	if err != nil {
		return nil, err
	}
	result := &wire.Result{}
	for _, args := range split.get {
		note, err := s.get(ctx, args)
		if err != nil {
			return nil, split.wrap(err)
		}
		result.Notes = append(result.Notes, note)
	}
	if len(split.segments) == 0 {
		return result, nil
	}
	if err := s.resolve(ctx, parsed); err != nil {
		return nil, split.wrap(err)
	}
	m, checked, err := s.check(parsed)
	if err != nil {
		return nil, err
	}
	if !whole {
		if result.Direct = checked.direct(s.cells); result.Direct != nil {
			result.Number = m.number
			if result.Lasts = s.lasts(m); result.Lasts {
				s.keep(m)
			}
			return result, nil
		}
	}
	text, err := checked.emit(s.cells, m)
	if err != nil {
		return nil, err
	}
	if result.Plugin, err = s.build(ctx, m, text); err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		if gone := s.gone(); gone != nil {
			return nil, gone
		}
		var tool *toolError
		if errors.As(err, &tool) {
			return nil, checked.fromTool(tool)
		}
		return nil, err
	}
	result.Number, result.Lasts = m.number, true
	s.keep(m)
	return result, nil
}

// wrap makes an error that is no place's the cell's.
func (c *cell) wrap(err error) error {
	var list *Errors
	if errors.As(err, &list) || errors.Is(err, context.Canceled) {
		return err
	}
	return &Errors{Cell: c.name, List: []Error{{Line: 1, Column: 1, Message: err.Error()}}}
}

// build compiles and links a cell's package, and a main package that imports it.
func (s *Session) build(ctx context.Context, m *made, text string) (plugin string, err error) {
	base := filepath.Join(s.tools.dir, fmt.Sprintf("c%d", m.number))
	main := filepath.Join(s.tools.dir, fmt.Sprintf("p%d", m.number))
	cfg := base + ".cfg"
	defer func() {
		for _, file := range []string{base + ".go", main + ".go", main + ".a", cfg} {
			os.Remove(file)
		}
		if err != nil {
			os.Remove(base + ".a")
			os.Remove(main + ".so")
			left, _ := filepath.Glob(filepath.Join(s.tools.dir, "go-link-*"))
			for _, dir := range left {
				os.RemoveAll(dir)
			}
			delete(s.archives, m.path)
		}
	}()
	if err := os.WriteFile(base+".go", []byte(text), 0o600); err != nil {
		return "", err
	}
	if err := os.WriteFile(cfg, []byte(s.archives.importcfg()), 0o600); err != nil {
		return "", err
	}
	archive, err := s.tools.compile(ctx, m.path, base+".go", cfg)
	if err != nil {
		return "", err
	}
	s.archives[m.path] = archive
	if err := os.WriteFile(cfg, []byte(s.archives.importcfg()), 0o600); err != nil {
		return "", err
	}
	if err := os.WriteFile(main+".go", []byte("package main\nimport _ "+strconv.Quote(m.path)+"\n"), 0o600); err != nil {
		return "", err
	}
	path := "cell/p" + strconv.Itoa(m.number)
	mainArchive, err := s.tools.compile(ctx, path, main+".go", cfg)
	if err != nil {
		return "", err
	}
	return main + ".so", s.tools.link(ctx, path, mainArchive, cfg, main+".so")
}

var toolLine = regexp.MustCompile(`(?m)^.*?In\[\d+\]:(\d+)(?::(\d+))?: (.*)$`)

// fromTool makes what the compiler says the cell's error. The checker has found all
// that it knows, so this is rare.
func (c *checked) fromTool(e *toolError) error {
	out := &Errors{Cell: c.cell.name}
	for _, m := range toolLine.FindAllStringSubmatch(e.output, maxErrors) {
		line, _ := strconv.Atoi(m[1])
		column, _ := strconv.Atoi(m[2])
		one := Error{Line: line, Column: column, Message: wire.Unmark(m[3])}
		if lines := strings.Split(c.text[c.begin:], "\n"); line >= 1 && line <= len(lines) {
			one.Source = lines[line-1]
		}
		out.List = append(out.List, one)
	}
	if len(out.List) == 0 {
		out.List = []Error{{Line: 1, Column: 1, Message: e.Error()}}
	}
	return out
}
