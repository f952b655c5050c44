package java

import (
	"context"
	"os"
	"testing"

	"github.com/cellard/cellard/protocol/jupyter/kernel"
	"github.com/cellard/cellard/protocol/jupyter/kernel/kerneltest"
)

// BenchmarkCell is a trivial cell, on the Java of the PATH with its archive of classes.
func BenchmarkCell(b *testing.B) {
	j, err := Find(os.Environ())
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	if err := Prepare(context.Background(), j, dir, os.Environ()); err != nil {
		b.Fatal(err)
	}
	for name, code := range map[string]string{"expression": "1", "statement": "{ System.currentTimeMillis(); }", "declaration": "int x = 1;",
		"println": "for (int i = 0; i < 100_000; i++) System.out.println(i);", "start": `new ProcessBuilder("true").start().waitFor();`} {
		b.Run(name, func(b *testing.B) {
			l := New(Options{Java: j, Cache: dir, Reaper: reaper})
			if _, err := l.Info(); err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			for b.Loop() {
				if err := l.Execute(context.Background(), kernel.NewCell(code, &kerneltest.Recorder{})); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
