package node

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cellard/cellard/mime"
)

const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

func TestDisplay(t *testing.T) {
	each(t, func(t *testing.T, program string) {
		s := open(t, JavaScript, program)
		dir := t.TempDir()
		write := func(name, content string) string {
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}
		image, _ := base64.StdEncoding.DecodeString(png)
		write("p.png", string(image))
		write("t.csv", "a,b\n1,2\n")
		write("x.json", `{"a": 1}`)
		s.run("process.chdir('" + dir + "')").ok()
		shows := func(code string, want map[string]any) {
			t.Helper()
			shown := s.run(code).ok().Shown("display_data")
			if len(shown) != 1 {
				t.Errorf("%s: %d displays", code, len(shown))
				return
			}
			for k, v := range want {
				if got, _ := json.Marshal(shown[0][k]); string(got) != mustJSON(v) {
					t.Errorf("%s: %s is %s, wanted %s", code, k, got, mustJSON(v))
				}
			}
		}
		shows("display({ 'text/html': '<b>hi</b>' })", map[string]any{"text/html": "<b>hi</b>"})
		shows("display.html('<i>')", map[string]any{"text/html": "<i>"})
		shows("display.svg('<svg/>')", map[string]any{"image/svg+xml": "<svg/>"})
		shows("display({ 'image/svg+xml': Buffer.from('<svg/>') })", map[string]any{"image/svg+xml": "<svg/>"})
		shows("display.markdown('# x')", map[string]any{"text/markdown": "# x"})
		shows("display.json({ a: [1, 2n, new Date(0)] })", map[string]any{"application/json": map[string]any{"a": []any{1, "2", "1970-01-01T00:00:00.000Z"}}})
		shows("display({ 'application/geo+json': { type: 'Point' }, 'text/plain': 'point' })", map[string]any{"application/geo+json": map[string]any{"type": "Point"}, "text/plain": "point"})
		shows("display('just text')", map[string]any{"text/plain": "just text"})
		shows("display([1, 2])", map[string]any{"text/plain": "[ 1, 2 ]"})
		shows("display('p.png')", map[string]any{"image/png": png, "text/plain": "p.png"})
		shows("display.file('t.csv')", map[string]any{"text/csv": "a,b\n1,2\n"})
		shows("display(require('url').pathToFileURL('x.json'))", map[string]any{"application/json": map[string]any{"a": 1}})
		shows("const image = require('fs').readFileSync('p.png'); display(image)", map[string]any{"image/png": png})
		shows("display.image(new Uint8Array(image))", map[string]any{"image/png": png})
		shows("display({ [Symbol.for('Jupyter.display')]() { return { 'text/html': '<u>' } } })", map[string]any{"text/html": "<u>"})
		s.run("display.file('none.png')").failed("Error", "none.png")
		s.run("display.file('/dev/zero')").failed("Error", "not a regular file")
		s.run("display.image(Buffer.from('no image at all'))").failed("TypeError", "no PNG")
		s.run("require('child_process').execFileSync('mkfifo', ['f.png']); display.file('f.png')").failed("Error", "not a regular file")
		shows("display('f.png')", map[string]any{"text/plain": "f.png"})
		if r := s.run("image").ok(); r.Shown("execute_result")[0]["image/png"] != png {
			t.Error("the value's image is not shown")
		}
		s.run("'p.png'").text("'p.png'") // a path that is merely the last value
		r := s.run("display('one', { displayId: 'it', id: 'it' }); display('two', { id: 'it', update: true, metadata: { a: 1 } }); display.update('it', 'three'); display.clear(true); display.clear()")
		r.ok()
		var got []string
		for _, m := range r.Messages() {
			id, _ := m.Content["transient"].(map[string]any)
			got = append(got, m.Type+" "+mustJSON(m.Content["data"])+mustJSON(id["display_id"])+mustJSON(m.Content["wait"]))
		}
		want := []string{`display_data {"text/plain":"one"}"it"null`, `update_display_data {"text/plain":"two"}"it"null`,
			`update_display_data {"text/plain":"three"}"it"null`, `clear_output nullnulltrue`, `clear_output nullnullfalse`}
		if mustJSON(got) != mustJSON(want) {
			t.Errorf("%s\nwanted %s", mustJSON(got), mustJSON(want))
		}
		s.run("display({ 'text/plain': 'x', 'text/html': { toString() { throw new Error('hostile') } } })").failed("Error", "hostile")
		s.run("const loop = {}; loop.self = loop; display.json(loop)").failed("TypeError", "circular")
		s.run("1").text("1")
	})
}

func mustJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func TestTables(t *testing.T) {
	t.Setenv("CELLARD_TABLE_ROWS", "5")
	t.Setenv("CELLARD_TABLE_COLUMNS", "3")
	each(t, func(t *testing.T, program string) {
		s := open(t, JavaScript, program)
		for _, c := range []struct{ code, want string }{
			{"[{ a: 1, b: 'x' }, { a: 2, b: 'y' }]", `{"columns":["a","b"],"types":["integer","string"],"rows":[[1,"x"],[2,"y"]],"index":null,"rowCount":2,"truncated":false}`},
			{"[{ a: 1.5, c: null }, { a: NaN, b: true }, { a: Infinity }]", `{"columns":["a","c","b"],"types":["number","any","boolean"],"rows":[[1.5,null,null],[null,null,true],[null,null,null]],"index":null,"rowCount":3,"truncated":false}`},
			{"[{ d: new Date(0), n: 2n ** 60n, m: 2 ** 53 + 2 }, { d: new Date(NaN), n: 3n, m: 1 }]", `{"columns":["d","n","m"],"types":["datetime","integer","integer"],"rows":[["1970-01-01T00:00:00.000Z","1152921504606846976","9007199254740994"],[null,3,1]],"index":null,"rowCount":2,"truncated":false}`},
			{"new Map([['a', { x: 1 }], ['b', { x: 2 }]])", `{"columns":["x"],"types":["integer"],"rows":[[1],[2]],"index":["a","b"],"rowCount":2,"truncated":false}`},
			{"new Map([['a', 1], ['b', 'two']])", `{"columns":["key","value"],"types":["string","any"],"rows":[["a",1],["b","two"]],"index":null,"rowCount":2,"truncated":false}`},
			{"Array.from({ length: 1e6 }, (_, i) => ({ i }))", `{"columns":["i"],"types":["integer"],"rows":[[0],[1],[2],[3],[4]],"index":null,"rowCount":1000000,"truncated":true}`},
			{"[{ a: 1, b: 2, c: 3, d: 4 }]", `{"columns":["a","b","c"],"types":["integer","integer","integer"],"rows":[[1,2,3]],"index":null,"rowCount":1,"truncated":true}`},
			{"[{ a: [1, { b: 2n }], f() {}, s: Symbol('q') }]", `{"columns":["a","s"],"types":["any","any"],"rows":[[[1,{"b":2}],"Symbol(q)"]],"index":null,"rowCount":1,"truncated":false}`},
			{"[{ get a() { throw 1 }, b: new Set([1]), c: /x/ }]", `{"columns":["b","c"],"types":["any","any"],"rows":[[[1],"/x/"]],"index":null,"rowCount":1,"truncated":false}`},
			{"const o = { a: 1 }; o.o = o; [o]", ""},
			{"[1, 2]", "null"}, {"[]", "null"}, {"[{}]", "null"}, {"[[1]]", "null"}, {"[new Date()]", "null"}, {"[{ a: 1 }, 2]", "null"}, {"new Map()", "null"},
			{"[new Proxy({ a: 1 }, {})]", "null"}, {"new Proxy([{ a: 1 }], { get() { throw 1 } })", "null"},
			{"[{ a: new Proxy({}, { get() { throw 1 } }) }]", ""},
			{"class P { constructor() { this.x = 1; this.y = 'p' } }; [new P()]", `{"columns":["x","y"],"types":["integer","string"],"rows":[[1,"p"]],"index":null,"rowCount":1,"truncated":false}`},
			{"[Object.fromEntries(Array.from({ length: 1e5 }, (_, i) => ['k' + i, i]))]", ""},
			{"[{ a: 'x'.repeat(1e7) }]", ""},
			{"const big = Array(1e4).fill(Array(1e4).fill('y'.repeat(100))); Array.from({ length: 1e5 }, () => ({ big }))", ""},
		} {
			begin := time.Now()
			r := s.run(c.code).ok()
			shown := r.Shown("execute_result")
			if len(shown) != 1 || shown[0]["text/plain"] == "" {
				t.Fatalf("%s: %v", c.code, shown)
			}
			if got := mustJSON(shown[0][mime.TableType]); c.want != "" && got != canonical(t, c.want) {
				t.Errorf("%s:\n%s, wanted\n%s", c.code, got, canonical(t, c.want))
			}
			t.Logf("%.40s: %v", c.code, time.Since(begin).Round(time.Millisecond))
		}
		for code, want := range map[string]string{
			"[{ a: 1, '<b>': '<&>' }, { a: null, '<b>': { c: [1] } }]": `<table><thead><tr><th>a</th><th>&lt;b&gt;</th></tr></thead><tbody><tr><td>1</td><td>&lt;&amp;&gt;</td></tr><tr><td></td><td>{"c":[1]}</td></tr></tbody></table>`,
			"new Map([['<i>', { x: 1 }]])":                             "<table><thead><tr><th></th><th>x</th></tr></thead><tbody><tr><th>&lt;i&gt;</th><td>1</td></tr></tbody></table>",
			"[1]":                                                      "",
		} {
			if got, _ := s.run(code).ok().Shown("execute_result")[0]["text/html"].(string); got != want {
				t.Errorf("%s: %s", code, got)
			}
		}
		if html := s.run("Array.from({ length: 300 }, (_, i) => ({ i }))").ok().Shown("execute_result")[0]["text/html"].(string); strings.Count(html, "<tr>") != 6 || !strings.HasSuffix(html, "</table><p>300 rows</p>") {
			t.Errorf("a long table as HTML: %s", html)
		}
		s.run("Array.prototype.map = Array.prototype.push = Array.prototype[Symbol.iterator] = null; Map.prototype.entries = null; [{ a: 1 }]").ok()
		r := s.run("[{ a: 1 }]").ok()
		if r.Shown("execute_result")[0][mime.TableType] == nil {
			t.Error("no table once prototypes are broken")
		}
	})
}

// canonical is JSON as mustJSON writes it.
func canonical(t *testing.T, text string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return mustJSON(v)
}

func TestInput(t *testing.T) {
	each(t, func(t *testing.T, program string) {
		s := open(t, JavaScript, program)
		s.run("prompt('name? ')").failed("StdinNotImplementedError", "without answers")
		s.run("for await (const line of process.stdin) console.log(line)").failed("StdinNotImplementedError", "without answers")
		s.run("import readline from 'node:readline/promises'\nconst rl = readline.createInterface({ input: process.stdin, output: process.stdout }); await rl.question('name? ')").
			failed("StdinNotImplementedError", "without answers").out("name? ", "")
		s.run("require('fs').readFileSync(0, 'utf8')").text("''")
		r := s.asked([]string{"Ada", "7"}, "[prompt('a? '), prompt('b? ')]").text("[ 'Ada', '7' ]")
		if got := strings.Join(r.Prompts(), "|"); got != "a? |b? " {
			t.Errorf("prompts %q", got)
		}
		s.asked([]string{"", "x"}, "[prompt('a', 'default'), prompt()]").text("[ 'default', 'x' ]")
		s.asked([]string{"Ada", "Lovelace"}, "const rl2 = readline.createInterface({ input: process.stdin, output: process.stdout }); const a = await rl2.question('a? '); const b = await rl2.question('b? '); rl2.close(); a + b").
			text("'AdaLovelace'").out("a? b? ", "")
		s.asked([]string{"1", "2"}, "const got = []; for await (const line of require('readline').createInterface({ input: process.stdin })) { got.push(line); if (got.length === 2) break }; got").text("[ '1', '2' ]")
		s.asked([]string{"1"}, "const rl3 = readline.createInterface({ input: process.stdin }); const one = await rl3.question(''); await new Promise(r => setTimeout(r, 50)); rl3.close(); one").text("'1'")
		s.asked([]string{"1", "2"}, "process.stdin.once('data', d => console.log(String(d))); await new Promise(r => setTimeout(r, 50))").ok().out("1\n\n", "")
		s.run("console.log('mine')").ok().out("mine\n", "")
		s.run("1").text("1")
	})
}

// Of an integer that V8 would write for minutes, where nothing stops it, is told that it is
// too large, wherever a value has it.
func TestHugeIntegers(t *testing.T) {
	const told = "[a value with an integer of more than 1048576 bits, too large to write: x.toString(16) is quick]"
	each(t, func(t *testing.T, program string) {
		s := open(t, JavaScript, program)
		s.run("const huge = 2n ** (1n << 26n); class A { #x = 1; z = -huge; get y() { for (;;); } }").ok()
		for _, code := range []string{"huge", "-huge", "[1n, huge]", "({ a: { b: huge } })", "new Map([[huge, 1]])", "new Set([[huge]])",
			"Object(huge)", "new A()", "Object.assign(() => {}, { huge })", "[{ a: 1, b: huge }, { a: 2, b: [huge] }]"} {
			s.run(code).text(told)
		}
		s.run("throw huge").failed("Error")
		s.run("[[[[huge]]]]").text("[ [ [ [Array] ] ] ]") // which nobody sees
		s.run("[2n ** 70n, { a: new Set([1n]) }]").text("[ 1180591620717411303424n, { a: Set(1) { 1n } } ]")
	})
}
