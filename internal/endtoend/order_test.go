package endtoend

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/cellard/cellard/internal/gocache"
	"github.com/cellard/cellard/internal/pythons"
	"github.com/cellard/cellard/protocol/api"
)

// turns is how often a cell does one thing and then the other.
const turns = 10

// parted are cells that put something out by one way and then by another, in turns: "a N"
// and "b N". What a kernel's messages bring and what processes write to its descriptors
// come on different ways to the agent.
var parted = map[string]map[string]string{
	"python": {
		"text and a child":      `for i in range(10): print("a", i); subprocess.run(["echo", "b", str(i)])`,
		"a child and text":      `for i in range(10): subprocess.run(["echo", "a", str(i)]); print("b", i)`,
		"a display and a child": `for i in range(10): display({"text/plain": f"a {i}"}, raw=True); os.system(f"echo b {i}")`,
		"text and descriptors":  `for i in range(10): print("a", i); _ = os.write(1, b"b %d\n" % i)`,
		"stderr and stdout":     `for i in range(10): print("a", i, file=sys.stderr); print("b", i)`,
		"text and a command":    "for i in range(10):\n  print('a', i)\n  !echo b $i",
	},
	"r": {
		"text and a child":     `for (i in 0:9) { cat("a ", i, "\n", sep = ""); system(paste("echo b", i)) }`,
		"a display and text":   `for (i in 0:9) { display(list("text/plain" = paste("a", i))); cat("b ", i, "\n", sep = "") }`,
		"text and a display":   `for (i in 0:9) { cat("a ", i, "\n", sep = ""); display(list("text/plain" = paste("b", i))) }`,
		"a message and stdout": `for (i in 0:9) { message("a ", i); cat("b ", i, "\n", sep = "") }`,
		"values and text":      strings.TrimSpace(strings.Repeat("structure(list(), class = 'counted')\ncat('b ', said, '\\n', sep = '')\n", turns)),
	},
	"javascript": {
		"text and a child":      `for (let i = 0; i < 10; i++) { console.log("a", i); execSync("echo b " + i, { stdio: "inherit" }) }`,
		"a child and text":      `for (let i = 0; i < 10; i++) { execSync("echo a " + i, { stdio: "inherit" }); console.log("b", i) }`,
		"a display and a child": `for (let i = 0; i < 10; i++) { display({ "text/plain": "a " + i }); execSync("echo b " + i, { stdio: "inherit" }) }`,
		"stderr and stdout":     `for (let i = 0; i < 10; i++) { console.error("a", i); console.log("b", i) }`,
	},
	"java": {
		"text and a child":      `for (int i = 0; i < 10; i++) { System.out.println("a " + i); new ProcessBuilder("echo", "b", "" + i).inheritIO().start().waitFor(); }`,
		"a child and text":      `for (int i = 0; i < 10; i++) { new ProcessBuilder("echo", "a", "" + i).inheritIO().start().waitFor(); System.out.println("b " + i); }`,
		"a display and a child": `for (int i = 0; i < 10; i++) { display("text/plain", "a " + i); new ProcessBuilder("echo", "b", "" + i).inheritIO().start().waitFor(); }`,
		"stderr and stdout":     `for (int i = 0; i < 10; i++) { System.err.println("a " + i); System.out.println("b " + i); }`,
	},
	"go": {
		"text and a child":   `for i := 0; i < 10; i++ { fmt.Println("a", i); c := exec.Command("echo", "b", strconv.Itoa(i)); c.Stdout = os.Stdout; c.Run() }`,
		"a display and text": `for i := 0; i < 10; i++ { display(map[string]any{"text/plain": fmt.Sprint("a ", i)}); fmt.Println("b", i) }`,
		"stderr and stdout":  `for i := 0; i < 10; i++ { fmt.Fprintln(os.Stderr, "a", i); fmt.Println("b", i) }`,
	},
	"bash": {
		"text and a child":   `for i in {0..9}; do echo a $i; /bin/echo b $i; done`,
		"a display and text": `for i in {0..9}; do echo -n a $i | display - text/plain; echo b $i; done`,
	},
}

// What each needs before.
var partedSetup = map[string]string{
	"python":     "import os, subprocess, sys",
	"go":         `import ("fmt"; "os"; "os/exec"; "strconv")`,
	"r":          "said <- -1; print.counted <- function(x, ...) { said <<- said + 1; cat('a', said) }",
	"javascript": `const { execSync } = require("node:child_process")`,
}

// What a cell puts out comes in the order in which it did so, whichever way it takes.
func TestOrder(t *testing.T) {
	// A busy machine, where nothing is taken at once.
	for range runtime.NumCPU() {
		cmd := exec.Command("sh", "-c", "while :; do :; done")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	}
	if err := gocache.Setup(); err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := range turns {
		want = append(want, fmt.Sprint("a ", i), fmt.Sprint("b ", i))
	}
	in := func(t *testing.T, a *agent, language string) {
		if setup := partedSetup[language]; setup != "" {
			a.cell(language, setup)
		}
		for name, code := range parted[language] {
			t.Run(name, func(t *testing.T) {
				s := a.stream(object{"code": code, "context": language, "timeoutMs": 120_000})
				if x := s.rest(); x.Status != api.StatusOK {
					t.Fatalf("%s", show(x))
				}
				if got := strings.Join(s.puts(), "\n"); got != strings.Join(want, "\n") {
					t.Errorf("got\n%s", got)
				}
			})
		}
	}
	for _, p := range pythons.All(t) {
		t.Run(p.Name, func(t *testing.T) { in(t, start(t, config{python: p.Path}), "python") })
	}
	a := start(t, config{})
	for language := range parted {
		if language != "python" {
			t.Run(language, func(t *testing.T) { in(t, a, language) })
		}
	}
}

// puts is what the events put out, line by line, a display as one.
func (s *stream) puts() (lines []string) {
	text, kind := "", api.Kind("")
	flush := func() {
		if text != "" {
			lines = append(lines, strings.Split(strings.TrimSuffix(text, "\n"), "\n")...)
		}
		text = ""
	}
	for _, ev := range s.events {
		switch ev.K {
		case api.KindStdout, api.KindStderr:
			if ev.K != kind {
				flush()
			}
			text, kind = text+ev.Text, ev.K
		case api.KindResult:
			flush()
			var shown string
			_ = json.Unmarshal(ev.Data["text/plain"], &shown)
			lines = append(lines, strings.TrimSuffix(shown, "\n"))
		}
	}
	flush()
	return lines
}

// What a cell asks in the kernel's name, and what it does to the file of the answers, costs
// no more than the order.
func TestOrderIsAskedForBadly(t *testing.T) {
	a := start(t, config{})
	a.cell("python", `
import os, subprocess
k = get_ipython().kernel
for content in [{}, {"number": -1}, {"number": "x"}, {"number": 2**40}, {"number": None}, {"number": [[1] * 300_000]}, b'["number"]', b'"number"', b'{']:
    for parent in [k.get_parent(), {}, {"header": {"msg_id": "another"}}]:
        k.session.send(k.iopub_socket, "taken_request", content, parent=parent)`)
	turn := object{"code": "for i in range(3):\n  print('a', i)\n  _ = subprocess.run(['echo', 'b', str(i)])"}
	const want = "a 0\nb 0\na 1\nb 1\na 2\nb 2\n"
	if x := a.run(turn); x.Stdout != want || x.Status != api.StatusOK {
		t.Errorf("%s", show(x))
	}
	// It is written to where it was made, whatever lies there now.
	a.cell("python", `
import sys
here = os.path.dirname(sys.modules["cellard_kernel"].__file__)
taken = os.path.join(here, "taken")
os.remove(taken)
os.symlink(os.path.abspath("elsewhere"), taken)
with open("elsewhere", "w") as f: _ = f.write("mine")`)
	if x := a.run(turn); x.Stdout != want || x.Status != api.StatusOK {
		t.Errorf("%s", show(x))
	}
	if got := a.cell("python", "print(open('elsewhere').read())"); got != "mine\n" {
		t.Errorf("the cell's file has %q", got)
	}
}
