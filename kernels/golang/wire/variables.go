package wire

// MaxVariables is how many variables are told; of more the first by name.
const MaxVariables = 1000

// Place is where the worker has a variable: which of those that a cell has registered.
type Place struct {
	Name        string
	Cell, Index int
}

// Variables are those that count, by name, and how many there are in all.
type Variables struct {
	List  []Place
	Total int
}

// Told is what is told of a variable's value. Size is -1 where it has none.
type Told struct {
	Type, Preview string
	Size          int
}
