package bash

import (
	"context"
	"testing"

	"github.com/cellard/cellard/protocol/jupyter/kernel"
	"github.com/cellard/cellard/protocol/jupyter/kernel/kerneltest"
)

// BenchmarkCell is a cell that does nothing, with the copy that is made after it.
func BenchmarkCell(b *testing.B) {
	k := New(Options{})
	if _, err := k.Info(); err != nil {
		b.Fatal(err)
	}
	defer k.Close()
	for b.Loop() {
		if err := k.Execute(context.Background(), kernel.NewCell(":", &kerneltest.Recorder{})); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		k := New(Options{})
		if _, err := k.Info(); err != nil {
			b.Fatal(err)
		}
		if err := k.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
