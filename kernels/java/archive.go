package java

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/cellard/cellard/internal/environ"
)

// CacheDir is where a user's jars and archives lie, by the environment: in
// XDG_CACHE_HOME, else HOME/.cache. "" where neither is set.
func CacheDir(env []string) string {
	base := environ.Get(env, "XDG_CACHE_HOME")
	if !filepath.IsAbs(base) {
		home := environ.Get(env, "HOME")
		if !filepath.IsAbs(home) {
			return ""
		}
		base = filepath.Join(home, ".cache")
	}
	return filepath.Join(base, "cellard", "java-"+jarSum())
}

// jarSum names what an archive was made for: the jars.
func jarSum() string {
	h := sha256.New()
	h.Write(kernelJar)
	h.Write(asmJar)
	return fmt.Sprintf("%x", h.Sum(nil))[:16]
}

// archiveName names an archive: it is good for one build of Java alone.
func archiveName(j *Java) string {
	h := sha256.Sum256([]byte(j.Home + "\x00" + j.Version))
	return fmt.Sprintf("classes-%s-%x.jsa", j.Version, h[:4])
}

// owned tells whether a file is root's or this user's.
func owned(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && (stat.Uid == 0 || int(stat.Uid) == os.Getuid())
}
