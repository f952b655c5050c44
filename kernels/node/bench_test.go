package node

import (
	"context"
	"testing"

	"github.com/cellard/cellard/protocol/jupyter/kernel"
	"github.com/cellard/cellard/protocol/jupyter/kernel/kerneltest"
)

func BenchmarkStart(b *testing.B) {
	program := nodes(b)[len(nodes(b))-1]
	for b.Loop() {
		k := New(Options{Program: program})
		if _, err := k.Info(); err != nil {
			b.Fatal(err)
		}
		if err := k.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCell(b *testing.B) {
	for _, language := range []string{JavaScript, TypeScript} {
		b.Run(language, func(b *testing.B) {
			k := New(Options{Language: language, Program: nodes(b)[len(nodes(b))-1]})
			if _, err := k.Info(); err != nil {
				b.Fatal(err)
			}
			defer k.Close()
			for b.Loop() {
				if err := k.Execute(context.Background(), kernel.NewCell("1 + 1", &kerneltest.Recorder{})); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
