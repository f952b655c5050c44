package node

import (
	"embed"
	"fmt"
	"io"
	"io/fs"
)

//go:embed js/*.js js/vendor/acorn.js
var sources embed.FS

// bootScript is what Node is started with; it reads the other files as writeSources writes them.
func bootScript() string {
	b, err := sources.ReadFile("js/boot.js")
	if err != nil {
		panic(fmt.Sprintf("node: the embedded kernel: %v", err)) // can't be: it is in the binary
	}
	return string(b)
}

// writeSources writes the kernel's JavaScript, each file after a line with its name and size.
// They are not put together first, in memory that the process would keep.
func writeSources(w io.Writer) error {
	return fs.WalkDir(sources, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "boot.js" {
			return err
		}
		f, err := sources.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%s %d\n", d.Name(), info.Size()); err != nil {
			return err
		}
		_, err = io.Copy(w, f)
		return err
	})
}
