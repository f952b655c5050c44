package server

import (
	"net/http"
	"strings"
	"time"
)

// result is GET /v1/interpreter/contexts/{id}/results/{file}: the bytes of a ref. They
// are what a cell made, so a browser that is shown them must not run them.
func (s *Server) result(c *call) error {
	f, err := s.o.Manager.OpenResult(c.id, c.file)
	if err != nil {
		return err
	}
	defer f.Close()
	mimeType := f.MIME
	if strings.HasPrefix(mimeType, "text/") && !strings.Contains(mimeType, "charset") {
		mimeType += "; charset=utf-8"
	}
	h := c.w.Header()
	h.Set("Content-Type", mimeType)
	h.Set("ETag", `"`+f.SHA256+`"`)
	h.Set("Cache-Control", "private, max-age=31536000, immutable") // the name has the hash in it
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	w := &errorless{ResponseWriter: c.w}
	http.ServeContent(w, c.r, "", time.Time{}, f.File)
	return w.serveError(f.Size)
}
