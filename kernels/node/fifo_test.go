package node

import (
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A cell whose thread waits for the other end of a FIFO is stopped, and takes no step when
// that has been opened for it.
func TestFIFO(t *testing.T) {
	each(t, func(t *testing.T, program string) {
		dir := t.TempDir()
		for _, name := range []string{"a", "b"} {
			if err := unix.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s := open(t, JavaScript, program)
		s.run("let x = 41, done = 0; const fs = require('fs'); process.chdir('" + dir + "')").ok()
		s.within(soon, "fs.readFileSync('"+dir+"/a'); done++; console.log('goes on'); for (;;);").stopped().out("", "")
		s.run("x + done").text("41").out("", "")
		s.within(soon, "fs.openSync('b', 'w'); done++; console.log('goes on'); for (;;);").stopped().out("", "")
		s.run("x + done").text("41").out("", "")
		// Somebody holds it open and nobody reads.
		s.run("const held = fs.openSync('b', 'r+')").ok()
		s.within(soon, "fs.writeFileSync('b', 'x'.repeat(200000)); done++; console.log('goes on'); for (;;);").stopped().out("", "")
		s.run("x + done").text("41").out("", "")
	})
}
