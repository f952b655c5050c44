package mime

import (
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

var cutLine = regexp.MustCompile(`(^|\n)… (\d+) bytes cut …\n`)

// checkCut holds what CutMiddle promises.
func checkCut(t *testing.T, text, got string, limit int) {
	t.Helper()
	if len(text) <= max(limit, 0) {
		if got != text {
			t.Errorf("limit %d: %q became %q", limit, text, got)
		}
		return
	}
	at := -1
	// The text may have such lines of its own.
	for _, m := range cutLine.FindAllStringSubmatchIndex(got, -1) {
		tail := got[m[1]:]
		// The newline before it may be the text's or not.
		for _, head := range []string{got[:m[3]], got[:m[2]]} {
			if strings.HasPrefix(text, head) && strings.HasSuffix(text, tail) &&
				got[m[4]:m[5]] == fmt.Sprint(len(text)-len(head)-len(tail)) && len(head)+len(tail) <= max(limit, 0) {
				at = m[0]
				if limit >= 64 && (len(head) < limit/2*7/8-utf8.UTFMax || len(tail) < limit/2*7/8-utf8.UTFMax) {
					t.Errorf("limit %d: only %d and %d bytes are kept", limit, len(head), len(tail))
				}
			}
		}
	}
	if at < 0 {
		t.Errorf("limit %d: %q became %q", limit, text, got)
	}
	if utf8.ValidString(text) && !utf8.ValidString(got) {
		t.Errorf("limit %d: %q became invalid: %q", limit, text, got)
	}
}

// Of 0123456789, four are kept: 01 and 89.
func TestMissing(t *testing.T) {
	h := NewHeadTail(4)
	for _, c := range []struct {
		text            string
		elsewhere, want int64
	}{{"0123", 0, 0}, {"456789", 0, 6}, {"", 2, 6}, {"", 3, 5}, {"", 8, 0}, {"", 10, 0}} {
		h.WriteString(c.text)
		if got := h.Missing(c.elsewhere); got != c.want {
			t.Errorf("%q and %d elsewhere: %d missing, want %d", c.text, c.elsewhere, got, c.want)
		}
	}
}

func TestCutMiddle(t *testing.T) {
	for _, c := range []struct {
		in    string
		limit int
		want  string
	}{
		{"", 0, ""},
		{"short", 5, "short"},
		{"abcdef", 4, "ab\n… 2 bytes cut …\nef"},
		{"abcdef", 0, "… 6 bytes cut …\n"},
		{"abcdef", -1, "… 6 bytes cut …\n"},
		{"日本語", 8, "日\n… 3 bytes cut …\n語"},
		{"日本語", 4, "\n… 9 bytes cut …\n"[1:]},
		{strings.Repeat("0123456\n", 32), 160, strings.Repeat("0123456\n", 10) + "… 104 bytes cut …\n" + strings.Repeat("0123456\n", 9)},
		{strings.Repeat("0123456\n", 32), 156, strings.Repeat("0123456\n", 9) + "… 112 bytes cut …\n" + strings.Repeat("0123456\n", 9)},
	} {
		got := CutMiddle(c.in, c.limit)
		if got != c.want {
			t.Errorf("limit %d: %q became %q, want %q", c.limit, c.in, got, c.want)
		}
		checkCut(t, c.in, got, c.limit)
	}
}

func TestHeadTailIsCutMiddle(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		text := []byte(randomText(r, r.IntN(600)))
		limit := r.IntN(400)
		h := NewHeadTail(limit)
		chunks := byteChunks(r, text)
		rest := ""
		if len(chunks) > 0 {
			rest = string(chunks[len(chunks)-1])
			chunks = chunks[:len(chunks)-1]
		}
		for i, c := range chunks {
			if i%2 == 0 {
				h.Write(c)
			} else {
				h.WriteString(string(c))
			}
		}
		want := CutMiddle(string(text), limit)
		checkCut(t, string(text), want, limit)
		if got := h.StringWith(rest); got != want {
			t.Fatalf("limit %d, %q, with %q: got %q, want %q", limit, text, rest, got, want)
		}
		h.WriteString(rest)
		if got := h.String(); got != want {
			t.Fatalf("limit %d, %q: got %q, want %q", limit, text, got, want)
		}
		if h.Total() != int64(len(text)) || h.Cut() != (len(text) > limit) {
			t.Fatalf("limit %d, %d bytes: total %d, cut %v", limit, len(text), h.Total(), h.Cut())
		}
		if cap(h.buf) > 2*limit+64 {
			t.Fatalf("limit %d: %d bytes are held", limit, cap(h.buf))
		}
		h.Reset()
		if h.String() != "" || h.Total() != 0 || h.Cut() {
			t.Fatalf("reset: %q, %d", h.String(), h.Total())
		}
	}
}

func ExampleHeadTail() {
	text := strings.NewReader("[0, 1, 2, " + strings.Repeat("3, ", 1000) + "997, 998, 999]")
	preview := NewHeadTail(24)
	// One pass: to where the whole text is kept, and past the preview.
	n, _ := io.Copy(io.Discard, io.TeeReader(text, preview))
	fmt.Println(n)
	fmt.Println(preview)
	// Output:
	// 3024
	// [0, 1, 2, 3,
	// … 3000 bytes cut …
	// 7, 998, 999]
}

func FuzzCutMiddle(f *testing.F) {
	f.Add("日本語\nabc\n… 3 bytes cut …\n", 12, uint64(1))
	f.Add(strings.Repeat("0123456\n", 32), 156, uint64(1))
	f.Fuzz(func(t *testing.T, text string, limit int, seed uint64) {
		if limit > 1<<20 {
			limit = 1 << 20
		}
		want := CutMiddle(text, limit)
		checkCut(t, text, want, limit)
		h := NewHeadTail(limit)
		for _, c := range byteChunks(rand.New(rand.NewPCG(seed, 0)), []byte(text)) {
			h.Write(c)
		}
		if got := h.String(); got != want {
			t.Errorf("limit %d, %q: got %q, want %q", limit, text, got, want)
		}
	})
}

func BenchmarkHeadTail(b *testing.B) {
	chunk := strings.Repeat("0123456\n", 8<<10)
	h := NewHeadTail(1 << 20)
	b.SetBytes(int64(len(chunk)))
	b.ReportAllocs()
	for b.Loop() {
		h.WriteString(chunk)
	}
}
