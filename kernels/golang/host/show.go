package host

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/cellard/cellard/kernels/golang/live"
)

// Show shows the values of a cell's last expression.
func (h cellHost) Show(v []any, kind live.Kind) {
	live.Check()
	defer wrote.Store(byEvent) // a deferred call may write
	n := len(v)
	switch {
	case kind == live.Error && v[0] == nil:
		return
	case kind == live.Tuple && n > 1 && v[n-1] == nil:
		v = v[:n-1]
	}
	if len(v) == 1 {
		h.send(Event{Kind: "result", Cell: number(), Data: bundle(v[0])})
		return
	}
	texts := make([]string, len(v))
	for i, one := range v {
		texts[i] = text(one)
	}
	h.send(Event{Kind: "result", Cell: number(), Data: map[string]any{"text/plain": strings.Join(texts, "\n")}})
}

// Display shows values: a map by MIME types as it is, the path of a file as that file,
// all else as a result is shown.
func (h cellHost) Display(values []any) {
	live.Check()
	for _, v := range values {
		e := Event{Kind: "display", Cell: number()}
		switch v := v.(type) {
		case map[string]any:
			e.Data = byType(v)
		case map[string]string:
			all := map[string]any{}
			for k, s := range v {
				all[k] = s
			}
			e.Data = byType(all)
		case string:
			if path, ok := regular(v); ok {
				e.Kind, e.Path, e.Text = "file", path, v
			}
		}
		if e.Data == nil && e.Kind == "display" {
			e.Data = bundle(v)
		}
		settled(h.put(e))
	}
}

// regular is the absolute path of a regular file.
func regular(path string) (string, bool) {
	if len(path) > 4096 {
		return "", false
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return "", false
	}
	abs, err := filepath.Abs(path)
	return abs, err == nil
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
