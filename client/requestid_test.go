package client_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cellard/cellard/client"
	"github.com/cellard/cellard/protocol/api"
)

// The caller's id for a request is sent with it, and is in what went wrong.
func TestRequestID(t *testing.T) {
	c := newClient(t, real.Unix, client.Options{})
	ctx := bounded(t)
	var refusal *api.Error
	_, err := c.Execution(api.WithRequestID(ctx, "mine-1"), "none")
	if !errors.As(err, &refusal) || refusal.RequestID != "mine-1" || !strings.Contains(err.Error(), "mine-1") {
		t.Errorf("%v", err)
	}
	refusal = nil
	if _, err = c.Execution(ctx, "none"); !errors.As(err, &refusal) || !api.ValidRequestID(refusal.RequestID) || !strings.Contains(err.Error(), refusal.RequestID) {
		t.Errorf("%v", err)
	}
	s, err := c.Stream(ctx, api.RunRequest{Code: "1", RequestID: "mine-2"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.RequestID() != "mine-2" {
		t.Errorf("the stream's is %q", s.RequestID())
	}
	if _, err := s.Wait(); err != nil {
		t.Error(err)
	}
	if _, err = c.Health(api.WithRequestID(ctx, "no id\r\nX: y")); err == nil || !strings.Contains(err.Error(), "is no id") {
		t.Errorf("an id that is none: %v", err)
	}
	// A refusal that comes as the last line of a stream.
	refusal = nil
	_, err = c.Run(ctx, api.RunRequest{Code: "1", Context: "python", IfGeneration: new(int), RequestID: "mine-3"})
	if !errors.As(err, &refusal) || refusal.RequestID != "mine-3" {
		t.Errorf("%v", err)
	}
}

// What the other end gives as an id is used only if it is one, and where nothing is
// answered the caller's is told.
func TestHostileRequestID(t *testing.T) {
	answer := http.StatusNotFound
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answer == 0 {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set(api.RequestIDHeader, "a <b>")
		w.WriteHeader(answer)
		_, _ = io.WriteString(w, `{"error":{"code":"not_found","message":"m","hint":"h","requestId":"c <d>"}}`)
	}))
	defer s.Close()
	c := newClient(t, s.URL, client.Options{Retries: -1})
	ctx := bounded(t)
	var refusal *api.Error
	_, err := c.Execution(ctx, "x")
	if !errors.As(err, &refusal) || refusal.RequestID != "" || strings.Contains(err.Error(), "<") {
		t.Errorf("%v", err)
	}
	answer = 0
	if _, err = c.Execution(api.WithRequestID(ctx, "mine"), "x"); err == nil || !strings.Contains(err.Error(), "(request mine)") {
		t.Errorf("%v", err)
	}
}
