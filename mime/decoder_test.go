package mime

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

func decode(chunks ...[]byte) string {
	var d Decoder
	var b strings.Builder
	for _, c := range chunks {
		b.WriteString(d.Write(c))
	}
	return b.String() + d.Flush()
}

func byteChunks(r *rand.Rand, p []byte) [][]byte {
	var chunks [][]byte
	for len(p) > 0 {
		n := min(len(p), 1+r.IntN(1+r.IntN(len(p))))
		chunks = append(chunks, p[:n])
		p = p[n:]
	}
	return chunks
}

func TestDecode(t *testing.T) {
	for in, want := range map[string]string{
		"":              "",
		"plain":         "plain",
		"é日😀":           "é日😀",
		"\xff":          "�",
		"a\xe9b":        "a�b",
		"\xf0\x9f\x98":  "�",
		"\x80\x80":      "��",
		"\xc0\xaf":      "��",
		"\xe6\x97\xe6":  "��",
		"\xf4\x90\x80a": "���a",
		// The Unicode standard 16.0, tables 3-8 to 3-11: non-shortest forms,
		// surrogates, other ill-formed sequences and truncated ones.
		"\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41": "��������A",
		"\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41": "��������A",
		"\xf4\x91\x92\x93\xff\x41\x80\xbf\x42": "�����A��B",
		"\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41": "����A",
	} {
		if got := decode([]byte(in)); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
		var single [][]byte
		for i := range len(in) {
			single = append(single, []byte{in[i]})
		}
		if got := decode(single...); got != want {
			t.Errorf("%q by bytes: got %q, want %q", in, got, want)
		}
	}
}

func TestDecodeHoldsBackLittle(t *testing.T) {
	var d Decoder
	if got := d.Write([]byte("a\xf0\x9f\x98")); got != "a" {
		t.Errorf("got %q", got)
	}
	if got := d.Write([]byte("\x80b\xe2\x82")); got != "😀b" {
		t.Errorf("got %q", got)
	}
	if got := d.Write([]byte("c")); got != "�c" {
		t.Errorf("got %q", got)
	}
	if got := d.Flush(); got != "" {
		t.Errorf("got %q", got)
	}
}

func FuzzDecoder(f *testing.F) {
	f.Add([]byte("a\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41é日😀\xed\xa0\x80\xf4\x91\x92"), uint64(1))
	f.Add([]byte("\xe2\x82\xe2\x82\xac\xf0\x9f\x98\x80"), uint64(2))
	f.Fuzz(func(t *testing.T, p []byte, seed uint64) {
		whole := decode(p)
		if !utf8.ValidString(whole) {
			t.Errorf("%q became %q", p, whole)
		}
		if utf8.Valid(p) && whole != string(p) {
			t.Errorf("%q became %q", p, whole)
		}
		if got := decode(byteChunks(rand.New(rand.NewPCG(seed, 0)), p)...); got != whole {
			t.Errorf("%q: got %q in chunks, %q whole", p, got, whole)
		}
		// Runs of replacements are longer or shorter by rule; what is between is not.
		squeeze := func(s string) string {
			for strings.Contains(s, "��") {
				s = strings.ReplaceAll(s, "��", "�")
			}
			return s
		}
		if got, want := squeeze(whole), squeeze(strings.ToValidUTF8(string(p), "�")); got != want {
			t.Errorf("%q: got %q, strings.ToValidUTF8 has %q", p, got, want)
		}
	})
}

func BenchmarkDecoder(b *testing.B) {
	for name, text := range map[string]string{
		"ascii": strings.Repeat("a line of plain text\n", 3000),
		"cut":   strings.Repeat("日本語\n", 6000)[:59_999],
		"bad":   strings.Repeat("Gr\xfc\xdfe\n", 10_000),
	} {
		b.Run(name, func(b *testing.B) {
			var d Decoder
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			p := []byte(text)
			for b.Loop() {
				d.Write(p)
			}
		})
	}
}
