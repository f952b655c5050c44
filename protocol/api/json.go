package api

import (
	"bytes"
	"encoding/json"
)

// Marshal encodes v as the API does: compact, and with <, > and & as they are,
// since HTML in a result would else grow sixfold at each of them.
func Marshal(v any) ([]byte, error) {
	if e, ok := v.(Event); ok {
		// encoding/json goes once more over what a MarshalJSON returns, which takes
		// longer than all else that is done with the text of a stream.
		return e.MarshalJSON()
	}
	return marshal(v)
}

func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
