package golang_test

import (
	"testing"

	"github.com/cellard/cellard/kernels/golang"
	"github.com/cellard/cellard/protocol/jupyter/kernel"
	"github.com/cellard/cellard/protocol/jupyter/kernel/kerneltest"
)

// BenchmarkCells measures a cell from its text to its last output, by kind.
func BenchmarkCells(b *testing.B) {
	tool, err := golang.NewFinder(golang.FinderOptions{}).Find(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	for _, kind := range []struct{ name, first, code string }{
		{"assign", "", "x := 41"},
		{"change", "x := 41", "x++"},
		{"call", "func f(a int) int { return a + 1 }\nx := 1", "f(x)"},
		{"print", "import \"fmt\"\nx := 1", "fmt.Println(x)"},
		{"http", "import \"net/http\"", "http.StatusText(404)"},
	} {
		b.Run(kind.name, func(b *testing.B) {
			k, err := golang.New(tool, "")
			if err != nil {
				b.Fatal(err)
			}
			defer k.Close()
			run := func(code string) {
				if err := k.Execute(b.Context(), kernel.NewCell(code, &kerneltest.Recorder{})); err != nil {
					b.Fatal(err)
				}
			}
			run(kind.first)
			run(kind.code)
			for b.Loop() {
				run(kind.code)
			}
		})
	}
	b.Run("start", func(b *testing.B) {
		for b.Loop() {
			k, err := golang.New(tool, "")
			if err != nil {
				b.Fatal(err)
			}
			if err := k.Execute(b.Context(), kernel.NewCell("1", &kerneltest.Recorder{})); err != nil {
				b.Fatal(err)
			}
			k.Close()
		}
	})
}
