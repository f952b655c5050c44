package java

import (
	"strings"
	"testing"
)

// A cell that is a source file has its main called, as java FILE calls it; no other has.
func TestSourceFiles(t *testing.T) {
	onEach(t, func(t *testing.T, s *session) {
		prints := func(want, code string) {
			t.Helper()
			r := s.ok(t, code)
			if o := r.Stream("stdout"); o != want || r.text() != "(none)" {
				t.Errorf("%s\nprinted %q, wanted %q; value %s", code, o, want, r.text())
			}
		}
		prints("main 0\n", "/* A file. */\npackage com.example.first;\n\nimport java.time.Duration;\n\npublic class Main {\n  public static void main(String[] args) {\n    System.out.println(\"main \" + args.length);\n  }\n}\n")
		prints("", "Main.class.getName();") // it is the session's, and not called again
		prints("main 0\n", "Main.main(new String[0]);")
		prints("2\n", "#!/usr/bin/java --source 17\nclass Helper { static int two() { return 2; } }\nclass App { public static void main(final String... args) throws Exception { System.out.println(Helper.two()); } }")
		prints("enum\n", "enum E { A; static void main(String[] args) { System.out.println(\"enum\"); } }")
		prints("first\n", "class One { static void main(String[] a) { System.out.println(\"first\"); } }\nclass Two { static void main(String[] a) { System.out.println(\"second\"); } }")
		// Cells of a session, which say themselves what runs.
		prints("once\n", "class M { static void main(String[] a) { System.out.println(\"once\"); } }\nM.main(null);")
		prints("", "class M { static void main(String[] a) { System.out.println(\"never\"); } }\nint x = 1;")
		prints("", "class N { class In { void f() {} }\n  // void main(String[] args)\n  static int main(String a) { return 1; } }")
		prints("", "class P { private static void main(String[] a) { System.out.println(\"never\"); } }")
		prints("", "class Later { static void main(String[] a) { Missing.f(); } }")
		prints("", "package only;")

		r := s.fails(t, "package p;\nclass Fails {\n  static void f() { throw new IllegalStateException(\"no\"); }\n  public static void main(String[] args) { f(); }\n}", "java.lang.IllegalStateException", "no")
		if trace := r.trace(); trace != "java.lang.IllegalStateException: no\n\tat Fails.f (In[13]:3)\n\tat Fails.main (In[13]:4)" {
			t.Errorf("%s", trace)
		}
		s.fails(t, "class Exits { public static void main(String[] args) { System.exit(3); } }", "ExitStatus", "3")
		s.fails(t, "package p;\nclass Wrong { int x = \"\"; }", "CompileError", "incompatible types: java.lang.String cannot be converted to int (line 2, column 23)")
		s.fails(t, "package p\nclass Open { }", "CompileError", "illegal start of expression (line 1, column 1)")
		s.stops(t, "class Loops { public static void main(String[] args) { § while (true) { } } }")
		s.is(t, "new One() != null", "true")

		// From Java 25 on a main need be neither static nor in a class.
		free := s.o.Java.Major >= 25
		for code, want := range map[string]string{
			"String greeting() { return \"hi\"; }\nint n = 3;\nvoid main() { System.out.println(greeting() + n); }":                 "hi3\n",
			"void main() { System.out.println(\"none\"); }\nvoid main(String[] args) { System.out.println(args.length); }":          "0\n",
			"class I { void main() { System.out.println(\"instance\"); } }":                                                         "instance\n",
			"class I { static void main() { System.out.println(\"static\"); } }":                                                    "static\n",
			"class I { void main(String[] a) { System.out.println(a.length); } void main() { System.out.println(\"instance\"); } }": "0\n",
		} {
			if !free {
				want = ""
			}
			prints(want, code)
		}
		prints("", "void main() { System.out.println(\"never\"); }\nint y = 2;\ny + 1;")
		prints("", "void main(int n) { System.out.println(\"never\"); }")
	})
}

// A comment of any length may come before a package clause.
func TestPackageAfterComments(t *testing.T) {
	onEach(t, func(t *testing.T, s *session) {
		s.is(t, strings.Repeat("// a line; package x;\n", 10_000)+"/* package y; */ package a . b /* c */ ;\n6 * 7", "42")
	})
}
