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

// maxMetadata bounds the JSON text of what a kernel says of a bundle's values: it can't be a
// ref, and is small where it means something (an image's width, how to show it).
const maxMetadata = 16 << 10

// previewBytes is how much of a long text/plain stays in data, half of it head
// and half tail, as long as there is room.
const previewBytes = 8 << 10

type result struct {
	api.Result
	inline  int64
	about   int64 // bytes of metadata
	values  int
	cleared bool
}

// set has the result show b.
func (r *result) set(b bundle) {
	r.inline, r.about, r.values = b.size, b.about, b.values()
	r.Data, r.Refs, r.Metadata = b.data, b.refs, b.metadata
}

// drop forgets what it shows: a DisplayMap may still have it.
func (r *result) drop() { r.Data, r.Refs, r.Metadata = nil, nil, nil }

// bundle is one MIME bundle, made ready for the API.
type bundle struct {
	data     map[string]json.RawMessage
	refs     map[string]api.Ref
	metadata map[string]json.RawMessage // nil where there is none
	size     int64                      // bytes of data
	about    int64                      // bytes of metadata
	lost     int64                      // bytes that could not be kept
}

// values is what the bundle counts for: each value in data and in metadata, three for each
// ref, whose path and hash take the more memory; an empty bundle counts, too.
func (b *bundle) values() int { return max(1, len(b.data)+3*len(b.refs)+len(b.metadata)) }

// describe takes what the kernel says of the bundle's values. Some kernels send null for
// nothing.
func (b *bundle) describe(v jupyter.Value, room int64) {
	if v.Size() > min(maxMetadata, room) {
		b.lost += v.Size()
		return
	}
	members, err := v.Members()
	if err != nil {
		if raw, _ := v.Raw(maxMetadata); string(raw) != "null" {
			b.lost += v.Size()
		}
		return
	}
	for _, m := range members {
		raw, err := m.Value.Raw(maxMetadata)
		if err != nil {
			b.lost += m.Value.Size()
			continue
		}
		if b.metadata == nil {
			b.metadata = map[string]json.RawMessage{}
		}
		b.metadata[m.Key] = raw
		b.about += int64(len(m.Key) + len(raw))
	}
}

// bundle takes the members of a bundle into data or, what is too large, to the
// store. A value that can't be read or stored is counted as lost and, so that the
// result isn't silently poorer, said in text/plain where there is no other.
func (e *Execution) bundle(v, metadata jupyter.Value) bundle {
	b := bundle{data: map[string]json.RawMessage{}, refs: map[string]api.Ref{}}
	members, err := v.Members()
	if err != nil {
		b.lost = v.Size()
		b.note("a bundle that is no JSON object: %v", err)
		return b
	}
	e.mu.Lock()
	room := e.lim.InlineResults - e.inline
	aboutRoom := e.lim.InlineResults - e.about
	generation := e.out.Generation
	e.mu.Unlock()
	b.describe(metadata, aboutRoom)
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
