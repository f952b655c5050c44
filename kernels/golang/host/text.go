package host

import (
	"cmp"
	"fmt"
	"reflect"
	"sort"
	"strconv"
	"strings"

	"github.com/cellard/cellard/kernels/golang/live"
)

// The bounds of a value's text.
const (
	maxText     = 1 << 20
	maxElements = 10000
	maxNesting  = 12
)

// text is a value as text: what Println would print, but with the names of fields, and
// with what pointers point to.
func text(v any) string {
	w := &writer{seen: map[uintptr]bool{}}
	switch v := v.(type) {
	case nil:
		return "<nil>"
	case string:
		return clip(v, maxText)
	}
	w.value(reflect.ValueOf(v), 0)
	return unmark(clip(w.b.String(), maxText))
}

type writer struct {
	b    strings.Builder
	max  int              // bytes, about; 0 stands for maxText
	seen map[uintptr]bool // pointers that are being written
}

// full tells that no more is to be written.
func (w *writer) full() bool {
	if w.max > 0 {
		return w.b.Len() > w.max
	}
	return w.b.Len() > maxText
}

// own writes a value that has a text of its own.
func (w *writer) own(v reflect.Value) (done bool) {
	if !v.CanInterface() || v.Kind() == reflect.Pointer && v.IsNil() {
		return false
	}
	x := v.Interface()
	defer func() {
		if r := recover(); r != nil {
			if s, ok := r.(live.Stop); ok {
				panic(s)
			}
			done = false
		}
	}()
	var s string
	switch x := x.(type) {
	case error:
		s = x.Error()
	case fmt.Stringer:
		s = x.String()
	case fmt.Formatter:
		s = fmt.Sprintf("%v", x)
	default:
		return false
	}
	w.b.WriteString(clip(s, maxText))
	return true
}

func (w *writer) value(v reflect.Value, depth int) {
	switch {
	case w.full():
		return
	case !v.IsValid():
		w.b.WriteString("<nil>")
		return
	case depth > maxNesting:
		w.b.WriteString("…")
		return
	case w.own(v):
		return
	}
	switch v.Kind() {
	case reflect.String:
		w.b.WriteString(v.String())
	case reflect.Pointer:
		w.pointer(v, depth)
	case reflect.Interface:
		w.value(v.Elem(), depth)
	case reflect.Struct:
		w.b.WriteByte('{')
		for i := 0; i < v.NumField() && !w.full(); i++ {
			if i > 0 {
				w.b.WriteByte(' ')
			}
			w.b.WriteString(v.Type().Field(i).Name + ":")
			w.value(v.Field(i), depth+1)
		}
		w.b.WriteByte('}')
	case reflect.Slice, reflect.Array:
		w.elements(v, depth)
	case reflect.Map:
		w.mapping(v, depth)
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		if v.Kind() != reflect.UnsafePointer && v.IsNil() {
			w.b.WriteString("<nil>")
			return
		}
		w.b.WriteString(v.Type().String())
	default:
		w.b.WriteString(scalar(v))
	}
}

// scalar is the text of a number or a bool.
func scalar(v reflect.Value) string {
	switch {
	case v.CanInt():
		return strconv.FormatInt(v.Int(), 10)
	case v.CanUint():
		return strconv.FormatUint(v.Uint(), 10)
	case v.CanFloat():
		if v.Kind() == reflect.Float32 {
			return fmt.Sprint(float32(v.Float()))
		}
		return fmt.Sprint(v.Float())
	case v.CanComplex():
		return fmt.Sprint(v.Complex())
	case v.Kind() == reflect.Bool:
		return strconv.FormatBool(v.Bool())
	}
	return v.String()
}

func (w *writer) pointer(v reflect.Value, depth int) {
	switch {
	case v.IsNil():
		w.b.WriteString("<nil>")
	case w.seen[v.Pointer()]:
		w.b.WriteString("&…")
	default:
		w.seen[v.Pointer()] = true
		w.b.WriteByte('&')
		w.value(v.Elem(), depth+1)
		delete(w.seen, v.Pointer())
	}
}

func (w *writer) elements(v reflect.Value, depth int) {
	if v.Kind() == reflect.Slice && v.Len() > 0 {
		// A slice can hold itself.
		if w.seen[v.Pointer()] && v.Type().Elem().Kind() == reflect.Interface {
			w.b.WriteString("[…]")
			return
		}
		if v.Type().Elem().Kind() == reflect.Interface {
			w.seen[v.Pointer()] = true
			defer delete(w.seen, v.Pointer())
		}
	}
	w.b.WriteByte('[')
	for i := 0; i < v.Len() && !w.full(); i++ {
		if i > 0 {
			w.b.WriteByte(' ')
		}
		if i == maxElements {
			fmt.Fprintf(&w.b, "… %d more", v.Len()-i)
			break
		}
		w.value(v.Index(i), depth+1)
	}
	w.b.WriteByte(']')
}

// compareNumbers compares two keys of a map; ok is false where they aren't numbers.
func compareNumbers(a, b reflect.Value) (c int, ok bool) {
	switch {
	case a.CanInt() && b.CanInt():
		return cmp.Compare(a.Int(), b.Int()), true
	case a.CanUint() && b.CanUint():
		return cmp.Compare(a.Uint(), b.Uint()), true
	case a.CanFloat() && b.CanFloat():
		return cmp.Compare(a.Float(), b.Float()), true // one that is no number comes first
	}
	return 0, false
}

// mapping writes a map in the order of its keys' texts; numbers by their size.
func (w *writer) mapping(v reflect.Value, depth int) {
	if v.Len() > 0 && w.seen[v.Pointer()] {
		w.b.WriteString("map[…]")
		return
	}
	if v.Len() > 0 {
		w.seen[v.Pointer()] = true
		defer delete(w.seen, v.Pointer())
	}
	type entry struct {
		key   reflect.Value
		text  string
		value reflect.Value
	}
	var all []entry
	for it := v.MapRange(); it.Next() && len(all) < maxElements; {
		k := &writer{seen: w.seen}
		k.value(it.Key(), depth+1)
		all = append(all, entry{it.Key(), k.b.String(), it.Value()})
	}
	sort.Slice(all, func(i, j int) bool {
		if c, ok := compareNumbers(all[i].key, all[j].key); ok {
			return c < 0
		}
		return all[i].text < all[j].text
	})
	w.b.WriteString("map[")
	for i, e := range all {
		if w.full() {
			break
		}
		if i > 0 {
			w.b.WriteByte(' ')
		}
		w.b.WriteString(e.text + ":")
		w.value(e.value, depth+1)
	}
	if v.Len() > len(all) {
		fmt.Fprintf(&w.b, " … %d more", v.Len()-len(all))
	}
	w.b.WriteByte(']')
}
