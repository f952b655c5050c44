package compiler

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"strconv"
	"strings"

	"github.com/cellard/cellard/kernels/golang/wire"
)

// maxNodes bounds a cell that is evaluated without the compiler.
const maxNodes = 500

// direct makes a Program of a cell that only looks at values that are there, sets
// variables and calls what is there: no package has to be compiled, linked and loaded for it. nil for any
// other cell, and for all whose meaning isn't certain to be the compiler's.
func (c *checked) direct(cells map[*types.Package]*made) *wire.Program {
	if c.file || len(c.tops) > 0 || len(c.body) == 0 || len(c.dots) > 0 {
		return nil
	}
	for _, d := range c.decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.IMPORT {
			return nil
		}
		for _, spec := range g.Specs {
			if i := spec.(*ast.ImportSpec); i.Name != nil && i.Name.Name == "_" {
				return nil
			}
		}
	}
	e := &emitter{checked: c, cells: cells} // for the names that it gives
	d := &director{e: e}
	p := &wire.Program{Cell: c.cell.name}
	for i, s := range c.body {
		from, to, ok := e.span(s)
		if !ok || strings.Contains(c.text[from:to], "\n") {
			return nil // what fails is told with its line
		}
		step := wire.Step{Line: c.place(from).line}
		switch s := s.(type) {
		case *ast.ExprStmt:
			if t := c.info.Types[s.X]; !t.IsVoid() && !t.IsValue() {
				return nil
			}
			step.Value = d.expr(s.X)
			if i == len(c.body)-1 {
				step.Show = c.shown(s)
			}
			if v := step.Value; v != nil && v.Op == wire.Constant && v.Name == "" {
				return nil // of a type that only the compiler can give it
			}
		case *ast.AssignStmt:
			if len(s.Lhs) != 1 || len(s.Rhs) != 1 {
				return nil
			}
			step.By = strings.TrimSuffix(s.Tok.String(), "=")
			step.To, step.Value = d.place(s.Lhs[0], s.Rhs[0]), d.expr(s.Rhs[0])
			if step.To == nil {
				return nil
			}
		case *ast.IncDecStmt:
			step.By = s.Tok.String()[:1]
			step.To, step.Value = d.place(s.X, nil), &wire.Node{Op: wire.Constant, Text: []byte("1")}
			if step.To == nil {
				return nil
			}
		}
		if step.Value == nil || d.nodes > maxNodes || !order(step.Value) {
			return nil
		}
		p.Body = append(p.Body, step)
	}
	return p
}

// director makes nodes of expressions; nil for one that it can't.
type director struct {
	e     *emitter
	nodes int
}

func (d *director) expr(x ast.Expr) *wire.Node {
	if d.nodes++; d.nodes > maxNodes {
		return nil
	}
	x = ast.Unparen(x)
	t := d.e.info.Types[x]
	switch {
	case t.Value != nil:
		return constantNode(t)
	case t.IsNil():
		return &wire.Node{Op: wire.Nil}
	}
	switch x := x.(type) {
	case *ast.Ident:
		return d.object(x)
	case *ast.SelectorExpr:
		n := d.selector(x)
		if n != nil && n.Op == wire.Method {
			return nil // its value has a copy of the receiver
		}
		return n
	case *ast.CallExpr:
		return d.call(x)
	case *ast.StarExpr:
		return node(wire.Deref, "", d.expr(x.X))
	case *ast.IndexExpr:
		if !indexable(d.e.info.TypeOf(x.X)) {
			return nil
		}
		return node(wire.Index, "", d.expr(x.X), d.expr(x.Index))
	case *ast.UnaryExpr:
		switch {
		case x.Op == token.AND:
			if _, literal := ast.Unparen(x.X).(*ast.CompositeLit); literal {
				return nil
			}
			return node(wire.Address, "", d.expr(x.X))
		case x.Op == token.ARROW || isBasic(t.Type):
			return node(wire.Unary, x.Op.String(), d.expr(x.X))
		}
	case *ast.BinaryExpr:
		a, b := d.e.info.TypeOf(x.X), d.e.info.TypeOf(x.Y)
		if types.IsInterface(a) != types.IsInterface(b) && waiting(x) {
			return nil // one is converted, and so is no variable that is read late
		}
		if (x.Op == token.SHL || x.Op == token.SHR) && d.e.info.Types[x.Y].Value == nil && isUntypedNumber(b) {
			return nil // a shift of a constant that counts a shift: the compiler's is a uint
		}
		return node(wire.Binary, x.Op.String(), d.expr(x.X), d.expr(x.Y))
	}
	return nil
}

// place is what an assignment sets. In what order the operands of an index or a pointer
// and a call on the right are evaluated is the compiler's to say.
func (d *director) place(left, right ast.Expr) *wire.Node {
	n := d.expr(left)
	if n == nil || calls(n) || right != nil && !simple(n) && waiting(right) {
		return nil
	}
	switch n.Op {
	case wire.Variable, wire.Field, wire.Index, wire.Deref:
		return n
	}
	return nil
}

// waiting is calls for what is no Node yet; a conversion counts as a call.
func waiting(x ast.Expr) bool {
	found := false
	ast.Inspect(x, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			found = true
		case *ast.UnaryExpr:
			found = found || n.Op == token.ARROW
		}
		return !found
	})
	return found
}

// node is a Node of operands that are all there.
func node(op wire.Op, name string, operands ...*wire.Node) *wire.Node {
	for _, o := range operands {
		if o == nil {
			return nil
		}
	}
	return &wire.Node{Op: op, Name: name, X: operands}
}

// constantNode is a constant; one of a type with a name takes its place's type.
func constantNode(t types.TypeAndValue) *wire.Node {
	b, ok := t.Type.Underlying().(*types.Basic)
	if !ok {
		return nil
	}
	n := &wire.Node{Op: wire.Constant}
	if b, ok := types.Unalias(t.Type).(*types.Basic); ok {
		n.Name = types.Default(b).(*types.Basic).Name()
		if b.Kind() == types.UntypedRune {
			n.Name = "int32"
		}
	}
	switch info := b.Info(); {
	case info&types.IsBoolean != 0:
		n.Text = []byte(strconv.FormatBool(constant.BoolVal(t.Value)))
	case info&types.IsString != 0:
		n.Text = []byte(constant.StringVal(t.Value))
	case info&types.IsInteger != 0:
		v := constant.ToInt(t.Value)
		if v.Kind() != constant.Int {
			return nil
		}
		n.Text = []byte(v.ExactString())
	case info&types.IsFloat != 0:
		v := constant.ToFloat(t.Value)
		if b.Kind() == types.Float32 {
			f, _ := constant.Float32Val(v)
			n.Text = strconv.AppendFloat(nil, float64(f), 'g', -1, 32)
		} else {
			f, _ := constant.Float64Val(v)
			n.Text = strconv.AppendFloat(nil, f, 'g', -1, 64)
		}
	default:
		return nil
	}
	return n
}

// object is a variable or function of an earlier cell's.
func (d *director) object(id *ast.Ident) *wire.Node {
	o := d.e.info.Uses[id]
	if original := d.e.originals[o]; original != nil {
		o = original
	}
	if o == nil || o.Pkg() == nil {
		return nil
	}
	if o == d.e.display {
		return &wire.Node{Op: wire.Live, Name: "Display"}
	}
	m := d.e.cells[o.Pkg()]
	if m == nil || o.Parent() != o.Pkg().Scope() {
		return nil
	}
	for i, name := range m.objects {
		if name != o.Name() {
			continue
		}
		op := wire.Variable
		if _, ok := o.(*types.Func); ok {
			op = wire.Function
		}
		return &wire.Node{Op: op, Cell: m.number, Index: i}
	}
	return nil
}

// selector is a function of a package that package live has a twin of, a field, or a
// method that is called.
func (d *director) selector(x *ast.SelectorExpr) *wire.Node {
	s := d.e.info.Selections[x]
	if s == nil {
		id, ok := x.X.(*ast.Ident)
		if !ok {
			return nil
		}
		p, ok := d.e.info.Uses[id].(*types.PkgName)
		if !ok {
			return nil
		}
		if name := replaced[p.Imported().Path()+"."+x.Sel.Name]; evaluated[name] {
			return &wire.Node{Op: wire.Live, Name: name}
		}
		return nil
	}
	of := d.expr(x.X)
	if of == nil || s.Kind() == types.MethodExpr {
		return nil
	}
	name, ok := d.e.memberName(s.Obj(), x.Sel.Name)
	if !ok {
		return nil
	}
	if s.Kind() == types.FieldVal {
		return &wire.Node{Op: wire.Field, Path: s.Index(), Pointer: s.Indirect(), X: []*wire.Node{of}}
	}
	n := &wire.Node{Op: wire.Method, Name: name, X: []*wire.Node{of}}
	if path := s.Index()[:len(s.Index())-1]; len(path) > 0 {
		n.X = []*wire.Node{{Op: wire.Field, Path: path, Pointer: true, X: []*wire.Node{of}}}
	}
	sig, ok := s.Obj().Type().(*types.Signature)
	if !ok || sig.Recv() == nil {
		return nil
	}
	_, n.Pointer = types.Unalias(sig.Recv().Type()).(*types.Pointer)
	return n
}

// evaluated are the functions of package live that a Program may name.
var evaluated = map[string]bool{"Print": true, "Printf": true, "Println": true, "Sprint": true, "Sprintf": true, "Sprintln": true}

func (d *director) call(x *ast.CallExpr) *wire.Node {
	t := d.e.info.Types[x.Fun]
	switch {
	case t.IsType():
		return d.conversion(x, t.Type)
	case t.IsBuiltin():
		id, ok := ast.Unparen(x.Fun).(*ast.Ident)
		if !ok || len(x.Args) != 1 {
			return nil
		}
		if t := d.e.info.TypeOf(x.Args[0]); t == nil || ofArray(t) {
			return nil
		}
		switch id.Name {
		case "len":
			return node(wire.Length, "", d.expr(x.Args[0]))
		case "cap":
			return node(wire.Capacity, "", d.expr(x.Args[0]))
		}
		return nil
	case t.Type == nil:
		return nil
	}
	var f *wire.Node
	if s, ok := ast.Unparen(x.Fun).(*ast.SelectorExpr); ok {
		f = d.selector(s)
	} else {
		f = d.expr(x.Fun)
	}
	if f == nil {
		return nil
	}
	n := &wire.Node{Op: wire.Call, X: []*wire.Node{f}, Spread: x.Ellipsis.IsValid()}
	for _, a := range x.Args {
		if isTuple(d.e.info.TypeOf(a)) {
			return nil
		}
		v := d.expr(a)
		if v == nil {
			return nil
		}
		n.X = append(n.X, v)
	}
	return n
}

// conversion is one between basic types that means the same by reflection.
func (d *director) conversion(x *ast.CallExpr, to types.Type) *wire.Node {
	b, ok := types.Unalias(to).(*types.Basic)
	from := d.e.info.TypeOf(x.Args[0])
	if !ok || from == nil {
		return nil
	}
	f, ok := from.Underlying().(*types.Basic)
	if !ok {
		return nil
	}
	switch a, z := f.Info(), b.Info(); {
	case a&types.IsInteger != 0 && z&types.IsInteger != 0:
	case a&types.IsInteger != 0 && b.Kind() == types.Float64:
	case a&types.IsFloat != 0 && (z&types.IsFloat != 0 || b.Kind() == types.Int || b.Kind() == types.Int64):
	case a&types.IsString != 0 && z&types.IsString != 0, a&types.IsBoolean != 0 && z&types.IsBoolean != 0:
	default:
		return nil
	}
	return node(wire.Convert, b.Name(), d.expr(x.Args[0]))
}

// indexable tells what is indexed from what is instantiated.
func indexable(t types.Type) bool {
	if t == nil {
		return false
	}
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	switch t := t.Underlying().(type) {
	case *types.Slice, *types.Array, *types.Map:
		return true
	case *types.Basic:
		return t.Info()&types.IsString != 0
	}
	return false
}

// ofArray tells an array or a pointer to one, whose length is had without a look at it.
func ofArray(t types.Type) bool {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	_, ok := t.Underlying().(*types.Array)
	return ok
}

func isUntypedNumber(t types.Type) bool {
	b, ok := t.(*types.Basic)
	return ok && b.Info()&types.IsUntyped != 0 && b.Info()&types.IsNumeric != 0
}

func isBasic(t types.Type) bool {
	_, ok := t.Underlying().(*types.Basic)
	return ok
}
