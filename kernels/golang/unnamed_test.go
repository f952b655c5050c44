package golang_test

import "testing"

// TestUnnamedTypes has variables of a library's lower-case types.
func TestUnnamedTypes(t *testing.T) {
	proxyWith(t, "example.com/un", map[string]string{"un.go": `package un

type impl struct{ N int }

func New(n int, s string) (*impl, error)          { return &impl{n}, nil }
func (i *impl) Next(n int, more ...int) impl      { return impl{N: i.N + n + len(more)} }
func Var(xs ...int) []impl                        { return []impl{{N: len(xs)}} }
func Pick(n int, err error) impl                  { return impl{N: n} }

type Maker struct{}

func (*Maker) Hidden(n int) impl { return impl{N: n} }
`})
	s := start(t)
	// What is got is told on stderr.
	if r := s.run("%get example.com/un@v1.0.0\nimport \"example.com/un\"\nn := 4\nd, err := un.New(n, \"x\")\nd.N"); r.err != nil || r.text() != "4" {
		t.Fatalf("%q %v", r.text(), r.err)
	}
	s.is("d, err = un.New(n+1, \"y\")\nd.N", "", "5")
	s.is("f := d.Next(n, 1, 2)\nf.N", "", "11")
	s.is("vs := un.Var(n, 2)\nvs[0].N", "", "2")
	s.is("m := &un.Maker{}\nh := m.Hidden(n)\nh.N", "", "4")
	s.is("func get(n int) (int, error) { return n, nil }\np := un.Pick(get(3))\np.N", "", "3")
	s.is("import \"encoding/binary\"\na, b := binary.LittleEndian, n\nc := a\nc.Uint16([]byte{1, 0})", "", "1")
	s.fails("e := d\nq := *e", "CompileError", "has no name")
}
