package environ

import (
	"strings"
	"testing"
)

// A program that answers without end is read to the limit.
func TestAskIsBounded(t *testing.T) {
	answer, err := Ask(t.Context(), Asking{Argv: []string{"/bin/sh", "-c", "head -c 1000000 /dev/zero | tr '\\0' x; head -c 1000000 /dev/zero | tr '\\0' y >&2"}, Env: []string{"PATH=/usr/bin:/bin"}})
	if err != nil || len(answer) != maxAnswer || strings.Trim(answer, "x") != "" {
		t.Errorf("%d bytes, %v: want %d", len(answer), err, maxAnswer)
	}
	_, err = Ask(t.Context(), Asking{Argv: []string{"/bin/sh", "-c", "echo first >&2; echo last words >&2; exit 3"}})
	if err == nil || !strings.Contains(err.Error(), "last words") || strings.Contains(err.Error(), "first") {
		t.Errorf("%v", err)
	}
}
