package execution

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/cellard/cellard/mime"
	"github.com/cellard/cellard/protocol/api"
	"github.com/cellard/cellard/protocol/jupyter"
)

// maxTypes bounds how many MIME types one bundle may have; those past it are lost,
// and counted.
const maxTypes = 64

// previewBytes is how much of a long text/plain stays in data, half of it head
// and half tail, as long as there is room.
const previewBytes = 8 << 10

type result struct {
	api.Result
	inline  int64
	values  int
	cleared bool
}

// bundle is one MIME bundle, made ready for the API.
type bundle struct {
	data map[string]json.RawMessage
	refs map[string]api.Ref
	size int64 // bytes of data
	lost int64 // bytes that could not be kept
}

// values is what the bundle counts for: each value in data, three for each ref, whose
// path and hash take the more memory; an empty bundle counts, too.
func (b *bundle) values() int { return max(1, len(b.data)+3*len(b.refs)) }

// bundle takes the members of a bundle into data or, what is too large, to the
// store. A value that can't be read or stored is counted as lost and, so that the
// result isn't silently poorer, said in text/plain where there is no other.
func (e *Execution) bundle(v jupyter.Value) bundle {
	b := bundle{data: map[string]json.RawMessage{}, refs: map[string]api.Ref{}}
	members, err := v.Members()
	if err != nil {
		b.lost = v.Size()
		b.note("a bundle that is no JSON object: %v", err)
		return b
	}
	e.mu.Lock()
	room := e.lim.InlineResults - e.inline
	generation := e.out.Generation
	e.mu.Unlock()
	for i, m := range members {
		t := strings.ToLower(m.Key)
		if i >= maxTypes || len(t) > 255 || t == "" {
			b.lost += m.Value.Size()
			continue
		}
		limit := e.lim.Inline
		if t == mime.TableType {
			limit = e.lim.InlineTable
		}
		if n := m.Value.Size(); n <= limit && b.size+n <= room {
			raw, err := inlineValue(t, m.Value, limit)
			if err != nil {
				b.lost += n
				b.note("%s could not be read: %v", t, err)
				continue
			}
			b.data[t] = raw
			b.size += int64(len(raw))
			continue
		}
		ref, preview, err := e.spill(t, m.Value, generation)
		if err != nil {
			b.lost += m.Value.Size()
			b.note("%s of %d bytes could not be kept: %v", t, m.Value.Size(), err)
			continue
		}
		b.refs[t] = ref
		if t == "text/plain" {
			// Past the bound of all results together not even this is kept: 10,000
			// previews would be 80 MB.
			if raw, _ := api.Marshal(preview); b.size+int64(len(raw)) <= room {
				b.data[t] = raw
				b.size += int64(len(raw))
			}
		}
	}
	return b
}

func (b *bundle) note(format string, args ...any) {
	if _, ok := b.data["text/plain"]; !ok {
		b.data["text/plain"], _ = api.Marshal("[" + fmt.Sprintf(format, args...) + "]")
	}
}

// inlineValue is a value as data holds it.
func inlineValue(t string, v jupyter.Value, limit int64) (json.RawMessage, error) {
	if mime.IsJSON(t) {
		return v.Raw(limit)
	}
	s, err := text(v)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(s)
	if err != nil {
		return nil, err
	}
	if mime.IsBinary(t) {
		// The base64 is passed on, without the line breaks that some kernels put in.
		if _, err := io.Copy(io.Discard, mime.NewBase64Reader(bytes.NewReader(b))); err != nil {
			return nil, err
		}
		return api.Marshal(strings.Join(strings.Fields(string(b)), ""))
	}
	return api.Marshal(string(b))
}

// spill streams a value to the store; of text/plain it keeps head and tail.
func (e *Execution) spill(t string, v jupyter.Value, generation int) (api.Ref, string, error) {
	if mime.IsJSON(t) {
		ref, err := e.o.Store.Put(e.o.ContextID, generation, t, v.Reader())
		return ref, "", err
	}
	r, err := text(v)
	if err != nil {
		return api.Ref{}, "", err
	}
	if mime.IsBinary(t) {
		ref, err := e.o.Store.Put(e.o.ContextID, generation, t, mime.NewBase64Reader(r))
		return ref, "", err
	}
	if t != "text/plain" {
		ref, err := e.o.Store.Put(e.o.ContextID, generation, t, r)
		return ref, "", err
	}
	ends := mime.NewHeadTail(previewBytes)
	ref, err := e.o.Store.Put(e.o.ContextID, generation, t, io.TeeReader(r, ends))
	return ref, ends.String(), err
}

// text reads a value's text: a JSON string, or the array of lines that nbformat
// writes and some kernels send.
func text(v jupyter.Value) (io.Reader, error) {
	if v.IsString() {
		return v.Text(), nil
	}
	lines, err := v.Elements()
	if err != nil {
		return nil, fmt.Errorf("neither a string nor a list of strings")
	}
	readers := make([]io.Reader, len(lines))
	for i, l := range lines {
		if !l.IsString() {
			return nil, fmt.Errorf("neither a string nor a list of strings")
		}
		readers[i] = l.Text()
	}
	return io.MultiReader(readers...), nil
}
