package golang_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestNames has that no name which the kernel or the language has a use for keeps later
// cells from being run, whatever the user gives it to.
func TestNames(t *testing.T) {
	names := strings.Fields("run old cell live plugin host worker compiler main2 done objects Q QRun QDone QInit1 QP0 P0 p0 c1 exported names result value display2 runtime os reflect fmt panic print println close copy new make append delete real error any comparable rune byte uint8 int32 bool Stop Check Enter Guard Began Room Show Register init2 _x stdin timer x1")
	for _, kind := range []struct{ declare, use string }{
		{"%s := 7", "%s"}, {"func %s() int { return 7 }", "%s()"}, {"type %s struct{ v int16 }", "%s{7}.v"}, {"const %s = 7", "%s + 0*x"},
		{"type T%[1]s struct{ %[1]s int16 }\nfunc (t T%[1]s) F() int16 { return t.%[1]s }", "T%s{7}.F()"},
	} {
		var all strings.Builder
		for _, name := range names {
			fmt.Fprintf(&all, kind.declare+"\n", name)
		}
		s := start(t)
		s.is("x := 1", "", "")
		s.is(all.String(), "", "")
		for _, name := range []string{"run", "QRun", "x1", "Stop"} {
			s.is(fmt.Sprintf(kind.use, name), "", "7")
		}
		s.is("x + 1", "", "2")
		s.is("y := x\nx + y", "", "2")
		s.is("x := y + 1\nx", "", "2")
	}
}
