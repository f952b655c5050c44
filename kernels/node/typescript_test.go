package node

import (
	"context"
	"testing"
)

func TestTypeScript(t *testing.T) {
	each(t, func(t *testing.T, program string) {
		s := open(t, TypeScript, program)
		s.run("import { join } from 'node:path'\nimport type { Stats } from 'node:fs'").text("")
		s.run("join('a', 'b')").text("'a/b'")
		s.run("interface P { n: number }\nconst p: P = { n: 3 }\nenum E { A, B }\np.n + E.B").text("4")
		s.run("function id<T>(t: T): T { return t }\nid<number>(p.n)").text("3")
		s.run("enum E { A = 5, C }\n[E.C, E[5]]").text("[ 6, 'A' ]")
		s.run("namespace N { export const x: number = 1; export function f() { return x } }\nN.f()").text("1")
		s.run("class Q { constructor(private readonly a: number, public b = 2) {} sum() { return this.a + this.b } }\nnew Q(1).sum()").text("3")
		s.run("abstract class R { abstract f(): void; declare g: string }\ntype T = keyof R; let v = <const>'x'; let w = v satisfies string; w!").text("'x'")
		s.run("function logged(value: any, context: ClassMethodDecoratorContext) { return function (this: any) { return 'logged ' + value.call(this) } }\nclass D { @logged m() { return 1 } }\nnew D().m()").text("'logged 1'")
		s.run("await (async <T,>(x: T): Promise<T> => x)(5)").text("5")
		s.run("const n: number = 1;\n\n\ninterface Long {\n  a: string\n}\nfunction thrower(x: number): never {\n  throw new Error(`no ${x}`)\n}\nthrower(1)").
			failed("Error", "no 1", "at thrower (cell-11.ts:8:9)", "at cell-11.ts:10:1", "  throw new Error(`no ${x}`)\n        ^")
		s.run("type A = {\n a: number\n}\ntry { thrower(2) } catch (e) { console.log((e as Error).stack!.split('\\n')[1].trim()) }").out("at thrower (cell-11.ts:8:9)\n", "")
		s.run("let = = 1").failed("SyntaxError", "cell-13.ts:1", "let = = 1")
		s.run("const q: number = 'not checked'; q").text("'not checked'")
		s.run("var s1 = 1").ok()
		s.run("let s1: string = 'two'; s1").text("'two'")
		s.run("'just a string'").text("'just a string'")
		s.run("// @ts-ignore\n/** nothing */").text("")
		s.run("using d = { [Symbol.dispose ?? Symbol.for('Symbol.dispose')]() { console.log('disposed') } }; 1").ok()
		s.within(soon, "while (true) {}").stopped()
		s.run("p.n").text("3")
		info, err := s.k.Info()
		if err != nil || info.LanguageInfo.Name != "typescript" || info.LanguageInfo.FileExtension != ".ts" {
			t.Errorf("%+v %v", info, err)
		}
	})
}

// What is JavaScript too isn't given to the compiler, unless it means something else there.
func TestPlainTypeScript(t *testing.T) {
	for code, want := range map[string]bool{
		"": true, "1": true, "x = { a: 1, b: x!==2 }": true, "let y = f(3)\ny": true, "let n: number = 1": true, "for (const a of [1, 2]) console.log(a)": true,
		"f<string>(x)": false, "x < 1": false, "a ? (b) : c => d": false, "class A {}": false, "@d": false, "type T = 1": false, "let x = y as any": false, "enum E {}": false, "import 'x'": false,
	} {
		if plain(code) != want {
			t.Errorf("%q", code)
		}
	}
	each(t, func(t *testing.T, program string) {
		s := open(t, TypeScript, program)
		s.run("let n: number = 1\nfunction f(a: number, b?: string) { console.log('once'); return a }").text("")
		s.run("f(n)").text("1").out("once\n", "")
		s.run("console.log('not yet'); let = = 1").failed("SyntaxError").out("", "")
		s.run("console.log('once'); let m: string = 'x'; m").text("'x'").out("once\n", "")
		s.run("f(\n  n,\n  'x')\nthrow new Error('here')").failed("Error", "here", "at cell-5.ts:4:7").out("once\n", "")
		s.run("let s!: string\ns = 'a'; s!").text("'a'")
		s.within(soon, "while (true) {}").stopped()
	})
}

func TestIsComplete(t *testing.T) {
	program := nodes(t)[0]
	for _, language := range []string{JavaScript, TypeScript} {
		s := open(t, language, program)
		for code, want := range map[string]string{
			"1 + 1": "complete", "": "complete", "let x = {": "incomplete", "f(": "incomplete", "`a": "incomplete", "/* a": "incomplete",
			"if (x) {\n  y": "incomplete", "let = = 1": "invalid", "x)": "invalid", "await f()": "complete", "import a from 'b'": "complete", "1 +": "incomplete",
		} {
			c, err := s.k.IsComplete(context.Background(), code)
			if err != nil || c.Status != want {
				t.Errorf("%s: %q is %+v, wanted %s (%v)", language, code, c, want, err)
			}
		}
		if c, _ := s.k.IsComplete(context.Background(), "if (x) {\n  while (y) {"); c.Indent != "    " {
			t.Errorf("%s: indent %q", language, c.Indent)
		}
		if err := s.k.Close(); err != nil {
			t.Error(err)
		}
	}
}
