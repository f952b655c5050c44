package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// source is a cell to be run, and where it comes from.
type source struct {
	name string // -c, -, or a file's
	code string
}

func readCode(file string) (string, error) {
	var b []byte
	var err error
	if file == "-" {
		b, err = io.ReadAll(os.Stdin)
	} else {
		b, err = os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) && strings.ContainsAny(file, " ()=;\n\"'") {
			err = fmt.Errorf("there is no file %q; code goes after -c", file)
		}
	}
	return string(b), err
}

// takeLanguage takes the language from the files, where none was asked for.
func (f *runFlags) takeLanguage() error {
	if f.req.Language != "" || f.req.Context != "" {
		return nil
	}
	named := "" // the file that it is from
	for _, s := range f.sources {
		if s.name == "-c" {
			continue
		}
		language, err := s.language()
		switch {
		case err != nil:
			return err
		case language == "":
		case named != "" && language != f.req.Language:
			return fmt.Errorf("%s is %s and %s is %s: the cells of one command share a context; run each alone, or say --language", named, f.req.Language, s.name, language)
		default:
			f.req.Language, named = language, s.name
		}
	}
	return nil
}

// fits tells whether the files are of the language of the context that was asked for, as far
// as both are known. Without it a file would be run as what it is not.
func (f *runFlags) fits(ctx context.Context, c *agentCall) error {
	if f.req.Context == "" || f.req.Language != "" {
		return nil
	}
	for _, s := range f.sources {
		language, err := s.language()
		if s.name == "-c" || err != nil || language == "" {
			continue
		}
		of := f.req.Context // a language's own may be yet to be made
		if x, err := c.Context(ctx, f.req.Context); err == nil {
			of = x.Language
		}
		known := slices.ContainsFunc(endings, func(l struct{ language, endings string }) bool { return l.language == of })
		if known && of != language && (of != "typescript" || language != "javascript") {
			return usageError(fmt.Sprintf("%s is %s, and the context %s is of %s: name another context, or run it as that by --language %[4]s", s.name, language, f.req.Context, of))
		}
	}
	return nil
}

// endings are those of the files of each language.
var endings = []struct{ language, endings string }{
	{"python", ".py"},
	{"r", ".r"},
	{"javascript", ".js .mjs .cjs"},
	{"typescript", ".ts .mts .cts"},
	{"java", ".java .jsh"},
	{"bash", ".sh .bash"},
	{"go", ".go"},
}

// interpreters are the programs that a #! line names, without their versions.
var interpreters = map[string]string{"python": "python", "ipython": "python", "Rscript": "r", "node": "javascript", "nodejs": "javascript",
	"ts-node": "typescript", "tsx": "typescript", "java": "java", "bash": "bash", "sh": "bash"}

// language is that of a file by the ending of its name, else by its #! line. Without either
// it is none in particular. One that can't be told is refused: it would fail in another
// language, or worse, wouldn't.
func (s source) language() (string, error) {
	ending := strings.ToLower(filepath.Ext(s.name))
	var known []string
	for _, l := range endings {
		for _, e := range strings.Fields(l.endings) {
			if e == ending {
				return l.language, nil
			}
		}
		known = append(known, strings.ReplaceAll(l.endings, " ", ", ")+" ("+l.language+")")
	}
	program, ok := interpreter(s.code)
	language := interpreters[strings.TrimRight(program, "0123456789.")]
	switch {
	case language != "":
		return language, nil
	case ok:
		return "", fmt.Errorf("%s: its first line names %q, and no language is known by that: name one by --language", s.name, program)
	case ending != "" && s.name != "-":
		return "", fmt.Errorf("%s: no language is known by the ending %s: name one by --language; known are %s", s.name, ending, strings.Join(known, ", "))
	}
	return "", nil
}

// interpreter is the program that a #! line names, also by way of env.
func interpreter(code string) (string, bool) {
	line, ok := strings.CutPrefix(code, "#!")
	if !ok {
		return "", false
	}
	line, _, _ = strings.Cut(line, "\n")
	program := ""
	for _, word := range strings.Fields(line) {
		word = path.Base(word)
		if program = word; word != "env" && !strings.HasPrefix(word, "-") && !strings.Contains(word, "=") {
			break
		}
	}
	return program, program != ""
}
