package mime

import (
	"maps"
	"slices"
	"strings"
)

// Octets is the type of a file whose name tells nothing.
const Octets = "application/octet-stream"

// IsJSON reports whether values of type t are JSON values in a bundle:
// application/json and what ends in +json, as nbformat has it. Parameters and
// case don't matter.
func IsJSON(t string) bool {
	t = essence(t)
	return t == "application/json" || strings.HasSuffix(t, "+json")
}

// IsBinary reports whether values of type t are base64 strings in a bundle.
//
// Jupyter has no full list: a kernel encodes what its formatter returns as bytes
// (IPython: image/png, image/jpeg, application/pdf), front ends decode those and
// other images, and all else is text (nbformat's multi-line strings). So here
// binary are images but SVG, audio, video, fonts, and those application types
// that are known to be: documents, archives and columnar data. An unknown
// application type is text, since that is what a kernel's own formatters send
// under names of their own (application/vnd.something, application/javascript);
// were it base64, it arrives as the kernel sent it.
func IsBinary(t string) bool {
	t = essence(t)
	if strings.HasSuffix(t, "+json") || strings.HasSuffix(t, "+xml") || strings.HasSuffix(t, "+yaml") {
		return false
	}
	top, sub, _ := strings.Cut(t, "/")
	switch top {
	case "image", "audio", "video", "font":
		return true
	case "application":
		if slices.Contains(binaryApplication, sub) {
			return true
		}
		for _, p := range []string{"vnd.openxmlformats-", "vnd.oasis.opendocument.", "vnd.ms-", "font-", "x-font-"} {
			if strings.HasPrefix(sub, p) {
				return true
			}
		}
		for _, s := range []string{"+zip", "+gzip", "+zstd", "+cbor", "+der", "+ber", "+protobuf", "+sqlite3", "+wasm"} {
			if strings.HasSuffix(sub, s) {
				return true
			}
		}
	}
	return false
}

// ByExtension is the MIME type that the name of a file stands for, by a table of
// the agent's own, so that it is the same in every image; Octets for any other.
func ByExtension(name string) string {
	i := strings.LastIndexByte(name, '.')
	if i < 0 || strings.ContainsRune(name[i:], '/') {
		return Octets
	}
	if t, ok := byExtension[strings.ToLower(name[i+1:])]; ok {
		return t
	}
	return Octets
}

// Types is the table of ByExtension: types by ending, without the dot.
func Types() map[string]string { return maps.Clone(byExtension) }

// Extension is the ending, with its dot, for a file of type t: lower-case
// letters and digits. Of a type that it does not know, it tells whether it is
// JSON (.json), XML (.xml), text (.txt) or binary (.bin).
func Extension(t string) string {
	t = essence(t)
	if e, ok := preferred[t]; ok {
		return "." + e
	}
	for e, known := range byExtension {
		if known == t { // then the only one: the others are in preferred
			return "." + e
		}
	}
	switch {
	case IsJSON(t):
		return ".json"
	case strings.HasSuffix(t, "+xml"):
		return ".xml"
	case t == Octets || IsBinary(t):
		return ".bin"
	}
	return ".txt"
}

// essence is t without parameters, in lower case.
func essence(t string) string {
	t, _, _ = strings.Cut(t, ";")
	return strings.ToLower(strings.TrimSpace(t))
}
