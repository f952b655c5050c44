package host

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"runtime/debug"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cellard/cellard/kernels/golang/wire"
)

// The bounds of what is told of a variable: bytes of its text, elements, levels, and how
// many entries of a map are looked at to find the first.
const (
	maxTold        = 120
	toldElements   = 10
	toldLevels     = 3
	entriesInOrder = 1000
)

// looking keeps the functions of timers from starting while variables are looked at.
var looking sync.RWMutex

// unlooked returns when no variables are looked at.
func unlooked() {
	looking.RLock()
	defer looking.RUnlock()
}

// idle is how many goroutines there are between cells; see Idle.
var idle int

// Idle is called before the first cell, when there are no goroutines but the worker's.
func Idle() { idle = runtime.NumGoroutine() }

// Variables tells the values of variables, without a call of anything of a cell's: its
// methods may never return. Where goroutines of a cell's still run, which may write what
// is looked at, no more is read than can't do harm when it is half written.
func Variables(list []wire.Place) []wire.Told {
	looking.Lock()
	defer looking.Unlock()
	// Memory that was unmapped, or a string whose length isn't its own, is a panic here.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	alone := false
	for end := time.Now().Add(20 * time.Millisecond); !alone && time.Now().Before(end); {
		// One more is this one; that of the last cell may be about to end.
		if alone = runtime.NumGoroutine() <= idle+1; !alone {
			time.Sleep(time.Millisecond)
		}
	}
	all := make([]wire.Told, len(list))
	for i, v := range list {
		objectsMu.Lock()
		its := objects[v.Cell]
		objectsMu.Unlock()
		all[i].Size = -1
		if v.Index < len(its) {
			tell(&all[i], reflect.ValueOf(its[v.Index]), alone)
		}
	}
	return all
}

func tell(to *wire.Told, p reflect.Value, alone bool) {
	if p.Kind() != reflect.Pointer {
		return
	}
	v := p.Elem()
	to.Type = clip(strings.ReplaceAll(typeName(v.Type()), "interface {}", "any"), maxTold)
	defer func() { _ = recover() }() // of what is changed meanwhile no text is told
	to.Size = sizeOf(v)
	t := &teller{alone: alone}
	t.value(v, 0)
	to.Preview = unmark(strings.ToValidUTF8(clip(t.b.String(), maxTold), "\uFFFD"))
}

// sizeOf is the number of elements, or of bytes of a string; -1 where there is none.
func sizeOf(v reflect.Value) int {
	switch v.Kind() {
	case reflect.String, reflect.Slice, reflect.Array, reflect.Map, reflect.Chan:
		return v.Len()
	}
	return -1
}

// teller writes a short text of a value.
type teller struct {
	b     strings.Builder
	alone bool // nothing else runs
}

// simpleErrors are pointers to structs whose first field is their text.
var simpleErrors = map[reflect.Type]bool{reflect.TypeOf(errors.New("")): true, reflect.TypeOf(fmt.Errorf("%w", errors.New(""))): true}

func (t *teller) value(v reflect.Value, depth int) {
	switch {
	case t.b.Len() > maxTold:
		return
	case !v.IsValid():
		t.b.WriteString("<nil>")
		return
	case v.Type() == durationType:
		t.b.WriteString(time.Duration(v.Int()).String())
		return
	case v.Type() == timeType && t.alone && v.CanInterface():
		t.b.WriteString(v.Interface().(time.Time).Format(time.RFC3339Nano))
		return
	case simpleErrors[v.Type()] && t.alone && !v.IsNil():
		t.value(v.Elem().Field(0), depth)
		return
	}
	switch v.Kind() {
	case reflect.String:
		s := v.String()
		t.b.WriteString(strconv.Quote(s[:min(len(s), maxTold)]))
	case reflect.Pointer:
		switch {
		case v.IsNil():
			t.b.WriteString("<nil>")
		case !t.alone || depth >= toldLevels:
			t.b.WriteString("&…")
		case !told(v.Type().Elem()):
			t.opaque(v, depth)
		default:
			t.b.WriteByte('&')
			if v.Type().Elem().Kind() != reflect.Struct { // whose fields are a level
				depth++
			}
			t.value(v.Elem(), depth)
		}
	case reflect.Interface:
		if !t.alone {
			t.opaque(v, depth)
			return
		}
		t.value(v.Elem(), depth)
	case reflect.Struct:
		t.fields(v, depth)
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice && !t.alone && hasPointers(v.Type().Elem()) {
			t.opaque(v, depth)
			return
		}
		t.list("[", v.Len(), depth, func(i int) { t.value(v.Index(i), depth+1) })
	case reflect.Map:
		if !t.alone {
			t.opaque(v, depth)
			return
		}
		t.entries(v, depth)
	case reflect.Func, reflect.Chan:
		if v.IsNil() {
			t.b.WriteString("<nil>")
			return
		}
		t.opaque(v, depth)
	case reflect.UnsafePointer:
		t.opaque(v, depth)
	default:
		t.b.WriteString(scalar(v))
	}
}

// opaque names the type of a value whose inside isn't told: at the top it is known.
func (t *teller) opaque(v reflect.Value, depth int) {
	if depth > 0 {
		t.b.WriteString("<" + typeName(v.Type()) + ">")
	}
}

// told tells the types whose structs are told: cells' own. What those of packages hold is
// theirs, and a timer of theirs may change it at any time.
func told(t reflect.Type) bool {
	return t.Kind() != reflect.Struct || t == timeType || t.PkgPath() == "" || strings.HasPrefix(t.PkgPath(), "cell/")
}

func (t *teller) list(open string, n, depth int, item func(i int)) {
	t.b.WriteString(open)
	for i := 0; i < n && t.b.Len() <= maxTold; i++ {
		if i > 0 {
			t.b.WriteByte(' ')
		}
		if i == toldElements || depth >= toldLevels {
			t.b.WriteString("…")
			break
		}
		item(i)
	}
	t.b.WriteString(map[string]string{"[": "]", "map[": "]", "{": "}"}[open])
}

func (t *teller) fields(v reflect.Value, depth int) {
	if !told(v.Type()) {
		t.opaque(v, depth)
		return
	}
	t.list("{", v.NumField(), depth, func(i int) {
		t.b.WriteString(v.Type().Field(i).Name + ":")
		t.value(v.Field(i), depth+1)
	})
}

// entries writes a map's in the order of their keys, where they aren't too many.
func (t *teller) entries(v reflect.Value, depth int) {
	type entry struct{ key, value reflect.Value }
	var all []entry
	for it := v.MapRange(); len(all) < entriesInOrder && it.Next(); {
		all = append(all, entry{it.Key(), it.Value()})
	}
	sort.SliceStable(all, func(i, j int) bool { return less(all[i].key, all[j].key) })
	t.list("map[", v.Len(), depth, func(i int) {
		t.value(all[i].key, depth+1)
		t.b.WriteByte(':')
		t.value(all[i].value, depth+1)
	})
}

// less compares keys by what asks nothing of a cell's: others stay as they come.
func less(a, b reflect.Value) bool {
	if a.Kind() == reflect.String && b.Kind() == reflect.String {
		return a.String() < b.String()
	}
	c, ok := compareNumbers(a, b)
	return ok && c < 0
}

// hasPointers tells the types that hold memory elsewhere: read past a slice's end, what
// isn't a pointer would be taken for one.
func hasPointers(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return t.Len() > 0 && hasPointers(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if hasPointers(t.Field(i).Type) {
				return true
			}
		}
		return false
	case reflect.String, reflect.Slice, reflect.Map, reflect.Pointer, reflect.Interface, reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return true
	}
	return false
}
