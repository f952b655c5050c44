package node

import (
	"context"
	"slices"
	"strings"
	"testing"
)

func TestComplete(t *testing.T) {
	each(t, func(t *testing.T, program string) {
		s := open(t, JavaScript, program)
		s.run("let lexical = { inner: { deep: 1 }, get hostile() { console.log('ran'); return {} } }; var variable = 1; function funky(alpha, beta) { return alpha }; const 猫 = 1; const loops = new Proxy({}, { ownKeys() { while (true) {} }, get() { while (true) {} } })").ok()
		for _, c := range []struct {
			code, has string
			start     int
		}{
			{"lex", "lexical", 0}, {"x = vari", "variable", 4}, {"funk", "funky", 0}, {"conso", "console", 0}, {"retu", "return", 0},
			{"lexical.in", "inner", 8}, {"lexical.inner.d", "deep", 14}, {"lexical?.in", "inner", 9}, {"Math.ma", "max", 5}, {"'x'.toUp", "toUpperCase", 4},
			{"[].ma", "map", 3}, {"'🎉' + lexi", "lexical", 6}, {"猫", "猫", 0}, {"require('f", "fs", 9}, {"import fs from 'node:f", "node:fs", 16},
			{"process.stdo", "stdout", 8}, {"f(lexical.in", "inner", 10}, {"lexical['inner'].d", "deep", 17},
		} {
			got, err := s.k.Complete(context.Background(), c.code, len([]rune(c.code)))
			if err != nil || !slices.Contains(got.Matches, c.has) || got.Start != c.start || got.End != len([]rune(c.code)) {
				t.Errorf("%q: %+v %v, wanted %q from %d", c.code, got, err, c.has, c.start)
			}
		}
		for _, code := range []string{"lexical.hostile.", "loops.x.", "nowhere.", "f().", "1.", "(", ".", "", "$$cell"} {
			got, err := s.k.Complete(context.Background(), code, len([]rune(code)))
			if err != nil || slices.ContainsFunc(got.Matches, func(m string) bool { return strings.HasPrefix(m, "$$cellard") }) {
				t.Errorf("%q: %+v %v", code, got, err)
			}
		}
		if got, err := s.k.Complete(context.Background(), "lexical.inner + 1", 10); err != nil || !slices.Contains(got.Matches, "inner") || got.Start != 8 || got.End != 10 {
			t.Errorf("in the middle: %+v %v", got, err)
		}
		_, _ = s.k.Complete(context.Background(), "loops.", 6)
		for code, has := range map[string]string{"funky": "function funky(alpha, beta)", "lexical.inn": "", "lexical.inner": "deep", "Math.max(": "max", "variable": "1", "console.log": "function"} {
			got, err := s.k.Inspect(context.Background(), code, len([]rune(code)), 0)
			text, _ := got.Data["text/plain"].(string)
			if err != nil || got.Found != (has != "") || !strings.Contains(text, has) {
				t.Errorf("%q: %+v %v, wanted %q", code, got, err, has)
			}
		}
		s.run("1").text("1").out("", "")
	})
}
