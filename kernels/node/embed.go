package node

import (
	"embed"
	"encoding/json"
	"fmt"
	"path"
)

//go:embed js/*.js js/vendor/acorn.js
var sources embed.FS

// bootScript is what Node is started with; it reads the other files as JSON.
func bootScript() string { return string(source("js/boot.js")) }

// bundle is the kernel's JavaScript as JSON: sources by name.
func bundle() []byte {
	files := make(map[string]string)
	for _, dir := range []string{"js", "js/vendor"} {
		entries, err := sources.ReadDir(dir)
		if err != nil {
			panic(fmt.Sprintf("node: the embedded kernel: %v", err)) // can't be: it is in the binary
		}
		for _, e := range entries {
			if !e.IsDir() && e.Name() != "boot.js" {
				files[e.Name()] = string(source(path.Join(dir, e.Name())))
			}
		}
	}
	b, err := json.Marshal(files)
	if err != nil {
		panic(fmt.Sprintf("node: the embedded kernel: %v", err)) // can't be: it is text
	}
	return b
}

func source(name string) []byte {
	b, err := sources.ReadFile(name)
	if err != nil {
		panic(fmt.Sprintf("node: the embedded kernel: %v", err)) // can't be: it is in the binary
	}
	return b
}
