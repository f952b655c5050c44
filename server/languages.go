package server

import (
	"net/http"

	"github.com/cellard/cellard/protocol/api"
)

// languages is GET /v1/languages.
func (s *Server) languages(c *call) error {
	list := s.o.Manager.Languages(c.r.Context())
	if list == nil {
		list = []api.Language{}
	}
	return c.reply(http.StatusOK, api.LanguageList{Data: list})
}
