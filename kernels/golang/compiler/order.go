package compiler

import "github.com/cellard/cellard/kernels/golang/wire"

// order tells whether an expression means the same in a Program. Go leaves open when an
// operand is read that stands beside a call which may change it. The compiler makes the
// calls first, and then reads and computes most of the others. A Program comes to one
// operand after the other, and reads only a variable late. So what stands before a call
// has to be a variable, a constant or a call itself, whose result nothing is read
// through; what stands after it may be anything.
func order(n *wire.Node) bool {
	later := false // an operand after this one calls something
	for i := len(n.X) - 1; i >= 0; i-- {
		x := n.X[i]
		if later && !settled(x) && (!simple(x) || n.Op != wire.Binary && (n.Op != wire.Call || i == 0)) {
			return false
		}
		if !order(x) {
			return false
		}
		later = later || calls(x) && !shortCut(n)
	}
	return true
}

// shortCut tells an operator that has its right side evaluated after all of its left.
func shortCut(n *wire.Node) bool {
	return n.Op == wire.Binary && (n.Name == "&&" || n.Name == "||")
}

// settled tells an operand that no later call can change.
func settled(n *wire.Node) bool {
	switch n.Op {
	case wire.Constant, wire.Nil, wire.Function, wire.Live, wire.Call:
		return true
	}
	return false
}

// simple tells a variable, or a field that is in one.
func simple(n *wire.Node) bool {
	return n.Op == wire.Variable || n.Op == wire.Field && !n.Pointer && simple(n.X[0])
}

// calls tells whether an expression calls something, or receives.
func calls(n *wire.Node) bool {
	if n.Op == wire.Call || n.Op == wire.Unary && n.Name == "<-" {
		return true
	}
	for _, x := range n.X {
		if calls(x) {
			return true
		}
	}
	return false
}
