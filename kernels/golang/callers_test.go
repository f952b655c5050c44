package golang_test

import "testing"

// TestCallers has that runtime.Caller names what a cell's user knows, in cells that are
// compiled and in those that are not.
func TestCallers(t *testing.T) {
	s := start(t)
	s.is("import (\"fmt\"; \"path\"; \"runtime\"; \"strings\")\nfunc at(n int) string { _, file, line, ok := runtime.Caller(n); return fmt.Sprint(path.Base(file), \" \", line, \" \", ok) }\nfunc deeper(n int) string {\n\treturn at(n)\n}\ntype T struct{ n int }\nfunc (t T) String() string { return at(t.n) }\nfunc names() string { pcs := make([]uintptr, 20); f := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)]); var all []string; for { one, more := f.Next(); all = append(all, fmt.Sprint(path.Base(one.File), \":\", one.Line)); if !more { return strings.Join(all, \" \") } } }\nfunc all() (n int) { for { if _, _, _, ok := runtime.Caller(n); !ok { return n }; n++ } }\nfunc name(n int) bool { pc, _, _, _ := runtime.Caller(n); return runtime.FuncForPC(pc) != nil }\nv := T{0}", "", "")
	s.is("at(0)", "", "In[1] 2 true")
	s.is("x := 0\nat(1)", "", "In[3] 2 true")
	s.is("x++\nat(1)", "", "In[4] 2 true")
	s.is("deeper(1) + deeper(2)", "", "In[1] 4 trueIn[5] 1 true")
	s.is("at(2)", "", ". 0 false")
	s.is("x = 1; func() string { return at(3) }()", "", ". 0 false")
	s.is("names()", "", "In[1]:8")
	s.is("func() string {\n\treturn names() }()", "", "In[1]:8 In[9]:2 In[9]:2")
	s.is("all()", "", "2")
	s.is("x = 1; func() int { return all() }()", "", "3")
	s.is("name(0) && name(1)", "", "true")
	s.is("v.n = 0\nfmt.Sprint(v)", "", "In[1] 2 true")
}
