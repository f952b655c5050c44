package mime

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func fold(chunks ...string) string {
	var f Folder
	var b strings.Builder
	for _, c := range chunks {
		b.WriteString(f.Write(c))
	}
	return b.String() + f.Pending()
}

func TestFold(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain", "a\nb", "a\nb"},
		{"a bar", "\r0%\r50%\r100%\n", "100%\n"},
		{"a bar with no newline", "\r9%\r10%\r100%", "100%"},
		{"a bar that ends in \\r", "10%\r100%\r", "100%"},
		{"a shorter redraw", "100%\r7%\n", "7%0%\n"},
		{"a shorter redraw, padded", "100 of 100\rdone      \n", "done      \n"},
		{"a shorter redraw, erased", "100%\r\x1b[K7%\n", "7%\n"},
		{"erased after", "100%\r7%\x1b[K\n", "7%\n"},
		{"erased whole", "abc\x1b[2K\rde", "de"},
		{"erased whole, cursor stays", "abc\b\x1b[2Kde", "  de"},
		{"erased to the start", "abcd\b\b\x1b[1K\n", "   d\n"},
		{"crlf", "a\r\nb\r\n", "a\nb\n"},
		{"crcrlf", "a\r\r\nb", "a\nb"},
		{"crlf after a bar", "1%\r2%\r\nb", "2%\nb"},
		{"the cursor at a newline", "abc\rX\ndef", "Xbc\ndef"},
		{"backspace", "abc\b\bX\n", "aXc\n"},
		{"backspace and blank", "abc\b \b\n", "ab \n"},
		{"backspace past the start", "a\b\b\bX", "X"},
		{"backspace at the start", "a\n\bX", "a\nX"},
		{"wide", "日本\r語\n", "語本\n"},
		{"tabs", "a\tb\rX", "X\tb"},
		{"colours pass", "\x1b[31mred\x1b[0m\n", "\x1b[31mred\x1b[0m\n"},
		{"erase in a plain line passes", "\x1b[01;31m\x1b[Kx\x1b[m\x1b[K\n", "\x1b[01;31m\x1b[Kx\x1b[m\x1b[K\n"},
		{"coloured bar", "\r\x1b[32m10%\x1b[0m\r\x1b[32m20%\x1b[0m\n", "\x1b[32m20%\x1b[0m\n"},
		{"coloured bar, second line", "\x1b[32mx\x1b[m\n\x1b[32m10%\x1b[0m\r\x1b[32m20%\x1b[0m\n", "\x1b[32mx\x1b[m\n\x1b[32m20%\x1b[0m\n"},
		{"a reset that is needed", "\x1b[31mred\n1\x1b[0m\r2\n", "\x1b[31mred\n\x1b[0m2\n"},
		{"half a coloured line", "\x1b[31mabcd\x1b[0m\rXY\n", "XY\x1b[31mcd\x1b[0m\n"},
		{"colours add up", "ab\r\x1b[1m\x1b[31mX\x1b[0mY", "\x1b[1m\x1b[31mX\x1b[0mY"},
		{"cursor up stays", "a\r\x1b[Ab\n", "\x1b[Ab\n"},
		{"a link", "\x1b]8;;http://x\x1b\\t\x1b]8;;\x1b\\\r\x1b]8;;http://y\x1b\\u\x1b]8;;\x1b\\\n", "\x1b]8;;\x1b\\\x1b]8;;http://y\x1b\\u\x1b]8;;\x1b\\\n"},
		{"a broken sequence", "ab\r\x1b[3", "ab\x1b[3"},
		{"a broken sequence, then a newline", "ab\r\x1b[3\n", "ab\n"},
		{"columns", "abc\rd\x1b[2GX\x1b[DY\x1b[2CZ", "dYc Z"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := fold(c.in); got != c.want {
				t.Errorf("%q: got %q, want %q", c.in, got, c.want)
			}
			if got := fold(strings.Split(c.in, "")...); got != c.want {
				t.Errorf("%q by characters: got %q, want %q", c.in, got, c.want)
			}
		})
	}
}

// TestFoldTqdm is what tqdm 4 writes for a loop of five with a description.
func TestFoldTqdm(t *testing.T) {
	in := "\rwork:   0%|          | 0/5 [00:00<?, ?it/s]" +
		"\rwork:  40%|████      | 2/5 [00:00<00:00, 19.9it/s]" +
		"\rwork:  80%|████████  | 4/5 [00:00<00:00, 19.8it/s]" +
		"\rwork: 100%|██████████| 5/5 [00:00<00:00, 19.8it/s]\n"
	want := "work: 100%|██████████| 5/5 [00:00<00:00, 19.8it/s]\n"
	if got := fold(in); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// randomText is rich in what the Folder minds.
func randomText(r *rand.Rand, n int) string {
	words := []string{"\r", "\r", "\n", "\r\n", "\b", "\b \b", "a", "long word ", "é", "日本", "😀", "\x1b", "\x1b[", "\x1b[K", "\x1b[1K",
		"\x1b[2K", "\x1b[31m", "\x1b[0m", "\x1b[m", "\x1b[0;1m", "\x1b[38;5;200m", "\x1b[A", "\x1b[5G", "\x1b[3C", "\x1b[2D", "\x1b]0;t\a",
		"\x1b]8;;u\x1b\\", "\x1b(B", "\t", "\x1b[99999999999999999999C", "[", "m", "3", ";"}
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(words[r.IntN(len(words))])
	}
	return b.String()
}

func randomChunks(r *rand.Rand, text string) []string {
	var chunks []string
	runes := []rune(text)
	for len(runes) > 0 {
		n := min(len(runes), 1+r.IntN(1+r.IntN(len(runes))))
		chunks = append(chunks, string(runes[:n]))
		runes = runes[n:]
	}
	return chunks
}

func TestFoldChunks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 3000 {
		text := randomText(r, r.IntN(200))
		if i%300 == 0 { // lines past maxLine
			text = strings.Repeat(randomText(r, 100), 30) + strings.ReplaceAll(randomText(r, 400_000), "\n", "") + text
		}
		want := fold(text)
		if got := fold(randomChunks(r, text)...); got != want {
			t.Fatalf("%q:\ngot  %q\nwant %q", text, got, want)
		}
	}
}

func TestFoldIsBounded(t *testing.T) {
	var f Folder
	var out int
	for range 2000 {
		out += len(f.Write("\r" + strings.Repeat("\x1b[38;5;1mx\x1b[38;5;2my\x1b[A", 50)))
		if n := len(f.Pending()); n > 2*maxLine {
			t.Fatalf("%d bytes are pending", n)
		}
	}
	for range 100 {
		out += len(f.Write(strings.Repeat("x", 10_000)))
		if n := len(f.Pending()); n > 2*maxLine {
			t.Fatalf("%d bytes are pending", n)
		}
	}
	if out < 900_000 {
		t.Errorf("%d bytes are settled, want at least the plain ones that are past the limit", out)
	}
}

// TestFoldGap fills the line by moving the cursor, where the room ends.
func TestFoldGap(t *testing.T) {
	for n := range 5 {
		in := strings.Repeat("x", maxLine-3) + "\r\x1b[A\x1b[" + strings.Repeat("9", n) + "C" + "y\x1b[A\x1b[99999C" + "z\n"
		want := fold(in)
		if got := fold(strings.Split(in, "")...); got != want {
			t.Errorf("%d: got %d bytes, want %d", n, len(got), len(want))
		}
		if strings.Count(want, "\x1b[A") != 2 || !strings.HasSuffix(want, "z\n") {
			t.Errorf("%d: %q", n, want[max(0, len(want)-80):])
		}
	}
}

// TestFoldLongBar redraws a coloured bar more often than maxLine has room for.
func TestFoldLongBar(t *testing.T) {
	var f Folder
	for range 10_000 {
		if s := f.Write("\r\x1b[32m" + strings.Repeat("=", 40) + "\x1b[0m end"); s != "" {
			t.Fatalf("settled %q", s)
		}
	}
	if got, want := f.Pending(), "\x1b[32m"+strings.Repeat("=", 40)+"\x1b[0m end"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func FuzzFolder(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		f.Add(randomText(r, 60), uint64(r.Uint32()))
	}
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		text = strings.ToValidUTF8(text, "?")
		r := rand.New(rand.NewPCG(seed, 0))
		want := fold(text)
		if got := fold(randomChunks(r, text)...); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
		if !strings.ContainsAny(text, "\r\b") && want != text {
			t.Errorf("%q became %q", text, want)
		}
		if strings.Count(want, "\n") != strings.Count(text, "\n") {
			t.Errorf("%q: other newlines in %q", text, want)
		}
	})
}

func BenchmarkFolder(b *testing.B) {
	bar := "\r 40%|████      | 2/5 [00:00<00:00, 19.9it/s]"
	for _, c := range []struct{ name, chunk string }{
		{"lines", strings.Repeat("a line of plain text, 40 characters long\n", 1600) + "and a beginning"},
		{"colours", strings.Repeat("a line of \x1b[32mcoloured\x1b[0m text, 40 characters\n", 1600) + "and a beginning"},
		{"one line", strings.Repeat("0", 64<<10)},
		{"crlf", strings.Repeat("a line of plain text, 40 characters long\r\n", 1600)},
		{"bar", strings.Repeat(bar, 1000)},
		{"small", "a line of plain text\n"},
	} {
		b.Run(c.name, func(b *testing.B) {
			var f Folder
			b.SetBytes(int64(len(c.chunk)))
			b.ReportAllocs()
			for b.Loop() {
				f.Write(c.chunk)
			}
		})
	}
}
