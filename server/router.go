package server

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/cellard/cellard/protocol/api"
)

// route is a method and a path. In the path, {id} and {file} take one segment; a
// segment may end in a verb, as {id}:restart does. net/http's ServeMux knows no
// such verbs, answers 404 and 405 as plain text, and redirects.
type route struct {
	method  string
	path    string
	handler func(*Server, *call) error
}

// routes is all that is served.
func routes() []route {
	return []route{
		{"POST", "/v1/interpreter:run", (*Server).run},
		{"GET", "/v1/executions/{id}", (*Server).execution},
		{"GET", "/v1/executions/{id}/events", (*Server).events},
		{"POST", "/v1/executions/{id}:interrupt", (*Server).interruptExecution},
		{"POST", "/v1/executions/{id}:input", (*Server).input},
		{"GET", "/v1/interpreter/contexts", (*Server).contexts},
		{"POST", "/v1/interpreter/contexts", (*Server).createContext},
		{"GET", "/v1/interpreter/contexts/{id}", (*Server).context},
		{"DELETE", "/v1/interpreter/contexts/{id}", (*Server).deleteContext},
		{"POST", "/v1/interpreter/contexts/{id}:restart", (*Server).restart},
		{"POST", "/v1/interpreter/contexts/{id}:interrupt", (*Server).interruptContext},
		{"POST", "/v1/interpreter/contexts/{id}:complete", (*Server).complete},
		{"POST", "/v1/interpreter/contexts/{id}:inspect", (*Server).inspect},
		{"POST", "/v1/interpreter/contexts/{id}:isComplete", (*Server).isComplete},
		{"POST", "/v1/interpreter/contexts/{id}:fork", (*Server).unsupported},
		{"POST", "/v1/interpreter/contexts/{id}:rollback", (*Server).unsupported},
		{"GET", "/v1/interpreter/contexts/{id}/variables", (*Server).variables},
		{"GET", "/v1/interpreter/contexts/{id}/notebook", (*Server).notebook},
		{"GET", "/v1/interpreter/contexts/{id}/results/{file}", (*Server).result},
		{"GET", healthPath, (*Server).health},
		{"GET", metricsPath, (*Server).metrics},
		{"GET", "/v1/languages", (*Server).languages},
	}
}

// Routes tells what is served, each as METHOD and path, with {id} and {file} for what a
// request puts there.
func Routes() (all []string) {
	for _, r := range routes() {
		all = append(all, r.method+" "+r.path)
	}
	return all
}

const (
	healthPath  = "/v1/health"
	metricsPath = "/metrics"
)

// find returns the route of a request and what {id} and {file} are. GET stands for
// HEAD too.
func (s *Server) find(method, path string) (route, map[string]string, *api.Error) {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	var allowed []string
	for _, r := range s.routes {
		vars, ok := match(r.path, path)
		if !ok {
			continue
		}
		if r.method == method {
			return r, vars, nil
		}
		allowed = append(allowed, r.method)
	}
	if allowed == nil {
		return route{}, nil, api.Errorf(api.CodeNotFound, "there is no %s", quote(path)).
			WithHint("see docs/api.md for what there is; ids and files are one part of a path each")
	}
	slices.Sort(allowed)
	e := api.Errorf(api.CodeInvalidRequest, "%s does not take %s", quote(path), quote(method)).
		WithHint("it takes %s", strings.Join(allowed, ", "))
	e.Status = http.StatusMethodNotAllowed
	return route{}, map[string]string{"allow": strings.Join(allowed, ", ")}, e
}

// match matches an escaped path against a route's, segment by segment.
func match(pattern, path string) (map[string]string, bool) {
	want, got := strings.Split(pattern, "/"), strings.SplitN(path, "/", 10)
	if len(want) != len(got) {
		return nil, false
	}
	vars := map[string]string{}
	for i, w := range want {
		g, err := url.PathUnescape(got[i])
		if err != nil {
			return nil, false
		}
		name, verb, ok := strings.Cut(w, "}")
		if !ok {
			if w != g {
				return nil, false
			}
			continue
		}
		if g, ok = strings.CutSuffix(g, verb); !ok || g == "" {
			return nil, false
		}
		if name == "{id" && strings.Contains(g, ":") {
			return nil, false // a verb, but not this route's
		}
		vars[name[1:]] = g
	}
	return vars, true
}

// quote cuts what a client sent to what fits in a message.
func quote(s string) string {
	if len(s) > 100 {
		s = s[:100] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
