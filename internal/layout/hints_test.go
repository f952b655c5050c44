package layout

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// refusing are the packages whose errors a host is shown.
var refusing = []string{"server", "supervisor", "kernels", "store", "execution"}

// Every refusal says what to do next: each api.Errorf is given a hint, at once or by way of
// the variable that it is put into.
func TestRefusalsHaveHints(t *testing.T) {
	n := 0
	for _, dir := range refusing {
		files, err := filepath.Glob(filepath.Join("..", "..", dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(dir, err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			src, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			all, bare := refusals(t, name, src)
			n += all
			for _, at := range bare {
				t.Errorf("%s: a refusal without a hint: add .WithHint that says what to do next", at)
			}
		}
	}
	if n < 20 {
		t.Errorf("only %d refusals were found", n)
	}
}

// refusals counts a file's, and tells where those are that have no hint.
func refusals(t *testing.T, name string, src []byte) (all int, bare []string) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range file.Decls {
		hinted := map[ast.Expr]bool{}    // what WithHint is called on
		named := map[string]bool{}       // the variables of those
		put := map[ast.Expr]*ast.Ident{} // what each variable is given
		var found []*ast.CallExpr
		ast.Inspect(d, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for i, e := range n.Rhs {
					if id, ok := n.Lhs[i].(*ast.Ident); ok && len(n.Lhs) == len(n.Rhs) {
						put[e] = id
					}
				}
			case *ast.CallExpr:
				f, ok := n.Fun.(*ast.SelectorExpr)
				if !ok {
					break
				}
				if id, ok := f.X.(*ast.Ident); ok && id.Name == "api" && f.Sel.Name == "Errorf" {
					found = append(found, n)
				} else if f.Sel.Name == "WithHint" {
					hinted[f.X] = true
					if ok {
						named[id.Name] = true
					}
				}
			}
			return true
		})
		all += len(found)
		for _, c := range found {
			if id := put[c]; !hinted[c] && (id == nil || !named[id.Name]) {
				bare = append(bare, fset.Position(c.Pos()).String())
			}
		}
	}
	return all, bare
}

// The rule itself is tried.
func TestHintRuleFindsFaults(t *testing.T) {
	const src = `package p
func a() error { return api.Errorf(c, "no").WithHint("do") }
func b() error { e := api.Errorf(c, "no"); return e.WithHint("do") }
func d() error { return api.Errorf(c, "no") }
func e() error { e := api.Errorf(c, "no"); return e }
`
	all, bare := refusals(t, "p.go", []byte(src))
	if all != 4 || len(bare) != 2 || !strings.HasPrefix(bare[0], "p.go:4") || !strings.HasPrefix(bare[1], "p.go:5") {
		t.Errorf("%d, %q", all, bare)
	}
}
