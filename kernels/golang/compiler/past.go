package compiler

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/cellard/cellard/kernels/golang/wire"
)

// takeOver makes what the cells of an earlier Session have declared this one's: they are
// checked again, each against those before it, and nothing is compiled, for their
// archives are there.
func (s *Session) takeOver(o wire.Options) error {
	left, _ := filepath.Glob(filepath.Join(o.Dir, "go-link-*"))
	for _, dir := range left {
		os.RemoveAll(dir)
	}
	_, err := os.Stat(filepath.Join(s.modules.dir, "go.mod"))
	s.modules.got = err == nil
	f, err := os.Open(o.Past)
	if err != nil {
		return err
	}
	defer f.Close()
	for in := json.NewDecoder(bufio.NewReader(f)); ; {
		var p wire.Past
		if err := in.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		if err := s.replay(p); err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
	}
	s.number = max(s.number, o.Number)
	return nil
}

// replay does what Compile and Commit have done to the Session before.
func (s *Session) replay(p wire.Past) error {
	split, err := split(p.Name, p.Code)
	if err != nil {
		return err
	}
	parsed, err := split.parse()
	if err != nil {
		return err
	}
	if err := s.resolve(context.Background(), parsed); err != nil {
		return err
	}
	s.number = p.Number - 1
	m, checked, err := s.check(parsed)
	if err != nil {
		return err
	}
	if !p.Direct {
		if _, err := checked.emit(s.cells, m); err != nil { // for what it notes in m
			return err
		}
		s.archives[m.path] = s.archive(m)
	}
	s.keep(m)
	s.Commit(m.number, p.Done)
	return nil
}

// archive is where a cell's package is.
func (s *Session) archive(m *made) string {
	return filepath.Join(s.tools.dir, fmt.Sprintf("c%d.a", m.number))
}
