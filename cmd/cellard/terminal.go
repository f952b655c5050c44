package main

import (
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

func stdinTerminal() bool { return isTerminal(os.Stdin) }

// terminalWidth is stdout's in columns; 100 where it is no terminal.
func terminalWidth() int {
	w, err := unix.IoctlGetWinsize(int(os.Stdout.Fd()), unix.TIOCGWINSZ)
	if err != nil || w.Col < 20 {
		return 100
	}
	return int(w.Col)
}

// graphics shows an image in a terminal, and reports whether it could.
type graphics func(w io.Writer, mimeType string, b []byte) bool

// terminalGraphics tells how the terminal shows images, nil if it can't as far as its
// environment says. Asking the terminal itself would take what the user has typed.
func terminalGraphics(getenv func(string) string) graphics {
	switch {
	case getenv("TMUX") != "" || strings.HasPrefix(getenv("TERM"), "screen"):
		return nil // they swallow the sequences
	case getenv("KITTY_WINDOW_ID") != "" || getenv("TERM") == "xterm-kitty" || getenv("TERM") == "xterm-ghostty":
		return kitty
	case getenv("TERM_PROGRAM") == "iTerm.app" || getenv("TERM_PROGRAM") == "WezTerm" || getenv("LC_TERMINAL") == "iTerm2":
		return iterm
	case sixelTerminal(getenv("TERM"), getenv("KONSOLE_VERSION")):
		return sixels
	}
	return nil
}

// sixelTerminal tells the terminals that show sixels in every version that is still about,
// and Konsole from 22.04 on. xterm can if it was built and started so, which shows nowhere.
func sixelTerminal(term, konsole string) bool {
	name, _, _ := strings.Cut(term, "-")
	version, _ := strconv.Atoi(konsole)
	return name == "foot" || name == "mlterm" || name == "contour" || version >= 220400
}

// kitty is kitty's graphics protocol: PNG in base64, in pieces of at most 4096 bytes.
func kitty(w io.Writer, mimeType string, b []byte) bool {
	if mimeType != "image/png" {
		return false
	}
	text := base64.StdEncoding.EncodeToString(b)
	for first := true; first || text != ""; first = false {
		piece := text[:min(len(text), 4096)]
		text = text[len(piece):]
		more := 0
		if text != "" {
			more = 1
		}
		if first {
			fmt.Fprintf(w, "\x1b_Ga=T,f=100,q=2,m=%d;%s\x1b\\", more, piece)
		} else {
			fmt.Fprintf(w, "\x1b_Gm=%d;%s\x1b\\", more, piece)
		}
	}
	fmt.Fprintln(w)
	return true
}

// iterm is iTerm2's inline images protocol, for any image that the terminal knows.
func iterm(w io.Writer, mimeType string, b []byte) bool {
	if !strings.HasPrefix(mimeType, "image/") || mimeType == "image/svg+xml" {
		return false
	}
	fmt.Fprintf(w, "\x1b]1337;File=inline=1;size=%d:%s\a\n", len(b), base64.StdEncoding.EncodeToString(b))
	return true
}
