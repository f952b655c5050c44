package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"

	"github.com/cellard/cellard/protocol/api"
)

// File is the bytes of a ref, or of an overflow, as they come. It is one goroutine's.
type File struct {
	// MIME is the Content-Type, without parameters.
	MIME string
	// Size is in bytes.
	Size int64

	c     *Client
	ctx   context.Context
	path  string
	etag  string
	a     *answer // nil after a break
	n     int64
	tries int
	sum   hash.Hash
	want  string
	err   error
}

// Result opens a ref of an execution's context. Reading it to its end checks length and
// hash. A read that breaks off goes on where it was. The caller closes it.
func (c *Client) Result(ctx context.Context, contextID string, ref api.Ref) (*File, error) {
	f, err := c.file(ctx, contextID, ref.Path)
	if err != nil {
		return nil, err
	}
	if f.Size != ref.Bytes || f.want != ref.SHA256 {
		f.Close()
		return nil, fmt.Errorf("%s is no longer what the ref names: %d bytes with sha256 %s, not %d with %s", ref.Path, f.Size, f.want, ref.Bytes, ref.SHA256)
	}
	return f, nil
}

// OverflowFile opens the file of a stream that outgrew its execution, as Result does.
func (c *Client) OverflowFile(ctx context.Context, contextID string, o api.Overflow) (*File, error) {
	return c.file(ctx, contextID, o.Path)
}

func (c *Client) file(ctx context.Context, contextID, guestPath string) (*File, error) {
	f := &File{c: c, ctx: ctx, path: contextPath(contextID) + "/results/" + url.PathEscape(path.Base(guestPath)), sum: sha256.New()}
	a, err := c.send(ctx, f.request(nil))
	if err != nil {
		return nil, err
	}
	f.a, f.Size, f.etag = a, a.ContentLength, a.Header.Get("ETag")
	f.want = strings.Trim(f.etag, `"`)
	f.MIME, _, _ = strings.Cut(a.Header.Get("Content-Type"), ";")
	if f.Size < 0 || len(f.want) != hex.EncodedLen(sha256.Size) {
		f.Close()
		return nil, fmt.Errorf("GET %s: the answer has no length or no hash", f.path)
	}
	return f, nil
}

func (f *File) request(h http.Header) request {
	return request{method: "GET", path: f.path, header: h, again: true, timeout: f.c.o.AnswerTimeout}
}

// Read ends with io.EOF only when all has come, and is what the hash says.
func (f *File) Read(b []byte) (int, error) {
	for f.err == nil {
		if f.a == nil {
			if f.err = f.resume(); f.err != nil {
				break
			}
		}
		// Not a byte more than was promised.
		n, err := io.LimitReader(f.a, f.Size-f.n).Read(b)
		f.sum.Write(b[:n])
		f.n += int64(n)
		if n > 0 {
			f.tries = 0
		}
		if f.n == f.Size {
			f.err = io.EOF
			if got := hex.EncodeToString(f.sum.Sum(nil)); got != f.want {
				f.err = fmt.Errorf("GET %s: the hash of what came is %s, not %s", f.path, got, f.want)
			}
		} else if err != nil {
			f.a.Close()
			f.a = nil
			if f.ctx.Err() != nil {
				f.err = context.Cause(f.ctx)
			} else if f.tries++; f.tries > f.c.o.Retries {
				if errors.Is(err, io.EOF) {
					err = io.ErrUnexpectedEOF
				}
				f.err = fmt.Errorf("GET %s: %d of %d bytes came: %w", f.path, f.n, f.Size, err)
			}
		}
		if n > 0 || len(b) == 0 {
			return n, nil
		}
	}
	return 0, f.err
}

// resume asks for the rest.
func (f *File) resume() error {
	var h http.Header
	want := http.StatusOK
	if f.n > 0 {
		h = http.Header{"Range": {"bytes=" + strconv.FormatInt(f.n, 10) + "-"}, "If-Range": {f.etag}}
		want = http.StatusPartialContent
	}
	a, err := f.c.send(f.ctx, f.request(h))
	if err != nil {
		return err
	}
	if a.StatusCode != want || a.ContentLength != f.Size-f.n {
		a.Close()
		return fmt.Errorf("GET %s: the rest from byte %d was asked for, and HTTP %.100q came", f.path, f.n, a.Status)
	}
	f.a = a
	return nil
}

// Close ends the reading.
func (f *File) Close() error {
	if f.a != nil {
		f.a.Close()
		f.a = nil
	}
	if f.err == nil {
		f.err = errors.New("the file was closed")
	}
	return nil
}
