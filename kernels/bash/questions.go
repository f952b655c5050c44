package bash

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/cellard/cellard/mime"
	"github.com/cellard/cellard/protocol/jupyter/kernel"
)

// maxMatches bounds a completion.
const maxMatches = 1000

// wordAt is the word around or before a position in code points: where it begins, in
// code points, and its text up to the position, and all of it.
func wordAt(code string, cursor int) (start int, before, whole string, first bool) {
	runes := []rune(code)
	cursor = max(0, min(cursor, len(runes)))
	isWord := func(r rune) bool { return !strings.ContainsRune(" \t\n;|&<>()`\"'={}[]$!", r) }
	start, end := cursor, cursor
	for start > 0 && isWord(runes[start-1]) {
		start--
	}
	for end < len(runes) && isWord(runes[end]) {
		end++
	}
	line := strings.TrimRight(string(runes[:start]), " \t{(!")
	first = line == "" || strings.ContainsRune("\n;|&(`", rune(line[len(line)-1]))
	for _, keyword := range []string{"then", "else", "do", "while", "until", "if", "elif", "time", "sudo", "exec", "command"} {
		first = first || line == keyword || strings.HasSuffix(line, " "+keyword) || strings.HasSuffix(line, "\n"+keyword) || strings.HasSuffix(line, ";"+keyword)
	}
	return start, string(runes[start:cursor]), string(runes[start:end]), first
}

// Complete completes the word before the cursor: a variable after "$", a command where
// one stands, and files.
func (k *Kernel) Complete(ctx context.Context, code string, cursor int) (kernel.Completion, error) {
	start, word, _, first := wordAt(code, cursor)
	runes := []rune(code)
	kinds := []struct{ action, name string }{{"file", "path"}}
	switch before := string(runes[:start]); {
	case strings.HasSuffix(before, "$") || strings.HasSuffix(before, "${"):
		kinds[0].action, kinds[0].name = "variable", "variable"
	case strings.Contains(word, "/"):
	case first:
		kinds = []struct{ action, name string }{{"function", "function"}, {"alias", "function"}, {"builtin", "function"},
			{"keyword", "keyword"}, {"command", "function"}, {"file", "path"}}
	}
	var script strings.Builder
	for _, kind := range kinds {
		fmt.Fprintf(&script, `\builtin echo :%s; \builtin compgen -A %s -- %s; `, kind.name, kind.action, quote(word))
	}
	out, err := k.askIdle(ctx, script.String())
	if err != nil {
		return kernel.Completion{}, err
	}
	c := kernel.Completion{Start: start, End: start + utf8.RuneCountInString(word)}
	seen := map[string]bool{}
	kind := ""
	for line := range strings.Lines(out) {
		line = strings.TrimSuffix(line, "\n")
		if name, ok := strings.CutPrefix(line, ":"); ok {
			kind = name
			continue
		}
		if line == "" || seen[line] || strings.HasPrefix(line, "__cellard_") || len(c.Matches) == maxMatches {
			continue
		}
		seen[line] = true
		c.Matches = append(c.Matches, line)
		c.Types = append(c.Types, kind)
	}
	order := make([]int, len(c.Matches))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return strings.Compare(c.Matches[a], c.Matches[b]) })
	sorted := kernel.Completion{Start: c.Start, End: c.End}
	for _, i := range order {
		sorted.Matches, sorted.Types = append(sorted.Matches, c.Matches[i]), append(sorted.Types, c.Types[i])
	}
	return sorted, nil
}

// askIdle captures what code prints in the idle shell.
func (k *Kernel) askIdle(ctx context.Context, code string) (string, error) {
	if _, err := k.settled(ctx); err != nil {
		return "", err
	}
	return k.capture(ctx, code)
}

// Inspect tells what a word is: a variable's declaration, a function's text, a
// builtin's help.
func (k *Kernel) Inspect(ctx context.Context, code string, cursor, _ int) (kernel.Inspection, error) {
	_, _, word, _ := wordAt(code, cursor)
	if word == "" || strings.HasPrefix(word, "__cellard_") {
		return kernel.Inspection{}, nil
	}
	w := quote(word)
	out, err := k.askIdle(ctx, `\builtin type -- `+w+`; \builtin help -m -- `+w+`; [[ `+w+` == [A-Za-z_]* ]] && \builtin declare -p -- `+w)
	if err != nil {
		return kernel.Inspection{}, err
	}
	out = mime.StripANSI(strings.ToValidUTF8(strings.TrimSpace(out), "\uFFFD"))
	if out == "" {
		return kernel.Inspection{}, nil
	}
	return kernel.Inspection{Found: true, Data: kernel.Bundle{"text/plain": out}}, nil
}

// IsComplete asks another bash, which only reads the code.
func (k *Kernel) IsComplete(ctx context.Context, code string) (kernel.Completeness, error) {
	cmd := exec.CommandContext(ctx, k.o.Path, "--norc", "--noprofile", "-O", "extglob", "-n")
	cmd.Env = []string{"LC_ALL=C"}
	cmd.Stdin = strings.NewReader(code + "\n")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	err := k.reaper.Start(cmd)
	if err == nil {
		err = k.reaper.Wait(cmd)
	}
	if ctx.Err() != nil {
		return kernel.Completeness{}, context.Cause(ctx)
	}
	text := errs.String()
	switch {
	case strings.Contains(text, "unexpected end of file") || strings.Contains(text, "unexpected EOF"),
		strings.Contains(text, "here-document at line"), strings.HasSuffix(code, "\\\n"), strings.HasSuffix(code, "\\") && !strings.HasSuffix(code, "\\\\"):
		return kernel.Completeness{Status: "incomplete", Indent: "  "}, nil
	case err != nil || text != "":
		return kernel.Completeness{Status: "invalid"}, nil
	}
	return kernel.Completeness{Status: "complete"}, nil
}
