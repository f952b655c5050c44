package live

import (
	"io"
	"sync/atomic"
	"unsafe"
)

// Host does what cells ask for.
type Host interface {
	// Check panics with Stop where the calling goroutine's cell was stopped.
	Check()
	// Began counts a goroutine that a cell starts; what it gives goes to Ended, with
	// what was recovered.
	Began() any
	Ended(token, recovered any)
	// Room panics where n values of a size, in bytes, are more than the memory that there is.
	Room(n int, size int)
	Exit(code int)
	Fatal(message string)
	Caller(skip int) (pc uintptr, file string, line int, ok bool)
	Callers(skip int, pcs []uintptr) int

	Show(values []any, kind Kind)
	Display(values []any)

	Fprint(w io.Writer, a []any) (int, error)
	Fprintf(w io.Writer, format string, a []any) (int, error)
	Fprintln(w io.Writer, a []any) (int, error)
	Sprint(a []any) string
	Sprintf(format string, a []any) string
	Sprintln(a []any) string
	Scan(a []any) (int, error)
	Scanf(format string, a []any) (int, error)
	Scanln(a []any) (int, error)
}

// Kind says which values a call's results are.
type Kind int

const (
	Value Kind = iota // one expression's
	Tuple             // a call's, of which a last error that is nil is no value
	Error             // a call's one error
)

// It is what the worker set.
var It Host

// Stopping counts the cells that were stopped and still have goroutines.
var Stopping atomic.Int64

// Run, Done and Objects are what the plugin that was loaded last registered.
var (
	Run     func()
	Done    *int
	Objects []any
)

// Register is called by a plugin's init: run runs the cell, done counts the declarations
// that have run, objects are pointers to the cell's variables, and its functions.
func Register(run func(), done *int, objects ...any) { Run, Done, Objects = run, done, objects }

// Stop is the panic that ends a stopped cell's goroutines.
type Stop struct{}

func (Stop) Error() string { return "the cell was stopped" }

// maxStack is how deep, in bytes, a goroutine's calls may go: beyond the runtime's own
// bound the process dies, and all values with it.
const maxStack = 120 << 20

// Overflow is the panic of a recursion that went too deep.
type Overflow struct{}

func (Overflow) Error() string { return "stack overflow: calls nested deeper than 120 MB" }

// stackHigh is where the calling goroutine's stack begins.
func stackHigh() uintptr

// Check ends the goroutine if its cell was stopped.
func Check() {
	if Stopping.Load() != 0 {
		It.Check()
	}
}

// Enter is Check for the begin of a function; it also ends endless recursion.
func Enter() {
	if Stopping.Load() != 0 {
		It.Check()
	}
	var here byte
	if stackHigh()-uintptr(unsafe.Pointer(&here)) > maxStack {
		overflow()
	}
}

//go:noinline
func overflow() { panic(Overflow{}) }

// fewBytes is what is made without a look at how much memory there is.
const fewBytes = 64 << 20

// Room is n, the count of values of a size that are to be made.
func Room(n, size int) int {
	if n > fewBytes/size {
		It.Room(n, size)
	}
	return n
}

// Recovered stands around recover() in cells: a stop is not the user's to recover from.
func Recovered(r any) any {
	if s, ok := r.(Stop); ok {
		panic(s)
	}
	return r
}

// Began and Guard are for the goroutines that a cell starts: each defers
// Guard(Began()).
func Began() any { return It.Began() }

// Guard catches the goroutine's panic.
func Guard(token any) {
	r := recover()
	It.Ended(token, r)
}

// Show, ShowAll and ShowError show the value of a cell's last expression; Drop takes one
// that isn't to be shown.
func Show(v any)          { It.Show([]any{v}, Value) }
func ShowAll(v ...any)    { It.Show(v, Tuple) }
func ShowError(err error) { It.Show([]any{err}, Error) }
func Drop(...any)         {}

// Display is the function display of cells.
func Display(values ...any) { It.Display(values) }

// The twins of functions of the standard library know the cell that calls them.

func Exit(code int) { It.Exit(code) }

func Caller(skip int) (pc uintptr, file string, line int, ok bool) { return It.Caller(skip) }
func Callers(skip int, pcs []uintptr) int                          { return It.Callers(skip, pcs) }

func Fatal(a ...any)                 { It.Fatal(It.Sprint(a)) }
func Fatalf(format string, a ...any) { It.Fatal(It.Sprintf(format, a)) }
func Fatalln(a ...any)               { It.Fatal(It.Sprintln(a)) }

func Print(a ...any) (int, error)                 { return It.Fprint(nil, a) }
func Printf(format string, a ...any) (int, error) { return It.Fprintf(nil, format, a) }
func Println(a ...any) (int, error)               { return It.Fprintln(nil, a) }
func Fprint(w io.Writer, a ...any) (int, error)   { return It.Fprint(w, a) }
func Fprintln(w io.Writer, a ...any) (int, error) { return It.Fprintln(w, a) }
func Sprint(a ...any) string                      { return It.Sprint(a) }
func Sprintf(format string, a ...any) string      { return It.Sprintf(format, a) }
func Sprintln(a ...any) string                    { return It.Sprintln(a) }
func Scan(a ...any) (int, error)                  { return It.Scan(a) }
func Scanf(format string, a ...any) (int, error)  { return It.Scanf(format, a) }
func Scanln(a ...any) (int, error)                { return It.Scanln(a) }

// Fprintf is fmt.Fprintf's twin.
func Fprintf(w io.Writer, format string, a ...any) (int, error) { return It.Fprintf(w, format, a) }
