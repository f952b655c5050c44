package java

import (
	"os"
	"strconv"
)

func itoa(n int) string { return strconv.Itoa(n) }

// readString is what a file holds, "" where it can't be read.
func readString(path string) string {
	b, _ := os.ReadFile(path)
	return string(b)
}
