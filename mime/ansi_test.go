package mime

import (
	"strings"
	"testing"
)

func TestStripANSI(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "plain é": "plain é",
		"\x1b[31mred\x1b[0m":                              "red",
		"\x1b[38;2;1;2;3mx\x1b[m\x1b[K":                   "x",
		"\x1b[38:5:1mx":                                   "x",
		"\x1b[?25lhidden\x1b[?25h":                        "hidden",
		"\x1b[1 qx":                                       "x",
		"\x1b]8;;http://x/?a=b\x1b\\link\x1b]8;;\x1b\\":   "link",
		"\x1b]0;title\atext":                              "text",
		"\x1bPq#0;2\x1b\\text":                            "text",
		"\x1b(Bx\x1b=y\x1bMz\x1b#8":                       "xyz",
		"\x1b[0;31mNameError\x1b[0m: \x1b[39;49m\x1b[00m": "NameError: ",
		"\x1b": "", "a\x1b[": "a", "a\x1b[31": "a", "a\x1b]0;title": "a", "a\x1b(": "a",
		"\x1b\nb": "\nb", "\x1b[31\nb": "\nb", "\x1b]8;;x\nb": "8;;x\nb", "\x1b\x1b[31mx": "x", "\x1bé": "é", "\x1b[é": "é",
		"\x1b]" + strings.Repeat("x", maxEscape): strings.Repeat("x", maxEscape),
	} {
		if got := StripANSI(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func FuzzStripANSI(f *testing.F) {
	f.Add("\x1b[31mred\x1b[0m \x1b]8;;x\x1b\\l\x1b]8;;\x1b\\")
	f.Fuzz(func(t *testing.T, in string) {
		got := StripANSI(in)
		if strings.IndexByte(got, esc) >= 0 || len(got) > len(in) {
			t.Errorf("%q became %q", in, got)
		}
		if strings.IndexByte(in, esc) < 0 && got != in {
			t.Errorf("%q became %q", in, got)
		}
		if strings.Count(got, "\n") != strings.Count(in, "\n") {
			t.Errorf("%q: lost newlines in %q", in, got)
		}
	})
}
