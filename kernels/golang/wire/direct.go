package wire

// Program is a cell that needs no compiler: the worker evaluates it on values that are
// there.
type Program struct {
	// Cell is how tracebacks name it (In[3]).
	Cell string
	Body []Step
}

// Step is an expression that is evaluated for its effect or its value, or an assignment.
type Step struct {
	Line  int
	Value *Node
	// To, of an assignment, is what is set: a variable, or what is in one; to Value, or by
	// the operator By to what that gives of both.
	To *Node  `json:",omitempty"`
	By string `json:",omitempty"`
	// Show is how the value is shown: "" (not at all), Show, ShowAll, ShowError; of
	// package live.
	Show string `json:",omitempty"`
}

// Node is an expression.
type Node struct {
	Op Op
	// Name is a method's, a function's of package live, an operator, a basic type. The type
	// of a constant without one is that of its place.
	Name string `json:",omitempty"`
	// Text is a constant's value: of a string its bytes, else digits, true or false.
	Text []byte `json:",omitempty"`
	// Cell and Index are of an Object: which of those that the cell has registered.
	Cell  int `json:",omitempty"`
	Index int `json:",omitempty"`
	// Path is the way to a field through the fields that embed it.
	Path []int `json:",omitempty"`
	// X are the operands; of a call first what is called.
	X []*Node `json:",omitempty"`
	// Spread: a call's last argument is its variadic parameter. Pointer: a method has a
	// pointer as its receiver, a field is reached through one.
	Spread  bool `json:",omitempty"`
	Pointer bool `json:",omitempty"`
}

// Op is what a Node is.
type Op string

// What a Node can be.
const (
	Constant Op = "const"
	Nil      Op = "nil"
	Variable Op = "var"
	Function Op = "func"
	Live     Op = "live" // a function of package live
	Call     Op = "call"
	Field    Op = "field"
	Method   Op = "method"
	Index    Op = "index"
	Deref    Op = "deref"
	Address  Op = "addr"
	Unary    Op = "unary"
	Binary   Op = "binary"
	Convert  Op = "conv"
	Length   Op = "len"
	Capacity Op = "cap"
)
