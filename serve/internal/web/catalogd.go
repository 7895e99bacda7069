package web

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// Gates are catalogd's feature gates for routes. The zero value has everything on. They apply to the paths below
// /catalogs/, where clients of catalogd ask; the paths without a catalog's name, which catalogd does not have and pages
// link to, are always there.
type Gates struct {
	NoMetas   bool // APIV1MetasHandler is off
	NoGraphQL bool // GraphQLCatalogQueries is off
}

// ParseGates reads the list of gates that are on: "metas" and "graphql", separated by commas, or "none".
func ParseGates(text string) (Gates, error) {
	off := Gates{NoMetas: true, NoGraphQL: true}
	if text == "none" {
		return off, nil
	}
	for name := range strings.SplitSeq(text, ",") {
		switch name {
		case "metas":
			off.NoMetas = false
		case "graphql":
			off.NoGraphQL = false
		default:
			return Gates{}, fmt.Errorf("invalid gate %q, expected metas, graphql, both with a comma, or none", name)
		}
	}
	return off, nil
}

// errName is returned for a name that no ClusterCatalog can have.
var errName = errors.New("invalid catalog name")

// CheckName returns an error with the reason for a name that is no DNS subdomain (RFC 1123).
func CheckName(name string) error {
	if wrong := wrongName(name); wrong != "" {
		return fmt.Errorf("%w: %s", errName, wrong)
	}
	return nil
}

// answerer answers a request from a catalog.
type answerer func(*Content, http.ResponseWriter, *http.Request)

// catalogdRoute is a route of catalogd's API. Other methods than methods are refused. before checks what
// catalogd checks before it looks for the catalog; it returns the request, or nil if it has answered it.
type catalogdRoute struct {
	name    string
	off     bool
	methods []string
	before  func(http.ResponseWriter, *http.Request) *http.Request
	answer  answerer
}

// routesOfCatalogd adds catalogd's API, in catalogd's order of checks: route, method, name of the catalog, parameters,
// existence.
func (s *Site) routesOfCatalogd() {
	reading := []string{http.MethodGet, http.MethodHead}
	for _, route := range []catalogdRoute{
		{name: "all", methods: reading, answer: s.serveAll},
		{name: "metas", off: s.gates.NoMetas, methods: reading, before: knownParameters, answer: s.serveMetas},
		{name: "graphql", off: s.gates.NoGraphQL, methods: []string{http.MethodPost}, before: s.withQuery,
			answer: s.serveQuery},
	} {
		path := "/api/v1/" + route.name
		s.mux.HandleFunc(path, s.allowOnly(route.methods, s.withContent(route.unnamed)))
		if !route.off {
			s.mux.HandleFunc("/catalogs/{catalog}"+path, s.allowOnly(route.methods, s.withContent(func(c *Content,
				w http.ResponseWriter, r *http.Request) {
				s.named(route, c, w, r)
			})))
		}
	}
}

func (route catalogdRoute) unnamed(c *Content, w http.ResponseWriter, r *http.Request) {
	if route.before != nil {
		r = route.before(w, r)
	}
	if r != nil {
		route.answer(c, w, r)
	}
}

// named answers for the site's catalog, which has any valid name unless it was given one.
func (s *Site) named(route catalogdRoute, c *Content, w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("catalog")
	if err := CheckName(name); err != nil {
		plainError(w, http.StatusBadRequest, err.Error())
		return
	}
	if route.before != nil {
		r = route.before(w, r)
	}
	switch {
	case r == nil:
	case s.name != "" && name != s.name:
		statusError(w, http.StatusNotFound)
	default:
		route.answer(c, w, r)
	}
}

// allowOnly refuses other methods with catalogd's text.
func (s *Site) allowOnly(methods []string, answer http.HandlerFunc) http.HandlerFunc {
	allowed := strings.Join(methods, ", ")
	return func(w http.ResponseWriter, r *http.Request) {
		if !slices.Contains(methods, r.Method) {
			w.Header().Set("Allow", allowed)
			plainError(w, http.StatusMethodNotAllowed, http.StatusText(http.StatusMethodNotAllowed))
			return
		}
		answer(w, r)
	}
}

// knownParameters refuses parameters of other names than those of metas.
func knownParameters(w http.ResponseWriter, r *http.Request) *http.Request {
	for key := range r.URL.Query() {
		if key != "schema" && key != "package" && key != "name" {
			statusError(w, http.StatusBadRequest)
			return nil
		}
	}
	return r
}

// noRoute answers like a server without the path.
func noRoute(w http.ResponseWriter, _ *http.Request) {
	plainError(w, http.StatusNotFound, "404 page not found")
}

// statusError answers with a status and its text.
func statusError(w http.ResponseWriter, code int) {
	plainError(w, code, fmt.Sprintf("%d %s", code, http.StatusText(code)))
}

// plainError answers with an error as [http.Error] writes it, which is not to be stored.
func plainError(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, text, code)
}

// subdomain matches valid names of Kubernetes objects (RFC 1123).
var subdomain = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// wrongName returns Kubernetes' message about an invalid object name; it is empty for a valid one.
func wrongName(name string) string {
	switch {
	case len(name) > 253:
		return "must be no more than 253 characters"
	case !subdomain.MatchString(name):
		return "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and " +
			"must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is " +
			"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
	}
	return ""
}
