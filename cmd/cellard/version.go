package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is set by the linker: -ldflags "-X main.version=v1.2.3".
var version string

// versionString is the version of a release, or else what the Go command recorded:
// the module's version or the commit.
func versionString() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	commit, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = "-" + s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "-dirty"
		}
	}
	return "devel" + commit + dirty
}

func printVersion([]string) int {
	fmt.Printf("cellard %s %s %s/%s\n", versionString(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return 0
}
