package endtoend

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cellard/cellard/protocol/api"
)

// memory is what /proc tells of the agent's: now and at most, in bytes.
func (a *agent) memory() (now, peak int64) {
	a.t.Helper()
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(a.c.Process.Pid), "status"))
	if err != nil {
		a.t.Fatal(err)
	}
	field := func(name string) int64 {
		_, rest, _ := strings.Cut(string(b), name+":")
		n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
		if err != nil {
			a.t.Fatal(err)
		}
		return n << 10
	}
	return field("VmRSS"), field("VmHWM")
}

func mib(n int64) string { return strconv.FormatFloat(float64(n)/(1<<20), 'f', 1, 64) + " MiB" }

// Whatever a cell puts out, the agent's own memory stays within a bound that has
// nothing to do with it.
func TestMemory(t *testing.T) {
	// Of many results the Execution itself is what takes memory: 4 MiB of values and
	// 10,000 refs, and its JSON of 7 MB while it is made and sent.
	const bound, boundOfResults = 64 << 20, 112 << 20
	idle := start(t, config{binary: binaries.release})
	if now, _ := idle.memory(); now > 15<<20 {
		t.Errorf("an idle agent takes %s", mib(now))
	} else {
		t.Logf("idle: %s", mib(now))
	}
	const mb100 = 100_000_000
	for _, c := range []struct {
		name, code string
		bytes      int64 // of the overflow or ref
	}{
		{"100 MB of stdout, by lines", "for i in range(1000000): print('x' * 99)", mb100},
		{"100 MB of stdout, in one print", "print('x' * 99999999)", mb100},
		{"100 MB of stdout, in one print of wide characters", "print('ü' * 50000000, end='')", mb100},
		{"100 MB of stdout, raw", "import os\nb = b'x' * 1000000\nfor i in range(100):\n  m = memoryview(b)\n  while m: m = m[os.write(1, m):]", mb100},
		{"100 MB of stdout, by a child", "!yes | head -c 100000000", mb100},
		{"100 MB of redraws of a bar", "for i in range(1000000): print('\\r' + 'x' * 98, end='')\nprint()", 0},
		{"a PNG of 20 MB", "import os\nfrom IPython.display import Image, display\ndisplay(Image(data=b'\\x89PNG\\r\\n\\x1a\\n' + os.urandom(20000000), format='png'))", 20000008},
		{"HTML of 300 MB", "from IPython.display import HTML, display\ndisplay(HTML('h' * 300000000))", 300_000_000},
		{"a value of 100 MB", "class R:\n  def __repr__(self): return 'r' * 100000000\nR()", mb100},
		{"an error of 100 MB", "raise ValueError('e' * 100000000)", 0},
		{"10,000 displays of nothing", "for i in range(10000): display({}, raw=True)", 0},
		{"10,000 displays of 10 kB", "for i in range(10000): display({'text/plain': str(i) + 'd' * 10000}, raw=True)", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := start(t, config{binary: binaries.release})
			a.cell("python", "from IPython.display import display")
			before, _ := a.memory()
			s := a.stream(object{"code": c.code, "timeoutMs": 0})
			if _, err := io.Copy(io.Discard, s.res.Body); err != nil {
				t.Fatal(err)
			}
			x := a.over(s.res.Header.Get("Cellard-Execution"))
			if x.Status != api.StatusOK && !strings.HasPrefix(c.name, "an error") || x.LostBytes != 0 || x.Incomplete {
				t.Errorf("%s", show(x))
			}
			got := int64(0)
			for _, o := range x.Overflow {
				got += o.Bytes - o.Dropped
			}
			for _, r := range x.Results {
				for m, ref := range r.Refs {
					if c.bytes > 0 && (m != "text/plain" || strings.HasPrefix(c.name, "a value")) {
						got += ref.Bytes
					}
				}
			}
			if c.bytes > 0 && got != c.bytes {
				t.Errorf("%d bytes were kept, wanted %d", got, c.bytes)
			}
			most := int64(bound)
			if strings.Contains(c.name, "displays") {
				most = boundOfResults
			}
			if _, peak := a.memory(); peak > most {
				t.Errorf("the agent took %s, over %s", mib(peak), mib(most))
			} else {
				t.Logf("%s before, at most %s, %d ms", mib(before), mib(peak), x.DurationMs)
			}
		})
	}
}
