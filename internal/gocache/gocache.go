// Package gocache builds what the Go kernel needs once for a toolchain, where tests keep
// it between runs: in .cache/go of the source tree. Only tests and benchmarks use it.
package gocache

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/cellard/cellard/kernels/golang"
)

// old is when a build of other sources is removed.
const old = 24 * time.Hour

// Setup builds it, and makes this process and those that it starts use it. The first
// time on a machine takes minutes. The error says what is missing.
func Setup() error {
	if os.Getenv(golang.CacheVariable) == "" {
		_, file, _, _ := runtime.Caller(0)
		dir := filepath.Join(filepath.Dir(file), "..", "..", ".cache", "go")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := os.Setenv(golang.CacheVariable, dir); err != nil {
			return err
		}
		prune(dir)
	}
	tool, err := golang.NewFinder(golang.FinderOptions{}).Find(context.Background())
	if err != nil {
		return fmt.Errorf("the tests of Go cells, which need Go and gcc: %w", err)
	}
	return golang.Warm(context.Background(), tool, func(string) {})
}

// prune removes what was built of sources that have changed since.
func prune(dir string) {
	builds, _ := filepath.Glob(filepath.Join(dir, "go1*"))
	for _, path := range builds {
		if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > old {
			os.RemoveAll(path)
		}
	}
}
