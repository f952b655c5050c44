package mime

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// HeadTail keeps the head and the tail of a text of any length, in at most limit
// bytes of memory: all of it while it fits.
type HeadTail struct {
	limit int
	total int64
	// buf grows to limit. Past it, its first half is the head and its second a ring,
	// whose oldest byte is at start.
	buf   []byte
	start int
}

// NewHeadTail returns a HeadTail that keeps limit bytes, half of them from the
// text's beginning and half from its end.
func NewHeadTail(limit int) *HeadTail {
	return &HeadTail{limit: max(limit, 0)}
}

// Write adds to the text; a character may be cut between two Writes. It never
// fails.
func (h *HeadTail) Write(p []byte) (int, error) {
	addText(h, p)
	return len(p), nil
}

// WriteString is Write of a string.
func (h *HeadTail) WriteString(s string) (int, error) {
	addText(h, s)
	return len(s), nil
}

var _ io.StringWriter = (*HeadTail)(nil)

func addText[T string | []byte](h *HeadTail, p T) {
	h.total += int64(len(p))
	n := min(len(p), h.limit-len(h.buf))
	h.buf = append(h.buf, p[:n]...)
	p = p[n:]
	half := h.limit / 2
	ring := h.buf[min(half, len(h.buf)):]
	if len(p) == 0 || len(ring) == 0 {
		return
	}
	if len(p) >= len(ring) {
		copy(ring, p[len(p)-len(ring):])
		h.start = 0
		return
	}
	n = copy(ring[h.start:], p)
	copy(ring, p[n:])
	h.start = (h.start + len(p)) % len(ring)
}

// Total is the length of the text in bytes, all that was cut included.
func (h *HeadTail) Total() int64 { return h.total }

// Cut reports whether the text is longer than the limit: String is then not all
// of it.
func (h *HeadTail) Cut() bool { return h.total > int64(h.limit) }

// Missing is how many bytes of the text are neither kept nor among its first n, which
// somebody else has.
func (h *HeadTail) Missing(n int64) int64 {
	return max(0, min(h.total-int64(h.limit), h.total-int64(h.limit)+int64(h.limit/2)-n))
}

// Reset forgets the text.
func (h *HeadTail) Reset() {
	h.buf, h.start, h.total = nil, 0, 0
}

// String returns the whole text if it fits the limit, else its head and its tail
// with one line between them that says how much was cut.
func (h *HeadTail) String() string { return h.StringWith("") }

// StringWith returns what String would after a Write of rest, which is not
// kept: for the line that a [Folder] still holds back.
func (h *HeadTail) StringWith(rest string) string {
	total := h.total + int64(len(rest))
	if total <= int64(h.limit) {
		return string(h.buf) + rest
	}
	half := h.limit / 2
	if len(h.buf) <= half { // the head itself ends in rest
		n := half - len(h.buf)
		return join(string(h.buf)+rest[:n], rest[max(n, len(rest)-(h.limit-half)):], total)
	}
	ring := h.buf[half:]
	tail := make([]byte, 0, len(ring)+len(rest))
	tail = append(tail, ring[h.start:]...)
	tail = append(tail, ring[:h.start]...)
	tail = append(tail, rest...)
	tail = tail[max(0, len(tail)-(h.limit-half)):]
	return join(string(h.buf[:half]), string(tail), total)
}

// CutMiddle returns s if it has at most limit bytes, else its head and its tail,
// limit bytes in all, with one line between them that says how much was cut.
func CutMiddle(s string, limit int) string {
	limit = max(limit, 0)
	if len(s) <= limit {
		return s
	}
	half := limit / 2
	return join(s[:half], s[len(s)-(limit-half):], int64(len(s)))
}

// join puts the line between head and tail, of a text of total bytes. It takes
// off what is left of a cut character, and of a cut line if that is short, so
// that the cut falls between lines where lines are short.
func join(head, tail string, total int64) string {
	for i := 1; i < utf8.UTFMax && i <= len(head); i++ {
		if c := head[len(head)-i]; utf8.RuneStart(c) {
			if !utf8.FullRuneInString(head[len(head)-i:]) {
				head = head[:len(head)-i]
			}
			break
		}
	}
	for i := 0; i < utf8.UTFMax-1 && len(tail) > 0 && !utf8.RuneStart(tail[0]); i++ {
		tail = tail[1:]
	}
	if n := min(len(head)/8, maxPart); n > 0 {
		if i := strings.LastIndexByte(head[len(head)-n:], '\n'); i >= 0 {
			head = head[:len(head)-n+i+1]
		}
	}
	if n := min(len(tail)/8, maxPart); n > 0 {
		if i := strings.IndexByte(tail[:n], '\n'); i >= 0 {
			tail = tail[i+1:]
		}
	}
	var b bytes.Buffer
	b.Grow(len(head) + len(tail) + 64)
	b.WriteString(head)
	if head != "" && head[len(head)-1] != '\n' {
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "… %d bytes cut …\n", total-int64(len(head))-int64(len(tail)))
	b.WriteString(tail)
	return b.String()
}

// maxPart is the most that is given up of a line for the cut to fall at its end.
const maxPart = 1024
