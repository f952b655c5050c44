package jupyter

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/cellard/cellard/protocol/zmtp"
)

// BenchmarkMessage is the way of a small stream message: signature, headers, text.
func BenchmarkMessage(b *testing.B) {
	signer := mustSigner(b, "", "a0436f6c-1916-498b-8eb9-e81ab9368e84")
	// A signature may come again only when it is forgotten.
	messages := make([][]*zmtp.Frame, 2*historySize)
	for i := range messages {
		parts := []string{strings.Replace(testHeader, "k_1", fmt.Sprintf("k_%d", i), 1), testHeader, "{}", testStream}
		var signed [][]byte
		for _, p := range parts {
			signed = append(signed, []byte(p))
		}
		parts = append([]string{"kernel.1.stream", delimiter, string(signer.Sign(signed...))}, parts...)
		messages[i] = newFrames(parts...)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		frames := messages[i%len(messages)]
		m, err := ParseMessage(IOPub, frames, signer)
		if err != nil {
			b.Fatal(err)
		}
		members, err := m.Content.Members()
		if err != nil {
			b.Fatal(err)
		}
		if text, err := members.Get("text").Unquote(1 << 10); err != nil || text != "hello\n" {
			b.Fatal(text, err)
		}
		m.Close()
	}
}

// BenchmarkStream is a small stream message's content alone.
func BenchmarkStream(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		members, err := NewValue([]byte(testStream)).Members()
		if err != nil {
			b.Fatal(err)
		}
		if _, err := members.Get("text").Unquote(1 << 10); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkMembers scans a bundle with a long string in it, in memory and in a file.
func BenchmarkMembers(b *testing.B) {
	text := []byte(`{"data":{"image/png":"` + strings.Repeat("iVBORw0KGgoAAAANSUhE", 16<<20/20) + `","text/plain":"x"}}`)
	benchmarkPlaces(b, text, func(v Value) error { _, err := v.Members(); return err })
}

// BenchmarkText reads a long string: plain, with line ends, and in Chinese.
func BenchmarkText(b *testing.B) {
	for name, piece := range map[string]string{"base64": "iVBORw0KGgoAAAANSUhE", "lines": `a line of some output, 40 characters\n`, "chinese": "\u4f60\u597d\u4e16\u754c", "escaped": `\u4f60\u597d`} {
		text := []byte(`"` + strings.Repeat(piece, 8<<20/len(piece)) + `"`)
		b.Run(name, func(b *testing.B) {
			benchmarkPlaces(b, text, func(v Value) error { _, err := io.Copy(io.Discard, v.Text()); return err })
		})
	}
}

func benchmarkPlaces(b *testing.B, text []byte, read func(Value) error) {
	f, err := os.CreateTemp(b.TempDir(), "")
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(text); err != nil {
		b.Fatal(err)
	}
	for name, v := range map[string]Value{
		"memory": NewValue(text),
		"file":   {src: &source{f, chunkSize}, size: int64(len(text))},
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if err := read(v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkRoundTrip is `pass` on a real ipykernel: from the request until reply
// and idle have come.
func BenchmarkRoundTrip(b *testing.B) {
	ci := newIPC(b)
	startIPykernel(b, ci)
	c, _ := dialReady(b, ci, ClientOptions{})
	run(b, c, "pass", nil)
	for b.Loop() {
		run(b, c, "pass", nil)
	}
}

// BenchmarkOutput is 50 MB of stdout from a real ipykernel.
func BenchmarkOutput(b *testing.B) {
	ci := newIPC(b)
	startIPykernel(b, ci)
	c, _ := dialReady(b, ci, ClientOptions{})
	b.SetBytes(50_000_000)
	for b.Loop() {
		if got := run(b, c, "print('x' * 49_999_999)", nil); got.stdout.Len() != 50_000_000 {
			b.Fatalf("%d bytes came", got.stdout.Len())
		}
	}
}
