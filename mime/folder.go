package mime

import "strings"

// maxLine bounds the line that a Folder holds back, in bytes.
const maxLine = 64 << 10

// Folder folds a stream of text as a terminal does within one line, so that a
// progress bar's redraws come out as its last state. \r goes to the line's
// start and what follows overwrites it, character by character; \b goes one
// back; ESC[K erases; \r\n is \n. A line without \r and \b passes as it is,
// escape sequences included. Sequences that move between lines are kept and not
// obeyed: text that has ended in \n is never changed again.
//
// How the text is cut into Writes makes no difference. It has to be valid UTF-8
// and not cut within a character, as a [Decoder] gives it. A line longer than
// 64 KiB is settled in parts. The zero value is ready.
type Folder struct {
	raw     []byte // the line, while it is plain; shorter than maxLine
	cr      bool   // a \r has come after raw; unless \n follows, the line is not plain
	folding bool   // the line is not plain: it is in line
	line    line
	held    string // the beginning of an escape sequence, while folding
	last    string // the last escape sequence settled, its first bytes
}

// Write takes the next text and returns what can no longer change: the lines
// that ended, and the line's beginning where it is too long.
func (f *Folder) Write(text string) string {
	if text == "" {
		return ""
	}
	if f.held != "" {
		text, f.held = f.held+text, ""
	}
	next := control{cr: -1, bs: -1}
	if !f.folding && !f.cr && next.find(text, 0) == len(text) {
		return f.writePlain(text)
	}
	// Settled text can be longer than what went in, by colours, but hardly is.
	var out strings.Builder
	out.Grow(len(text) + len(f.raw))
	for pos := 0; pos < len(text); {
		switch {
		case f.folding:
			pos += f.fold(text[pos:], &out)
		case f.cr && text[pos] == '\r':
			pos++
		case f.cr && text[pos] == '\n':
			f.cr = false
			f.settle("\n", &out)
			pos++
		case f.cr:
			f.cr = false
			f.open('\r')
		default:
			end := next.find(text, pos)
			f.plain(text[pos:end], &out)
			if pos = end; pos == len(text) {
				break
			}
			// At the line's start both do nothing.
			if len(f.raw) > 0 && text[pos] == '\r' {
				f.cr = true
			} else if len(f.raw) > 0 {
				f.open('\b')
			}
			pos++
		}
	}
	return out.String()
}

// Pending returns the line that Write holds back, as it is now.
func (f *Folder) Pending() string {
	if f.folding {
		var b strings.Builder
		f.line.render(&b)
		return b.String() + f.held
	}
	return string(f.raw)
}

// Reset forgets the line.
func (f *Folder) Reset() { *f = Folder{} }

// writePlain is Write for text without \r and \b after a plain line: one copy at
// most, none if no line is held back.
func (f *Folder) writePlain(text string) string {
	end := lastIndex(text, '\n') + 1
	if end == 0 && len(f.raw)+len(text) < maxLine {
		f.raw = append(f.raw, text...)
		return ""
	}
	if len(f.raw) > 0 {
		var out strings.Builder
		out.Grow(len(f.raw) + len(text))
		f.plain(text, &out)
		return out.String()
	}
	end += parts(text[end:])
	f.track(text[:end])
	f.raw = append(f.raw, text[end:]...)
	return text[:end]
}

// plain takes text without \r and \b, and appends what it settles to out.
func (f *Folder) plain(text string, out *strings.Builder) {
	if end := lastIndex(text, '\n') + 1; end > 0 {
		f.settle(text[:end], out)
		text = text[end:]
	}
	if n := part(text, maxLine-len(f.raw)); n > 0 {
		n += parts(text[n:])
		f.settle(text[:n], out)
		text = text[n:]
	}
	f.raw = append(f.raw, text...)
}

// settle appends the plain line and text to out.
func (f *Folder) settle(text string, out *strings.Builder) {
	start := out.Len()
	out.Write(f.raw)
	out.WriteString(text)
	f.raw = f.raw[:0]
	f.track(out.String()[start:])
}

// open begins to fold the plain line, with the control character after it.
func (f *Folder) open(c byte) {
	f.folding = true
	f.line.start(f.clean())
	// An escape sequence that is open at raw's end ends at c, so nothing is held;
	// and raw is too short to be cut for its size.
	f.line.write(string(append(f.raw, c)))
	f.raw = f.raw[:0]
}

// fold gives text to the line, and appends it to out when it has ended.
func (f *Folder) fold(text string, out *strings.Builder) int {
	n, state := f.line.write(text)
	switch state {
	case lineOpen:
		f.held = strings.Clone(text[n:])
		return len(text)
	case lineEnded:
		n++ // the \n
	}
	start := out.Len()
	f.line.render(out)
	if state == lineEnded {
		out.WriteByte('\n')
	}
	f.track(out.String()[start:])
	f.folding = false
	return n
}

// track remembers the last escape sequence of settled text.
func (f *Folder) track(text string) {
	const enough = len(reset)
	if i := lastIndex(text, esc); i >= 0 {
		f.last = ""
		text = text[i:]
	} else if f.last == "" {
		return
	}
	if n := min(enough-len(f.last), len(text)); n > 0 {
		f.last += strings.Clone(text[:n])
	}
}

// clean reports whether no colours are on for sure after the settled text.
func (f *Folder) clean() bool {
	return f.last == "" || strings.HasPrefix(f.last, reset) || strings.HasPrefix(f.last, "\x1b[m")
}

// parts is how much of a line is settled for its length.
func parts(text string) int {
	n := 0
	for {
		m := part(text[n:], maxLine)
		if m == 0 {
			return n
		}
		n += m
	}
}

// part is the length of a part of text that has at least size bytes and ends
// with a whole character; 0 if text is shorter.
func part(text string, size int) int {
	if len(text) < size {
		return 0
	}
	for size < len(text) && text[size]&0xc0 == 0x80 {
		size++
	}
	return size
}

// control finds the next \r or \b of a text, looking at each byte once.
type control struct {
	cr, bs int // the next of each at or after the last position asked for
}

func (c *control) find(text string, pos int) int {
	if c.cr < pos {
		c.cr = index(text, pos, '\r')
	}
	if c.bs < pos {
		c.bs = index(text, pos, '\b')
	}
	return min(c.cr, c.bs)
}

// lastIndex is strings.LastIndexByte, but fast where c is not there.
func lastIndex(text string, c byte) int {
	if strings.IndexByte(text, c) < 0 {
		return -1
	}
	return strings.LastIndexByte(text, c)
}

func index(text string, pos int, c byte) int {
	if i := strings.IndexByte(text[pos:], c); i >= 0 {
		return pos + i
	}
	return len(text)
}
