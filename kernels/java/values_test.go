package java

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/cellard/cellard/mime"
)

const tableType = "application/vnd.runtime.table+json"

// table is a result's table.
func (r *run) table(t *testing.T) map[string]any {
	t.Helper()
	shown := r.Shown("execute_result")
	if len(shown) != 1 {
		t.Fatalf("%d results: %v %s", len(shown), r.err, r.trace())
	}
	table, _ := shown[0][tableType].(map[string]any)
	return table
}

func TestTables(t *testing.T) {
	onEach(t, func(t *testing.T, s *session) {
		r := s.ok(t, `import java.time.*;
record Row(String month, Integer n, double d, boolean b, LocalDate day, Duration took, BigInteger big, BigDecimal dec, Object any) {}
List.of(new Row("Jan", 120, 1.5, true, LocalDate.of(2026, 1, 2), Duration.ofMinutes(90), BigInteger.TWO.pow(60), new BigDecimal("0.1"), 1),
    new Row("F\"é\n", null, Double.NaN, false, null, null, BigInteger.ONE, new BigDecimal("0.1000000000000000055"), List.of(1, "x")))`)
		var want map[string]any
		if err := json.Unmarshal([]byte(`{"columns":["month","n","d","b","day","took","big","dec","any"],
			"types":["string","integer","number","boolean","datetime","duration","integer","number","any"],
			"rows":[["Jan",120,1.5,true,"2026-01-02","PT1H30M","1152921504606846976",0.1,1],
				["F\"é\n",null,null,false,null,null,1,"0.1000000000000000055",[1,"x"]]],
			"index":null,"rowCount":2,"truncated":false}`), &want); err != nil {
			t.Fatal(err)
		}
		got := r.table(t)
		// A number is written as the shortest that stands for it.
		if !reflect.DeepEqual(got, want) {
			b, _ := json.Marshal(got)
			t.Errorf("%s", b)
		}
		if b, _ := json.Marshal(got); true {
			var table mime.Table
			if err := json.Unmarshal(b, &table); err != nil {
				t.Errorf("it is no table: %v", err)
			}
		}
		html, _ := r.Shown("execute_result")[0]["text/html"].(string)
		if !strings.Contains(html, "<th>month</th>") || !strings.Contains(html, "<td>Jan</td>") {
			t.Errorf("%s", html)
		}
		got = s.ok(t, `Map<String, Object> row = new LinkedHashMap<>(); row.put("a", 1); row.put("b<", null);
List.of(row, Map.of("a", 2.5, "c", "z"))`).table(t)
		if b, _ := json.Marshal(got); string(b) != `{"columns":["a","b\u003c","c"],"index":null,"rowCount":2,"rows":[[1,null,null],[2.5,null,"z"]],"truncated":false,"types":["number","any","string"]}` {
			t.Errorf("%s", b)
		}
		got = s.ok(t, `record Big(int i) {}
IntStream.range(0, 100_000).mapToObj(Big::new).toList()`).table(t)
		if rows, _ := got["rows"].([]any); len(rows) != 1000 || got["rowCount"] != 100_000.0 || got["truncated"] != true {
			t.Errorf("%d rows, %v, %v", len(rows), got["rowCount"], got["truncated"])
		}
		// What is none, and what would fail or take for ever, costs the table alone.
		for _, code := range []string{
			`List.of()`, `List.of(1, 2)`, `List.of(new Big(1), 2)`, `Arrays.asList(null, null)`, `List.of(Map.of(1, 2))`, `record None() {} List.of(new None())`,
			`record Fails(int i) { public int i() { throw new RuntimeException(); } } List.of(Map.of("a", 1), new Fails(1))`,
		} {
			if got := s.ok(t, code).table(t); got != nil {
				t.Errorf("%s: %v", code, got)
			}
		}
		got = s.ok(t, "record Odd(int i) { public int i() { throw new RuntimeException(); } }\nList.of(new Odd(1))").table(t)
		if rows, _ := json.Marshal(got["rows"]); string(rows) != "[[null]]" {
			t.Errorf("%s", rows)
		}
		got = s.ok(t, `List.of(Map.of("s", "x".repeat(100_000)))`).table(t)
		if b, _ := json.Marshal(got["rows"]); len(b) > 40_000 || got["truncated"] != true {
			t.Errorf("%d bytes, truncated %v", len(b), got["truncated"])
		}
	})
}

func TestTableLimits(t *testing.T) {
	j := javas(t)[0]
	s := start(t, Options{Java: j, Env: append(os.Environ(), "CELLARD_TABLE_ROWS=2", "CELLARD_TABLE_COLUMNS=1", "XDG_CACHE_HOME="+t.TempDir())})
	got := s.ok(t, "record P(int a, int b) {}\nList.of(new P(1, 2), new P(3, 4), new P(5, 6))").table(t)
	if b, _ := json.Marshal(got); string(b) != `{"columns":["a"],"index":null,"rowCount":3,"rows":[[1],[3]],"truncated":true,"types":["integer"]}` {
		t.Errorf("%s", b)
	}
}

func TestDisplay(t *testing.T) {
	onEach(t, func(t *testing.T, s *session) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "out.csv"), []byte("a,b\n1,2\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		r := s.ok(t, `System.out.print("1");
display(Map.of("text/html", "<b>x</b>", "application/json", Map.of("a", List.of(1, 2.5, "z"))));
System.out.print("2");
display("image/png", new byte[]{1, 2, 3});
display("application/json", "{\"b\": [true]}");
display(Path.of("`+dir+`/out.csv"));
display(new File("`+dir+`/out.csv"));
display("text");
display(null);
System.out.print("3");`)
		var shown []string
		for _, m := range r.Messages() {
			b, _ := json.Marshal(m.Content["data"])
			if m.Type == "stream" {
				b = []byte(m.Content["text"].(string))
			}
			shown = append(shown, string(b))
		}
		csv := `{"text/csv":"a,b\n1,2\n","text/plain":"` + dir + `/out.csv"}`
		want := []string{"1", `{"application/json":{"a":[1,2.5,"z"]},"text/html":"\u003cb\u003ex\u003c/b\u003e"}`, "2", `{"image/png":"AQID"}`,
			`{"application/json":{"b":[true]}}`, csv, csv, `{"text/plain":"\"text\""}`, `{"text/plain":"null"}`, "3"}
		if !reflect.DeepEqual(shown, want) {
			t.Errorf("%q", shown)
		}
		// A map is a bundle only if all its keys say so; as a value it is itself.
		if got := s.ok(t, `display(Map.of("a", 1));`).Shown("display_data")[0]["text/plain"]; got != "{a=1}" {
			t.Errorf("%v", got)
		}
		if got := s.ok(t, `Path.of("x.png")`).Shown("execute_result")[0]; len(got) != 1 || got["text/plain"] != "x.png" {
			t.Errorf("%v", got)
		}
		s.fails(t, `display(Path.of("`+dir+`/none.csv"));`, "java.nio.file.NoSuchFileException", "none.csv")
		s.fails(t, `display(Path.of("`+dir+`"));`, "java.io.IOException", "regular")
		s.fails(t, `display(Path.of("/dev/zero"));`, "java.io.IOException", "regular")

		one := s.ok(t, `var h = displayHandle("one");`)
		two := s.ok(t, `h.update("two"); h.update(Path.of("`+dir+`/out.csv"));`)
		if a, b := one.Shown("display_data"), two.Shown("update_display_data"); len(a) != 1 || len(b) != 2 || b[0]["text/plain"] != `"two"` || b[1]["text/csv"] == nil {
			t.Errorf("%v %v", a, b)
		}
		if trace := s.fails(t, `display(Path.of("none"));`, "java.nio.file.NoSuchFileException", "none").trace(); strings.Contains(trace, "cellard") || !strings.Contains(trace, "(In[") {
			t.Errorf("not the cell's own frames: %s", trace)
		}
		clear := s.ok(t, "clearOutput(true); clearOutput();").Messages()
		if len(clear) != 2 || clear[0].Type != "clear_output" || clear[0].Content["wait"] != true || clear[1].Content["wait"] != false {
			t.Errorf("%v", clear)
		}
		// A method of the user's own takes the place of ours.
		s.is(t, "int display(int n) { return n + 1; }\ndisplay(1)", "2")
	})
}

func TestImages(t *testing.T) {
	onEach(t, func(t *testing.T, s *session) {
		for _, r := range []*run{
			s.ok(t, "import java.awt.image.BufferedImage;\nvar image = new BufferedImage(30, 20, BufferedImage.TYPE_INT_RGB);\nvar g = image.createGraphics(); g.fillRect(0, 0, 5, 5); g.dispose();\nimage"),
			s.ok(t, "display(image);"),
		} {
			for _, data := range append(r.Shown("execute_result"), r.Shown("display_data")...) {
				png, _ := data["image/png"].(string)
				if b, err := base64.StdEncoding.DecodeString(png); err != nil || !strings.HasPrefix(string(b), "\x89PNG") {
					t.Errorf("%v", data)
				}
			}
		}
	})
}

// A value is shown no longer than can be read, and no larger than a frame takes.
func TestLargeValues(t *testing.T) {
	onEach(t, func(t *testing.T, s *session) {
		for code, want := range map[string]string{
			`new int[10_000_000]`:                                      "int[10000000] { 0, 0",
			`IntStream.range(0, 5_000_000).boxed().toList()`:           "[0, 1, 2",
			`"a".repeat(3_000_000)`:                                    `"aaa`,
			`new HashSet<>(IntStream.range(0, 5000).boxed().toList())`: "[0, 1",
		} {
			if got := s.ok(t, code).text(); !strings.HasPrefix(got, want) || len(got) > 1<<20+1000 || !strings.Contains(got[len(got)-40:], "…") {
				t.Errorf("%s: %d bytes: %.40s … %s", code, len(got), got, got[max(0, len(got)-40):])
			}
		}
		s.is(t, "List<Object> self = new ArrayList<>(); self.add(self); self", "[(this Collection)]")
		s.fails(t, `display("text/plain", "x".repeat(70_000_000));`, "java.lang.IllegalArgumentException", "write it to a file")
		s.is(t, "1", "1")
	})
}
