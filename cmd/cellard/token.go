package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/cellard/cellard/server"
)

// tokenVariable holds the token itself: an argument could be seen by every process.
const tokenVariable = "CELLARD_TOKEN"

// maxToken bounds a token file.
const maxToken = 4 << 10

// bearer is the token, and the file that was written for it; empty where none was.
type bearer struct{ token, file string }

// forget removes the file. It has to be done before the listeners are closed: another
// agent that is given the port then writes its own.
func (b bearer) forget(log *slog.Logger) {
	if b.file == "" {
		return
	}
	if err := os.Remove(b.file); err != nil && !errors.Is(err, os.ErrNotExist) {
		log.Warn("the token's file could not be removed; remove it", "file", b.file, "error", err)
	}
}

// tokenFor returns the bearer token for the listeners that ask for one: what the
// file or the environment has, or a new one, which it writes to the runtime
// directory, under the first such listener's port.
func tokenFor(listeners []*server.Listener, file, runtimeDir string, log *slog.Logger) (bearer, error) {
	given := os.Getenv(tokenVariable)
	// The environment is inherited by what the agent starts.
	if err := os.Unsetenv(tokenVariable); err != nil {
		return bearer{}, err
	}
	if file != "" {
		token, err := readToken(file, log)
		return bearer{token: token}, err
	}
	if given != "" {
		token, err := checkToken(given, tokenVariable)
		return bearer{token: token}, err
	}
	for _, l := range listeners {
		if !l.NeedsToken() {
			continue
		}
		_, port, err := net.SplitHostPort(l.Addr().String())
		if err != nil {
			return bearer{}, err
		}
		token := rand.Text() + rand.Text()
		path := filepath.Join(runtimeDir, "token-"+port)
		if err := writeToken(path, token); err != nil {
			return bearer{}, fmt.Errorf("writing the token: %w", err)
		}
		log.Info("a token was made for TCP", "file", path)
		return bearer{token, path}, nil
	}
	return bearer{}, nil
}

// readToken reads the token that the command's settings name: what is wrong with it is so
// with these.
func readToken(file string, log *slog.Logger) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", usageError(fmt.Sprintf("token file: %v; name a file that holds the token", err))
	}
	defer f.Close()
	if fi, err := f.Stat(); err == nil && fi.Mode().Perm()&0o044 != 0 {
		log.Warn("others can read the token file, cells perhaps too", "file", file, "mode", fmt.Sprintf("%o", fi.Mode().Perm()))
	}
	b, err := io.ReadAll(io.LimitReader(f, maxToken+1))
	if err != nil {
		return "", usageError(fmt.Sprintf("token file: %v", err))
	}
	return checkToken(strings.TrimSpace(string(b)), file)
}

func checkToken(token, from string) (string, error) {
	if token == "" || len(token) > maxToken || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", usageError(fmt.Sprintf("%s: a token is one line of printable ASCII without spaces, of at most %d bytes", from, maxToken))
	}
	return token, nil
}

// writeToken replaces the file as a whole, so that no reader sees half of it, and no
// link that lies there is followed.
func writeToken(path, token string) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".token-") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if _, err := f.WriteString(token + "\n"); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
