package node

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/cellard/cellard/protocol/api"
	"github.com/cellard/cellard/protocol/jupyter/kernel/kerneltest"
)

// What cells have declared or set is told, and none of their code runs.
func TestVariables(t *testing.T) {
	each(t, func(t *testing.T, program string) {
		s := open(t, JavaScript, program)
		variables := func() ([]api.Variable, int) {
			t.Helper()
			list, total, _ := kerneltest.Variables(t, s.k, patience)
			return list, total
		}
		if list, total := variables(); len(list) != 0 || total != 0 {
			t.Errorf("at the start: %v", list)
		}
		s.run(`let n = 42, text = 'a\nb', nothing = null, none, big = 10n ** 20n, yes = true, symbol = Symbol('s');
const list = [1, 'two', [3]], map = new Map([['k', 1]]), set = new Set([1]), typed = new Float64Array(1000), when = /a/g;
class Point { constructor() { this.x = 1; this.y = { deep: 1 }; } toString() { calls++; } get z() { calls++; while (true); } }
let calls = 0; var point = new Point(); function add(a, b = 1) { return a + b; }
const loops = new Proxy({}, { get() { calls++; while (true); }, ownKeys() { calls++; while (true); } });
implicit = 'y'.repeat(1_000_000);
Object.defineProperty(globalThis, 'getter', { get() { calls++; while (true); }, configurable: true });`).ok()
		list, total := variables()
		var got []string
		for _, v := range list {
			size, _ := json.Marshal(v.Size)
			got = append(got, fmt.Sprintf("%s %s %s %.40s", v.Name, v.Type, size, v.Preview))
		}
		want := []string{
			"Point class null class Point", "add function null function add(a, b = 1)", "big bigint null 100000000000000000000n", "calls number null 0",
			"getter unknown null ", `implicit string 1000000 "` + strings.Repeat("y", 39), `list Array 3 [1, "two", Array(1)]`, "loops Proxy null ",
			`map Map 1 {"k" => 1}`, "n number null 42", "none undefined null undefined", "nothing null null null", "point Point null {x: 1, y: Object}",
			"set Set 1 {1}", "symbol symbol null Symbol(s)", `text string 3 "a\nb"`, "typed Float64Array 1000 [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ",
			"when RegExp null /a/g", "yes boolean null true",
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") || total != len(list) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		s.run("calls").text("0").out("", "")
		s.run(`var huge = 1n << 1000000000n, nhuge = -huge; Object.prototype.subtype = Object.prototype.key = 'proxy'`).ok()
		list, total = variables()
		if total != len(want)+2 {
			t.Errorf("%d variables, not two more than %d", total, len(want))
		}
		for _, v := range list {
			switch v.Name {
			case "huge", "nhuge":
				if v.Type != "bigint" || v.Preview != "" {
					t.Errorf("%+v", v)
				}
			case "point":
				if v.Type != "Point" || v.Preview != "{x: 1, y: Object}" {
					t.Errorf("%+v", v)
				}
			case "set":
				if v.Type != "Set" || v.Preview != "{1}" {
					t.Errorf("%+v", v)
				}
			}
		}
		// Integers inside others are as good, and one that takes long to write costs its
		// container's text, and nobody else's.
		s.run(`var e1 = [1n, -(2n ** 64n)], e2 = new Map([[1n, {n: 2n}]]), e3 = new BigInt64Array([3n]), e4 = {n: 4n}, e5 = Object(5n), e6 = new ArrayBuffer(6);
var long = 1n << 300000000n, h1 = Array.from({length: 100}, () => long), h2 = new Map([[1, [long]]]), h3 = new Set(h1), h4 = {n: -long}, h5 = Object(long), h6 = Object.assign(new Map(), {long});
var i1 = new Map([[1, 2]]).values(), i2 = new Proxy([long], {getOwnPropertyDescriptor() { calls++; while (true); }}), i3 = new Array(1000), i4 = Object.defineProperty([], 0, {get() { calls++; while (true); }}), i5 = new Map([[i2, i2]]);
require('util').types.isProxy = require('util').types.isMap = () => { calls++; while (true); }; Map.prototype.entries = Array.prototype[Symbol.iterator] = null; BigInt.prototype.valueOf = null`).ok()
		got = nil
		list, _ = variables()
		for _, v := range list {
			if len(v.Name) == 2 {
				if v.Name == "i1" {
					v.Type = "" // it has a space in Node.js 20
				}
				got = append(got, v.Name+" "+v.Type+" "+v.Preview)
			}
		}
		want = []string{"e1 Array [1n, -18446744073709551616n]", "e2 Map {1n => Object}", "e3 BigInt64Array [3n]", "e4 Object {n: 4n}", "e5 BigInt {[[PrimitiveValue]]: 5n}", "e6 ArrayBuffer ",
			"h1 Array ", "h2 Map ", "h3 Set ", "h4 Object ", "h5 BigInt ", "h6 Map ", "i1  ", "i2 Proxy ", "i3 Array ", "i4 Array [accessor]", "i5 Map "}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		s.run("calls").text("0")
		total += 18
		s.run("delete Object.prototype.subtype; delete Object.prototype.key; for (let i = 0; i < 1500; i++) globalThis['w' + i] = i").ok()
		if list, more := variables(); len(list) != api.MaxVariables || more != total+1500 {
			t.Errorf("%d of %d", len(list), more)
		}
		s.run("for (let i = 0; i < 200_000; i++) globalThis['u' + i] = i").ok()
		if list, more := variables(); len(list) != api.MaxVariables || more != total+201_500 || list[0].Name != "Point" {
			t.Errorf("%d of %d", len(list), more)
		}
	})
}
