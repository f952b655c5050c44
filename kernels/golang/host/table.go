package host

import (
	"encoding/json"
	"fmt"
	"html"
	"math"
	"os"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"time"
)

// table is a slice of structs as a front end can lay it out.
type table struct {
	Columns   []string `json:"columns"`
	Types     []string `json:"types"`
	Rows      [][]any  `json:"rows"`
	Index     any      `json:"index"`
	RowCount  int      `json:"rowCount"`
	Truncated bool     `json:"truncated"`
}

// maxCell bounds the text of one field.
const maxCell = 10000

func limit(name string, standard int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n > 0 {
		return n
	}
	return standard
}

// tableOf is the table of a slice or array of structs, or of pointers to them; nil for
// all else. A struct that has a text of its own (a time) is no row.
func tableOf(v any) *table {
	r := reflect.ValueOf(v)
	if r.Kind() != reflect.Slice && r.Kind() != reflect.Array || r.Len() == 0 {
		return nil
	}
	row := r.Type().Elem()
	if row.Kind() == reflect.Pointer {
		row = row.Elem()
	}
	if row.Kind() != reflect.Struct || row.NumField() == 0 || hasText(row) {
		return nil
	}
	fields := columnsOf(row)
	rows, columns := limit("CELLARD_TABLE_ROWS", 1000), limit("CELLARD_TABLE_COLUMNS", 100)
	t := &table{RowCount: r.Len(), Rows: [][]any{}, Truncated: r.Len() > rows || len(fields) > columns}
	fields = fields[:min(len(fields), columns)]
	for _, f := range fields {
		t.Columns = append(t.Columns, unmark(f.Name))
		t.Types = append(t.Types, kindOf(f.Type))
	}
	for i := 0; i < min(r.Len(), rows); i++ {
		line := make([]any, len(fields))
		if e := r.Index(i); e.Kind() != reflect.Pointer {
			t.fill(line, e, fields)
		} else if !e.IsNil() {
			t.fill(line, e.Elem(), fields)
		}
		t.Rows = append(t.Rows, line)
	}
	return t
}

// hasText tells types that are shown by a method.
func hasText(t reflect.Type) bool {
	for _, i := range []reflect.Type{reflect.TypeFor[error](), reflect.TypeFor[fmt.Stringer]()} {
		if t.Implements(i) {
			return true
		}
	}
	return false
}

// columnsOf are a struct's fields, those of embedded structs in their place.
func columnsOf(t reflect.Type) []reflect.StructField {
	var out []reflect.StructField
	for _, f := range reflect.VisibleFields(t) {
		switch {
		case f.Anonymous && f.Type.Kind() == reflect.Struct && !hasText(f.Type):
		case len(f.Index) > 1 && throughPointer(t, f.Index):
		default:
			out = append(out, f)
		}
	}
	return out
}

func throughPointer(t reflect.Type, index []int) bool {
	for _, i := range index[:len(index)-1] {
		f := t.Field(i)
		if f.Type.Kind() != reflect.Struct || hasText(f.Type) {
			return true
		}
		t = f.Type
	}
	return false
}

func (t *table) fill(line []any, row reflect.Value, fields []reflect.StructField) {
	for i, f := range fields {
		line[i] = field(row.FieldByIndex(f.Index))
	}
}

var (
	timeType     = reflect.TypeFor[time.Time]()
	durationType = reflect.TypeFor[time.Duration]()
)

func kindOf(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == timeType:
		return "datetime"
	case t == durationType:
		return "duration"
	case hasText(t):
		return "string"
	}
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Float32, reflect.Float64:
		return "number"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return "integer"
	}
	return "any"
}

// exact is the largest integer that every JSON reader keeps.
const exact = 1<<53 - 1

// field is a value as JSON has it.
func field(v reflect.Value) any {
	left := maxCell
	if nested, ok := within(v, maxDepth, &left); ok {
		return nested
	}
	return clip(unmark(shortText(v)), maxCell)
}

// maxDepth is how deep what is in one field may be nested, to be JSON of its own; deeper, or
// larger than maxCell, it is text.
const maxDepth = 8

// object is a struct's fields, or a map's, in their order.
type object struct {
	names  []string
	values []any
}

func (o object) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, name := range o.names {
		if i > 0 {
			b = append(b, ',')
		}
		for j, v := range []any{name, o.values[i]} {
			text, err := json.Marshal(v)
			if err != nil {
				return nil, err
			}
			if b = append(b, text...); j == 0 {
				b = append(b, ':')
			}
		}
	}
	return append(b, '}'), nil
}

// within is a value as JSON has it, with what it holds; false where that is too much. Bytes
// and what has no JSON are text.
func within(v reflect.Value, depth int, left *int) (any, bool) {
	if *left--; *left < 0 || depth < 0 {
		return nil, false
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return within(v.Elem(), depth-1, left)
		}
	case reflect.Slice, reflect.Array:
		if hasText(v.Type()) || v.Type().Elem().Kind() == reflect.Uint8 {
			break
		}
		if v.Kind() == reflect.Slice && v.IsNil() {
			return nil, true
		}
		if v.Len() > *left {
			return nil, false
		}
		items := make([]any, v.Len())
		for i := range items {
			item, ok := within(v.Index(i), depth-1, left)
			if !ok {
				return nil, false
			}
			items[i] = item
		}
		return items, true
	case reflect.Map:
		if hasText(v.Type()) || v.Type().Key().Kind() != reflect.String {
			break
		}
		if v.IsNil() {
			return nil, true
		}
		if v.Len() > *left {
			return nil, false
		}
		keys := v.MapKeys()
		sort.Slice(keys, func(i, j int) bool { return keys[i].String() < keys[j].String() })
		var o object
		for _, k := range keys {
			if !o.add(unmark(k.String()), v.MapIndex(k), depth, left) {
				return nil, false
			}
		}
		return o, true
	case reflect.Struct:
		if hasText(v.Type()) || v.Type() == timeType {
			break
		}
		var o object
		for _, f := range columnsOf(v.Type()) {
			if !o.add(unmark(f.Name), v.FieldByIndex(f.Index), depth, left) {
				return nil, false
			}
		}
		return o, true
	}
	one := single(v)
	if text, ok := one.(string); ok {
		*left -= len(text)
	}
	return one, *left >= 0
}

func (o *object) add(name string, v reflect.Value, depth int, left *int) bool {
	value, ok := within(v, depth-1, left)
	o.names, o.values = append(o.names, name), append(o.values, value)
	*left -= len(name)
	return ok
}

// single is a value that holds no others, as JSON has it; of any other its text.
func single(v reflect.Value) any {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.IsNil() {
			return nil
		}
		v = v.Elem()
	}
	if v.Type() == timeType && v.CanInterface() {
		at := v.Interface().(time.Time)
		if at.IsZero() {
			return nil
		}
		return at.Format(time.RFC3339Nano)
	}
	if v.Type() != durationType && hasText(v.Type()) {
		return clip(unmark(shortText(v)), maxCell)
	}
	switch {
	case v.Type() == durationType:
		return time.Duration(v.Int()).String()
	case v.CanInt():
		if n := v.Int(); n > exact || n < -exact {
			return strconv.FormatInt(n, 10)
		}
		return v.Int()
	case v.CanUint():
		if n := v.Uint(); n > exact {
			return strconv.FormatUint(n, 10)
		}
		return v.Uint()
	case v.CanFloat():
		if f := v.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
			return nil
		}
		return v.Float()
	case v.Kind() == reflect.Bool:
		return v.Bool()
	}
	return clip(unmark(shortText(v)), maxCell)
}

func shortText(v reflect.Value) string {
	w := &writer{seen: map[uintptr]bool{}, max: maxCell}
	w.value(v, 0)
	return w.b.String()
}

// maxHTML is how many rows the HTML has.
const maxHTML = 100

func (t *table) html() string {
	var b strings.Builder
	b.WriteString("<table><thead><tr>")
	for _, c := range t.Columns {
		b.WriteString("<th>" + html.EscapeString(c) + "</th>")
	}
	b.WriteString("</tr></thead><tbody>\n")
	for i, row := range t.Rows {
		if i == maxHTML {
			break
		}
		b.WriteString("<tr>")
		for _, v := range row {
			s := ""
			switch v.(type) {
			case nil:
			case []any, object:
				text, _ := json.Marshal(v)
				s = string(text)
			default:
				s = fmt.Sprint(v)
			}
			b.WriteString("<td>" + html.EscapeString(s) + "</td>")
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("</tbody></table>")
	if t.RowCount > min(len(t.Rows), maxHTML) {
		fmt.Fprintf(&b, "\n<p>%d rows</p>", t.RowCount)
	}
	return b.String()
}
