package server

import (
	"net/http"

	"github.com/cellard/cellard/protocol/api"
)

// apiVersion is the version of the host API.
const apiVersion = 1

// health is GET /v1/health. It waits for nothing: a host polls it to see that the
// agent is up.
func (s *Server) health(c *call) error {
	running, idle := s.o.Manager.Health()
	return c.reply(http.StatusOK, api.Health{
		Status: "ok", Version: s.o.Version, API: apiVersion, InstanceID: s.o.Manager.InstanceID(),
		Features: []string{}, Running: running, IdleMs: idle.Milliseconds(),
	})
}
