package compiler

import "github.com/cellard/cellard/kernels/golang/wire"

// reads is what an expression does that an order matters for. Go leaves open when a
// variable is read that stands beside a call which may set it. The compiler reads it
// after the calls, and so does a Program where the variable, a field of it or what it
// points to is itself an operand. A value that is computed from it is the compiler's.
type reads struct {
	calls bool // something is called that may set a variable
	read  bool // a variable is read, outside of a call's arguments
	plain bool // and is itself the operand
	open  bool // a computed value stands beside a call
}

// order tells whether an expression means the same in a Program.
func order(n *wire.Node) bool { return !orderOf(n).open }

func orderOf(n *wire.Node) reads {
	var all []reads
	out := reads{plain: true}
	for _, x := range n.X {
		o := orderOf(x)
		all = append(all, o)
		out = reads{out.calls || o.calls, out.read || o.read, out.plain && o.plain, out.open || o.open}
	}
	for i, a := range all {
		for j, b := range all {
			if i == j || !a.calls || !b.read || n.Op == wire.Binary && (n.Name == "&&" || n.Name == "||") {
				continue
			}
			if n.Op != wire.Binary && !(n.Op == wire.Call && j > 0) || !b.plain {
				out.open = true
			}
		}
	}
	switch n.Op {
	case wire.Variable:
		out.read = true
	case wire.Field, wire.Deref:
	case wire.Call:
		out.calls = out.calls || n.X[0].Op != wire.Live
		out.read, out.plain = false, true
	case wire.Unary:
		out.calls = out.calls || n.Name == "<-"
		out.plain = false
	default: // computed when it is come to
		out.plain = false
	}
	return out
}
