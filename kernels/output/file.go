package output

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/cellard/cellard/mime"
	"github.com/cellard/cellard/protocol/jupyter/kernel"
)

// defaultFileBytes is the size of the largest file that is shown, where
// CELLARD_FILE_BYTES says nothing else.
const defaultFileBytes = 64 << 20

// FileLimit is the size in bytes of the largest file that is shown, by the environment
// variable CELLARD_FILE_BYTES.
func FileLimit() int64 {
	if n, err := strconv.ParseInt(os.Getenv("CELLARD_FILE_BYTES"), 10, 64); err == nil && n > 0 {
		return n
	}
	return defaultFileBytes
}

// File is a file to show: its content by the MIME type that its name stands for, and its
// path as text/plain. Only a regular file of at most limit bytes will do; it is opened
// without blocking, since what a cell names may be a pipe by now.
func File(path string, limit int64) (kernel.Bundle, error) {
	data, err := read(path, limit)
	if err != nil {
		return nil, err
	}
	return Of(mime.ByExtension(path), path, data), nil
}

// Of is data of a MIME type as a bundle, with text as its text/plain: base64 for a
// binary type, a value for JSON. What isn't what its type says is text, or octets.
func Of(mimeType, text string, data []byte) kernel.Bundle {
	bundle := kernel.Bundle{"text/plain": strings.ToValidUTF8(text, "\uFFFD")}
	switch {
	case mime.IsBinary(mimeType):
		bundle[mimeType] = base64.StdEncoding.EncodeToString(data)
	case mime.IsJSON(mimeType):
		value := bytes.TrimPrefix(data, []byte("\xEF\xBB\xBF"))
		if json.Valid(value) {
			bundle[mimeType] = json.RawMessage(value)
		} else {
			bundle["text/plain"] = decoded(data)
		}
	default:
		bundle[mimeType] = decoded(data)
	}
	return bundle
}

func decoded(data []byte) string {
	var d mime.Decoder
	return d.Write(data) + d.Flush()
}

func read(path string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("not a regular file: %s", path)
	}
	if info.Size() <= limit {
		data, err := io.ReadAll(io.LimitReader(f, limit+1)) // it may grow meanwhile
		if err != nil {
			return nil, err
		}
		if int64(len(data)) <= limit {
			return data, nil
		}
	}
	return nil, fmt.Errorf("%s is larger than %d bytes, which is the limit for showing a file", path, limit)
}
