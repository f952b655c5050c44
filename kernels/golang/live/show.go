package live

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"reflect"
	"strings"
)

// Show shows the value of a cell's last expression.
func Show(v any) { Send(Event{Kind: "result", Cell: number(), Data: bundle(v)}) }

// ShowAll shows the values of a call. An error that is nil, as the last of them, is no
// value.
func ShowAll(v ...any) {
	if n := len(v); n > 1 && v[n-1] == nil {
		v = v[:n-1]
	}
	if len(v) == 1 {
		Show(v[0])
		return
	}
	texts := make([]string, len(v))
	for i, one := range v {
		texts[i] = text(one)
	}
	Send(Event{Kind: "result", Cell: number(), Data: map[string]any{"text/plain": strings.Join(texts, "\n")}})
}

// ShowError shows the error that a call gave, if any.
func ShowError(err error) {
	if err != nil {
		Show(err)
	}
}

// Drop takes a value that isn't to be shown.
func Drop(...any) {}

// Display shows values: a map by MIME types as it is, the path of a file as that file,
// all else as a result is shown.
func Display(values ...any) {
	Check()
	for _, v := range values {
		e := Event{Kind: "display", Cell: number()}
		switch v := v.(type) {
		case map[string]any:
			if e.Data = byType(v); e.Data == nil {
				e.Data = bundle(v)
			}
		case map[string]string:
			all := map[string]any{}
			for k, s := range v {
				all[k] = s
			}
			if e.Data = byType(all); e.Data == nil {
				e.Data = bundle(v)
			}
		case string:
			if info, err := os.Stat(v); err == nil && len(v) < 4096 && info.Mode().IsRegular() {
				if path, err := filepath.Abs(v); err == nil {
					e.Kind, e.Path, e.Text = "file", path, v
					break
				}
			}
			e.Data = bundle(v)
		default:
			e.Data = bundle(v)
		}
		Send(e)
	}
}

func number() int {
	if c := ofGoroutine(); c != nil {
		return c.Number
	}
	return 0
}

// byType is a map whose keys are MIME types, with bytes as base64; nil for another map.
func byType(m map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range m {
		if a, b, ok := strings.Cut(k, "/"); !ok || a == "" || b == "" || strings.ContainsAny(k, " \t\n") {
			return nil
		}
		if b, ok := v.([]byte); ok {
			if strings.HasPrefix(k, "text/") || strings.HasSuffix(k, "xml") || strings.HasSuffix(k, "json") {
				v = string(b)
			} else {
				v = base64.StdEncoding.EncodeToString(b)
			}
		}
		out[k] = v
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// maxPixels bounds the images that are encoded.
const maxPixels = 64 << 20

// bundle is how a value is shown.
func bundle(v any) map[string]any {
	data := map[string]any{}
	if img, ok := v.(image.Image); ok && !isNil(v) {
		b := img.Bounds()
		if n := int64(b.Dx()) * int64(b.Dy()); n > 0 && n <= maxPixels {
			var out bytes.Buffer
			if png.Encode(&out, img) == nil {
				data["image/png"] = base64.StdEncoding.EncodeToString(out.Bytes())
				data["text/plain"] = typeName(reflect.TypeOf(v)) + " " + b.String()
				return data
			}
		}
	}
	if t := tableOf(v); t != nil {
		data["application/vnd.runtime.table+json"] = t
		data["text/html"] = t.html()
	}
	data["text/plain"] = text(v)
	return data
}

func isNil(v any) bool {
	r := reflect.ValueOf(v)
	switch r.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Func, reflect.Chan, reflect.Interface:
		return r.IsNil()
	}
	return !r.IsValid()
}

func typeName(t reflect.Type) string { return unmark(t.String()) }
