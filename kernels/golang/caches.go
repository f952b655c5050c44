package golang

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// A cache is a directory with workspaces and the build cache that they were built with.
// One is for all users: root's, which Warm writes. The others are a user's own: a kernel
// that finds no workspace builds one in the first of them that it can make.

// SharedCache is where Warm puts what every user's kernels read, when it runs as root.
const SharedCache = "/var/cache/cellard/go"

// CacheVariable names a directory to look into before all others, but for what KeptCache
// gives, and to write to where it is the user's own.
const CacheVariable = "CELLARD_GO_CACHE"

// KeptIn is where a command that makes a home for the account of cells, and removes it,
// keeps what was built.
const KeptIn = "/var/tmp"

// KeptCache is the directory of a user's in KeptIn, or in another place for such files.
func KeptCache(in string, uid int) string {
	return filepath.Join(in, "cellard-go-"+strconv.Itoa(uid))
}

// named is the directory that CacheVariable names in an environment; "" for none. A
// relative path is none: it would be another one in each working directory.
func named(env func(string) string) string {
	if dir := env(CacheVariable); filepath.IsAbs(dir) {
		return dir
	}
	return ""
}

// bases are the directories to look into. What root has prepared no cell can have changed:
// it comes before what lies in the user's own, unless that was named.
func bases(own, named string, uid int) []string {
	if named == "" || named == KeptCache(KeptIn, uid) {
		return []string{SharedCache, own}
	}
	return slices.Compact([]string{named, own, SharedCache})
}

// caches are the directories that may be a user's own: the first that can be made is.
func caches(env func(string) string, uid int) (tried []string) {
	if dir := named(env); dir != "" {
		tried = append(tried, dir)
	}
	if dir := env("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		tried = append(tried, filepath.Join(dir, "cellard", "go"))
	}
	if dir := env("HOME"); filepath.IsAbs(dir) && dir != "/" {
		tried = append(tried, filepath.Join(dir, ".cache", "cellard", "go"))
	}
	temp := env("TMPDIR")
	if temp == "" {
		temp = os.TempDir()
	}
	return append(tried, KeptCache(temp, uid))
}

// ownCache is the user's own directory. It is made.
func ownCache(env func(string) string) (string, error) {
	for _, dir := range caches(env, os.Geteuid()) {
		if os.MkdirAll(dir, 0o700) != nil {
			continue
		}
		// A link to it must not be another's: where all may write it could lead anywhere.
		if link, err := os.Lstat(dir); err != nil || !ownedBy(link, 0, os.Geteuid()) {
			continue
		}
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm()&0o022 != 0 || !ownedBy(info, os.Geteuid()) {
			continue
		}
		if probe, err := os.CreateTemp(dir, ".probe"); err == nil {
			probe.Close()
			os.Remove(probe.Name())
			return dir, nil
		}
	}
	return "", errNoDir
}

// ownedBy tells whether a file is one of these users'.
func ownedBy(info os.FileInfo, uids ...int) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && slices.Contains(uids, int(st.Uid))
}
