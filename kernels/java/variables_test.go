package java

import (
	"strings"
	"testing"

	"github.com/cellard/cellard/protocol/api"
	"github.com/cellard/cellard/protocol/jupyter/kernel/kerneltest"
)

func (s *session) variables(t *testing.T) (list []api.Variable, total int, lines string) {
	t.Helper()
	return kerneltest.Variables(t, s, patience)
}

// What cells have declared is told as Java writes it, and the newest of a name.
func TestVariables(t *testing.T) {
	onEach(t, func(t *testing.T, s *session) {
		tell := func(want string) {
			t.Helper()
			if list, total, got := s.variables(t); got != want || total != len(list) {
				t.Errorf("of %d, got\n%s\nwant\n%s", total, got, want)
			}
		}
		tell("")
		s.ok(t, `int n = 42; double d = 1.5; String text = "a\n\"b\""; char c = 'x'; boolean yes = true; Object none = null; long[] longs = {1, 2};
int[][] grid = new int[2][3]; String[] words = {"a", null}; var list = new ArrayList<String>(List.of("a", "b")); List<Integer> fixed = List.of(1, 2, 3);
Map<String, Integer> map = new TreeMap<>(Map.of("k", 1, "a", 2)); Set<Integer> set = Set.of(7); record Point(int x, String y) {}
var point = new Point(1, "two"); enum Colour { RED, GREEN } Colour colour = Colour.RED; var points = List.of(point);
import java.time.*; var day = LocalDate.of(2024, 2, 29); var some = Optional.of(3); BigInteger big = BigInteger.TWO.pow(70); BigDecimal dec = new BigDecimal("0.10");
var nested = List.of(List.of(List.of(1, 2), List.of()), Map.of("k", new int[]{1})); int[] many = new int[1_000_000]; String long1 = "x".repeat(1_000_000);
Function<Integer, Integer> f = x -> x + 1; class Box { int v = 1; } var box = new Box(); Object[] mixed = {1, "s", box, f.getClass().isHidden()}; int unset; var builder = new StringBuilder("ab")`)
		tell(`big BigInteger null 1180591620717411303424
box Box null 
builder StringBuilder 2 "ab"
c char null 'x'
colour Colour null RED
d double null 1.5
day LocalDate null 2024-02-29
dec BigDecimal null 0.10
f Function<Integer, Integer> null 
fixed List<Integer> 3 [1, 2, 3]
grid int[][] 2 {{0, 0, 0}, {0, 0, 0}}
list ArrayList<String> 2 ["a", "b"]
long1 String 1000000 "` + strings.Repeat("x", 118) + `…
longs long[] 2 {1, 2}
many int[] 1000000 {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, …}
map Map<String, Integer> 2 {"a"=2, "k"=1}
mixed Object[] 4 {1, "s", <Box>, true}
n int null 42
nested List<Object> 2 [[[…], []], {"k"={…}}]
none Object null null
point Point null Point[x=1, y="two"]
points List<Point> 1 [Point[x=1, y="two"]]
set Set<Integer> 1 [7]
some Optional<Integer> null Optional[3]
text String 5 "a\n\"b\""
unset int null 0
words String[] 2 {"a", null}
yes boolean null true
`)
		s.ok(t, `String n = "new"; n.length(); 1 + 1`)
		_, total, got := s.variables(t)
		if !strings.Contains(got, "n String 3 \"new\"\n") || strings.Contains(got, "n int ") || total != 28 {
			t.Errorf("of %d:\n%s", total, got)
		}
		s.fails(t, `int half = 1 / 0;`, "java.lang.ArithmeticException", "by zero")
		if _, _, got := s.variables(t); strings.Contains(got, "half") {
			t.Errorf("one that came to nothing:\n%s", got)
		}
	})
}

// No code of the cells' runs, and nothing keeps the list from its end.
func TestVariablesThatAreHostile(t *testing.T) {
	onEach(t, func(t *testing.T, s *session) {
		s.ok(t, `int ran = 0;
class Loops { public String toString() { ran++; while (true); } public int hashCode() { return 1; } public boolean equals(Object o) { ran++; while (true); } }
class Exits { public String toString() { ran++; System.exit(1); return ""; } }
class Endless extends AbstractList<Integer> { public int size() { ran++; while (true); } public Integer get(int i) { ran++; throw new Error(); } }
class Sub extends ArrayList<Integer> { public int size() { ran++; while (true); } public Iterator<Integer> iterator() { ran++; return null; } }
class Big extends BigInteger { Big() { super("1"); } public String toString() { ran++; return null; } public int bitLength() { ran++; return 1; } }
record Evil(Object x) { public Object x() { ran++; while (true); } public String toString() { ran++; while (true); } }
enum Rude { A { public String toString() { ran++; while (true); } } }
class Text implements CharSequence { public int length() { ran++; while (true); } public char charAt(int i) { ran++; return 'x'; } public CharSequence subSequence(int a, int b) { ran++; return ""; } }
class Count extends Number { public int intValue() { ran++; return 1; } public long longValue() { ran++; return 1; } public float floatValue() { ran++; return 1; } public double doubleValue() { ran++; return 1; } public String toString() { ran++; while (true); } }
class Entry implements Map.Entry<String, String> { public String getKey() { ran++; while (true); } public String getValue() { ran++; return ""; } public String setValue(String v) { return v; } }
var loops = new Loops(); var exits = new Exits(); var endless = new Endless(); var sub = new Sub(); BigInteger big = new Big(); var evil = new Evil(loops);
var rude = Rude.A; var text = new Text(); Number count = new Count(); var in = List.of(loops, exits, endless, sub, big, rude, text); var keys = new HashMap<Object, Object>(); keys.put(loops, exits);
var entries = new Map.Entry[]{new Entry()}; var view = Collections.unmodifiableList(endless); var sync = Collections.synchronizedList(sub); var wrapped = Optional.of(exits);
List<Object> itself = new ArrayList<>(); itself.add(itself); Object[] ring = new Object[1]; ring[0] = ring; Map<Object, Object> own = new IdentityHashMap<>(); own.put(own, own);
var vector = new Vector<Integer>(List.of(1)); var huge = BigInteger.ONE.shiftLeft(100_000_000); var tiny = new BigDecimal(BigInteger.ONE, Integer.MIN_VALUE); int[] space = new int[20_000_000];
Object deep = List.of(); for (int i = 0; i < 100_000; i++) deep = List.of(deep);
var moving = new ArrayList<Integer>(); var map = new HashMap<Integer, Integer>(); var tree = new TreeMap<Integer, Integer>();
var lock = new Object(); var locked = new Vector<Integer>();
Thread holder = new Thread(() -> { synchronized (locked) { try { Thread.sleep(1000000); } catch (InterruptedException e) {} } }); holder.setDaemon(true); holder.start();
Thread mover = new Thread(() -> { for (int i = 0; ; i++) { moving.add(i); if (i % 1000 == 0) moving.clear(); map.put(i % 100, i); map.remove((i + 50) % 100); try { tree.put(i % 50, i); tree.remove((i + 25) % 50); } catch (RuntimeException e) {} } }); mover.setDaemon(true); mover.start();`)
		for range 20 {
			s.variables(t)
		}
		list, _, got := s.variables(t)
		for _, want := range []string{"big BigInteger null \n", "count Number null \n", "deep Object 1 [[[…]]]\n", "endless Endless null \n", "Map.Entry[] 1 {<Entry>}\n",
			"evil Evil null Evil[x=<Loops>]\n", "exits Exits null \n", "huge BigInteger null \n", "in List<Object> 7 [<Loops>, <Exits>, <Endless>, <Sub>, <Big>, A, <Text>]\n",
			"itself List<Object> 1 [[[…]]]\n", "keys HashMap<Object, Object> 1 {<Loops>=<Exits>}\n", "own Map<Object, Object> 1 {{{…}={…}}={{…}={…}}}\n", "ran int null 0\n", "ring Object[] 1 {{{…}}}\n",
			"rude Rude null A\n", "sub Sub null \n", "tiny BigDecimal null 1E+2147483648\n", "vector Vector<Integer> null \n", "wrapped Optional<Exits> null Optional[<Exits>]\n"} {
			if !strings.Contains(got, want) {
				t.Errorf("lacks %q", want)
			}
		}
		if t.Failed() {
			t.Logf("of %d:\n%s", len(list), got)
		}
		s.is(t, "ran", "0")
	})
}
