package golang

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// sources are the programs that the image's toolchain builds: the worker, the front, and
// what they are made of.
//
//go:embed compiler/*.go front/*.go host/*.go host/*.s live/*.go live/*.s live/stdin/*.go live/timer/*.go wire/*.go worker/*.go
var sources embed.FS

// modulePath is the sources' module, so that their import paths are those they have here.
const modulePath = "github.com/cellard/cellard/kernels/golang"

// sourcesSum tells one version of the sources from another.
func sourcesSum() string {
	h := sha256.New()
	_ = fs.WalkDir(sources, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			b, _ := sources.ReadFile(name)
			h.Write([]byte(name + "\x00"))
			h.Write(b)
		}
		return nil
	})
	return hex.EncodeToString(h.Sum(nil))
}

// writeSources writes them as a module.
func writeSources(dir, language string) error {
	err := fs.WalkDir(sources, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := sources.ReadFile(name)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		return os.WriteFile(to, b, 0o644)
	})
	if err != nil {
		return err
	}
	// The language's version is the toolchain's own, so that the runtime behaves as it
	// does today for users' code.
	return os.WriteFile(path.Join(dir, "go.mod"), []byte("module "+modulePath+"\n\ngo "+language+"\n"), 0o644)
}
