package jupyter

import (
	"errors"
	"fmt"
	"testing"

	"github.com/cellard/cellard/protocol/zmtp"
)

func newFrames(parts ...string) []*zmtp.Frame {
	var frames []*zmtp.Frame
	for _, p := range parts {
		frames = append(frames, zmtp.NewFrame([]byte(p)))
	}
	return frames
}

func mustSigner(t testing.TB, scheme, key string) *Signer {
	t.Helper()
	s, err := NewSigner(scheme, key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSign compares with signatures that jupyter_client 8.10.0 made: Session(key=…,
// signature_scheme=…).sign([…]).
func TestSign(t *testing.T) {
	parts := []string{
		`{"msg_id": "a_1", "msg_type": "stream", "username": "u", "session": "a", "date": "2026-01-02T03:04:05.678901Z", "version": "5.4"}`,
		`{}`, `{}`, `{"name": "stdout", "text": "h\u00e9llo\n"}`,
	}
	for _, c := range []struct{ scheme, key, want string }{
		{"hmac-sha256", "", ""},
		{"hmac-sha256", "a0436f6c-1916-498b-8eb9-e81ab9368e84", "827c245b0597630015e7d26ac834794ada3df322869cdf4120aef90f64795fbf"},
		{"hmac-sha256", "schlüsselschlüsselschlüsselschlüsselschlüsselschlüsselschlüsselschlüsselschlüsselschlüsselschlüsselschlüsselschlüsselschlüsselschlüsselschlüsselschlüsselschlüsselschlüsselschlüssel", "462afe4be0f8bfd1a7324ba4d4923b3e49c22b44aa3256f65da3a3fed75c497e"},
		{"hmac-sha1", "key", "a0e465b779a8c7c60c96c82a2fc690f7ad10cadf"},
		{"hmac-sha224", "key", "723056c0d32958306c2a58a9159af326f62052d13ecf7f71107ccca5"},
		{"hmac-sha384", "key", "e0fab0fcce4e9397a54e6859db7f295fbf3d1cb6c888b113652ae01d4086adb0750059a979f694d4d0db7403b39be2ab"},
		{"hmac-sha512", "key", "f47a5f4e67e29f9141045698f11cade33f26b103983d4aafd17cc0c1d496c00be46feeb873cd06c6c4af114a17fa62060c28f75f6fd28848d85b5ca708be85f0"},
	} {
		s := mustSigner(t, c.scheme, c.key)
		var frames [][]byte
		for _, p := range parts {
			frames = append(frames, []byte(p))
		}
		if got := string(s.Sign(frames...)); got != c.want {
			t.Errorf("%s with %q: %s, want %s", c.scheme, c.key, got, c.want)
		}
		if err := s.Verify([]byte(c.want), newFrames(parts...)); err != nil {
			t.Errorf("%s with %q: %v", c.scheme, c.key, err)
		}
		if c.key == "" {
			continue
		}
		if err := s.Verify([]byte(c.want), newFrames(parts...)); !errors.Is(err, ErrReplay) {
			t.Errorf("%s: the same message again: %v", c.scheme, err)
		}
		for i := range parts {
			changed := append([]string(nil), parts...)
			changed[i] += " "
			if err := s.Verify([]byte(c.want), newFrames(changed...)); !errors.Is(err, ErrSignature) {
				t.Errorf("%s: frame %d changed: %v", c.scheme, i, err)
			}
		}
		for _, signature := range []string{"", c.want[1:], c.want + "0", "0" + c.want[1:], "z" + c.want[1:]} {
			if signature == c.want {
				continue
			}
			if err := s.Verify([]byte(signature), newFrames(parts...)); !errors.Is(err, ErrSignature) {
				t.Errorf("%s: signature %q: %v", c.scheme, signature, err)
			}
		}
	}
}

func TestSignerRefuses(t *testing.T) {
	for _, scheme := range []string{"hmac-md5", "sha256", "hmac", "none"} {
		if _, err := NewSigner(scheme, "k"); err == nil {
			t.Errorf("scheme %q is known", scheme)
		}
	}
}

// TestReplayBound: the memory of signatures is bounded, and keeps the latest.
func TestReplayBound(t *testing.T) {
	s := mustSigner(t, "", "key")
	verify := func(i int) error {
		part := fmt.Sprint(i)
		return s.Verify(s.Sign([]byte(part)), newFrames(part))
	}
	const count = 3 * historySize
	for i := range count {
		if err := verify(i); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.seen) != historySize || len(s.recent) != historySize {
		t.Errorf("%d and %d signatures are kept, not %d", len(s.seen), len(s.recent), historySize)
	}
	for i := count - historySize; i < count; i++ {
		if err := verify(i); !errors.Is(err, ErrReplay) {
			t.Fatalf("message %d again: %v", i, err)
		}
	}
	if err := verify(0); err != nil {
		t.Errorf("a message long forgotten: %v", err)
	}
}
