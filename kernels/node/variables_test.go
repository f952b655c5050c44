package node

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/cellard/cellard/protocol/api"
)

// What cells have declared or set is told, and none of their code runs.
func TestVariables(t *testing.T) {
	each(t, func(t *testing.T, program string) {
		s := open(t, JavaScript, program)
		variables := func() ([]api.Variable, int) {
			t.Helper()
			list, total, err := s.k.Variables(context.Background())
			if err != nil {
				t.Fatal(err)
			}
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
