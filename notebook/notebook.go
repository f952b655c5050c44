package notebook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// MaxFile bounds a notebook's file in bytes.
const MaxFile = 256 << 20

// Notebook is one of nbformat 4. What is not looked at here is kept as it is: the whole is
// a JSON value.
type Notebook struct {
	File  string
	Root  map[string]any
	Cells []map[string]any
}

// Read reads a file. An error says what is wrong with it, and what to do.
func Read(file string) (*Notebook, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return nil, err
	}
	if len(b) > MaxFile {
		return nil, fmt.Errorf("%s has over %d bytes; clear its outputs", file, MaxFile)
	}
	nb := &Notebook{File: file}
	if err := decode(b, &nb.Root); err != nil {
		return nil, fmt.Errorf("%s is no notebook: %w", file, err)
	}
	if v, ok := nb.Root["nbformat"].(json.Number); !ok || v != "4" {
		return nil, fmt.Errorf("%s is no notebook of nbformat 4; jupyter nbconvert --to notebook makes one of an older one", file)
	}
	all, _ := nb.Root["cells"].([]any)
	for i, c := range all {
		cell, ok := c.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s: cell %d is no object", file, i+1)
		}
		if !isSource(cell["source"]) {
			return nil, fmt.Errorf("%s: the source of cell %d is neither text nor a list of lines", file, i+1)
		}
		nb.Cells = append(nb.Cells, cell)
	}
	return nb, nil
}

func isSource(v any) bool {
	switch v := v.(type) {
	case nil, string:
		return true
	case []any:
		return !slices.ContainsFunc(v, func(line any) bool { _, ok := line.(string); return !ok })
	}
	return false
}

// decode keeps numbers as they were written.
func decode(b []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	return d.Decode(into)
}

// Language is the one that the notebook's kernelspec stands for.
func (nb *Notebook) Language() string {
	name := text(at(nb.Root, "metadata", "kernelspec", "name"))
	switch lang := strings.ToLower(text(at(nb.Root, "metadata", "kernelspec", "language"))); {
	case name == "python3" || lang == "python":
		return "python"
	case name == "ir":
		return "r"
	case name != "":
		return strings.ToLower(name)
	}
	if lang := strings.ToLower(text(at(nb.Root, "metadata", "language_info", "name"))); lang != "" {
		return lang
	}
	return "python"
}

// SetLanguageInfo notes which language ran it, as LanguageInfo gives it.
func (nb *Notebook) SetLanguageInfo(info json.RawMessage) {
	if len(info) > 0 && string(info) != "null" {
		metadata(nb.Root)["language_info"] = info
	}
}

// Source is a cell's text.
func Source(cell map[string]any) string { return joined(cell["source"]) }

// HasTag tells whether a cell has a tag.
func HasTag(cell map[string]any, tag string) bool {
	tags, _ := at(cell, "metadata", "tags").([]any)
	return slices.Contains(tags, any(tag))
}

// SetTiming notes when a cell ran; nil takes away what an earlier run has noted.
func SetTiming(cell map[string]any, times map[string]string) {
	if times == nil {
		times = map[string]string{}
	}
	metadata(cell)["execution"] = times
}

// metadata is the metadata of a notebook or a cell, made where there is none.
func metadata(of map[string]any) map[string]any {
	m, ok := of["metadata"].(map[string]any)
	if !ok {
		m = map[string]any{}
		of["metadata"] = m
	}
	return m
}

// Save replaces the file as a whole: who reads it meanwhile sees no half of it.
func (nb *Notebook) Save(file string) error {
	f, err := os.CreateTemp(filepath.Dir(file), ".cellard-*.ipynb")
	if err != nil {
		var e *os.PathError
		if errors.As(err, &e) {
			err = e.Err
		}
		return &os.PathError{Op: "write", Path: file, Err: err} // not that of a name nobody has asked for
	}
	defer os.Remove(f.Name())
	mode := os.FileMode(0o644)
	if fi, err := os.Stat(file); err == nil {
		mode = fi.Mode().Perm()
	}
	e := json.NewEncoder(f)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ") // as nbformat writes it
	err = e.Encode(nb.Root)
	err = errors.Join(err, f.Chmod(mode), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}

func at(v any, keys ...string) any {
	for _, k := range keys {
		m, _ := v.(map[string]any)
		v = m[k]
	}
	return v
}

func text(v any) string { s, _ := v.(string); return s }

// joined is a text that nbformat may hold as a list of lines.
func joined(v any) string {
	if l, ok := v.([]any); ok {
		var b strings.Builder
		for _, s := range l {
			b.WriteString(text(s))
		}
		return b.String()
	}
	return text(v)
}

// Lines is a text that is written as nbformat does it: as a list of lines with their ends.
type Lines string

// maxLines is how many lines are written as a list. A text of more is written as one
// string, which is as valid: 8 million lines without a letter would take 100 MB.
const maxLines = 50_000

// MarshalJSON writes a list, or for very many lines a string.
func (l Lines) MarshalJSON() ([]byte, error) {
	if strings.Count(string(l), "\n") > maxLines {
		return marshal(string(l))
	}
	list := []string{}
	for line := range strings.Lines(string(l)) {
		list = append(list, line)
	}
	return marshal(list)
}

// marshal is json.Marshal without the escapes for HTML.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
