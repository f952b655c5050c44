package api

import "testing"

// What an agent says can't write to a terminal, nor begin a line of a log.
func TestErrorIsOneLine(t *testing.T) {
	for _, c := range []struct {
		err  Error
		want string
	}{
		{Error{Code: CodeBusy, Message: "plain, “é” too", Hint: "wait"}, "plain, “é” too (wait)"},
		{Error{Message: "a\nb\x1b[2J", Hint: "c\rd"}, `"a\nb\x1b[2J" ("c\rd")`},
		{Error{Message: "\u202etxet \u009b31m"}, `"\u202etxet \u009b31m"`},
		{Error{Message: "\xff"}, `"\xff"`},
		{Error{Code: "x\x1b]0;t\a"}, `"x\x1b]0;t\a"`},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}
