package mime

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestBase64(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""}, {"\n", ""}, {"YQ==", "a"}, {"YQ", "a"}, {"YWI=", "ab"}, {"YWI", "ab"}, {"YWJj", "abc"}, {"YWJj\n", "abc"},
		{"YW\r\nJj\t YQ=\n=\n", "abca"}, {"+/+/", "\xfb\xff\xbf"},
	} {
		for _, r := range []io.Reader{strings.NewReader(c.in), iotest.OneByteReader(strings.NewReader(c.in)), iotest.DataErrReader(strings.NewReader(c.in))} {
			got, err := io.ReadAll(NewBase64Reader(r))
			if err != nil || string(got) != c.want {
				t.Errorf("%q: got %q, %v, want %q", c.in, got, err, c.want)
			}
		}
	}
	for in, want := range map[string]string{
		"YQ=a": "after its padding at byte 3", "Y": "unexpected EOF", "YWJjY": "unexpected EOF", "YQ===": "too much padding at byte 4",
		"YWI==": "padding does not match", "YWJj=": "padding does not match", "Y=": "unexpected EOF", "YW-_": "0x2d at byte 2",
		"data:image/png;base64,YQ==": "0x3a at byte 4", "=": "padding does not match", "é": "0xc3 at byte 0", "YQ\x00": "0x00 at byte 2",
	} {
		if _, err := io.ReadAll(NewBase64Reader(strings.NewReader(in))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q in it", in, err, want)
		}
	}
}

func TestBase64Large(t *testing.T) {
	content := bytes.Repeat([]byte{0, 1, 2, 250, 251, 252, 253}, 100_001)
	plain := base64.StdEncoding.EncodeToString(content)
	var lines strings.Builder
	for i := 0; i < len(plain); i += 76 {
		lines.WriteString(plain[i:min(i+76, len(plain))] + "\r\n")
	}
	for _, in := range []string{plain, lines.String()} {
		var got bytes.Buffer
		if _, err := io.Copy(&got, NewBase64Reader(strings.NewReader(in))); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), content) {
			t.Error("other content")
		}
	}
	broken := errors.New("broken")
	r := NewBase64Reader(io.MultiReader(strings.NewReader(plain), iotest.ErrReader(broken)))
	if _, err := io.Copy(io.Discard, r); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func FuzzBase64(f *testing.F) {
	f.Add("YWJj\nYQ==\n")
	f.Add("YW\r\nI")
	f.Add("YQ=a")
	f.Fuzz(func(t *testing.T, in string) {
		got, err := io.ReadAll(NewBase64Reader(strings.NewReader(in)))
		single, errSingle := io.ReadAll(NewBase64Reader(iotest.OneByteReader(strings.NewReader(in))))
		if (err == nil) != (errSingle == nil) || err == nil && !bytes.Equal(got, single) {
			t.Errorf("%q: got %q, %v whole, and %q, %v by bytes", in, got, err, single, errSingle)
		}
		bare := strings.NewReplacer(" ", "", "\n", "", "\r", "", "\t", "").Replace(in)
		want, wantErr := base64.StdEncoding.DecodeString(bare)
		if wantErr != nil {
			want, wantErr = base64.RawStdEncoding.DecodeString(bare)
		}
		if (err == nil) != (wantErr == nil) || err == nil && !bytes.Equal(got, want) {
			t.Errorf("%q: got %q, %v, encoding/base64 has %q, %v", in, got, err, want, wantErr)
		}
	})
}

func BenchmarkBase64(b *testing.B) {
	in := base64.StdEncoding.EncodeToString(make([]byte, 1<<20))
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	buf := make([]byte, 64<<10)
	for b.Loop() {
		io.CopyBuffer(struct{ io.Writer }{io.Discard}, NewBase64Reader(strings.NewReader(in)), buf)
	}
}
