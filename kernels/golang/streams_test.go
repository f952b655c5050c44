package golang_test

import (
	"fmt"
	"testing"
)

// TestClosedStreams has that a cell which closes its streams costs no later one its
// output.
func TestClosedStreams(t *testing.T) {
	s := start(t)
	s.is("import (\"fmt\"; \"log\"; \"os\"; \"os/exec\"; \"syscall\")\nlog.SetFlags(0)\nsay := func() { fmt.Println(\"out\"); os.Stdout.WriteString(\"file\\n\"); fmt.Fprintln(os.Stderr, \"err\"); log.Print(\"log\"); print(\"raw\\n\"); c := exec.Command(\"sh\", \"-c\", \"echo child; echo no >&2\"); c.Stdout, c.Stderr = os.Stdout, os.Stderr; c.Run() }", "", "")
	whole := func() {
		t.Helper()
		if r := s.run("say()"); r.err != nil || r.Stream("stdout") != "out\nfile\nchild\n" || r.Stream("stderr") != "err\nlog\nraw\nno\n" {
			t.Errorf("%q %q %v", r.Stream("stdout"), r.Stream("stderr"), r.err)
		}
	}
	whole()
	for _, code := range []string{
		"os.Stdout.Close()", "os.Stderr.Close()", "os.Stdout.Close(); os.Stderr.Close()", "syscall.Close(1)", "syscall.Close(1); syscall.Close(2)",
		"os.Stderr.Close(); panic(\"no\")",
	} {
		for range 2 {
			s.run(code)
			whole()
		}
	}
	// The number of a stream that is closed goes to the next file that is opened.
	name := t.TempDir() + "/f"
	s.is(fmt.Sprintf("os.Stdout.Close()\nf, err := os.Create(%q)\nf.Fd()", name), "", "1")
	s.is("n, _ := fmt.Fprint(f, \"mine\")\nfmt.Println(\"out\", n)", "out 4\n", "")
	s.is(fmt.Sprintf("b, _ := os.ReadFile(%q)\nstring(b)", name), "", "mine")
}
