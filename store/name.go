package store

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/cellard/cellard/mime"
)

// shownHash is how many hex digits of the SHA-256 a file's name has.
const shownHash = 32

// key names a file of the store, as the host API does.
type key struct{ context, file string }

func fileName(generation int, sum []byte, mimeType string) string {
	return fmt.Sprintf("%d-%s%s", generation, hex.EncodeToString(sum)[:shownHash], mime.Extension(mimeType))
}

// validContext tells whether id may name a directory: [a-z0-9][a-z0-9-]{0,62}.
func validContext(id string) bool {
	return len(id) >= 1 && len(id) <= 63 && id[0] != '-' && only(id, "abcdefghijklmnopqrstuvwxyz0123456789-")
}

// validFile tells whether name is one that fileName makes.
func validFile(name string) bool {
	generation, rest, ok := strings.Cut(name, "-")
	if !ok || len(generation) == 0 || len(generation) > 19 || !only(generation, "0123456789") {
		return false
	}
	hash, ending, ok := strings.Cut(rest, ".")
	return ok && len(hash) == shownHash && only(hash, "0123456789abcdef") &&
		len(ending) >= 1 && len(ending) <= 12 && only(ending, "abcdefghijklmnopqrstuvwxyz0123456789")
}

// hashOf is the beginning of the hash that a valid file name has.
func hashOf(name string) string {
	_, rest, _ := strings.Cut(name, "-")
	return rest[:shownHash]
}

func only(s, letters string) bool {
	return strings.Trim(s, letters) == ""
}
