package releases

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/webclient"
)

// The graph servers.
const (
	ServerOCP = "https://api.openshift.com/api/upgrades_info/v1/graph"
	ServerOKD = "https://origin-release.ci.openshift.org/graph"
)

// Server gets graphs from graph servers. It is safe for concurrent use if Save is.
type Server struct {
	Client *webclient.Client
	// OCP and OKD, unless empty, replace the servers. file://DIR reads the files ARCH-CHANNEL.json of a directory.
	OCP, OKD string
	// Save, unless nil, gets the text of each graph as it came; its error is that of the graph.
	Save func(architecture, channel string, text []byte) error
}

// Graph implements [Graphs]. What a server answers is an error unless it has the status 200 and is a graph; one of the
// class network if it has another status.
func (s *Server) Graph(ctx context.Context, of Query) (*Graph, error) {
	at := cmp.Or(s.OCP, ServerOCP)
	if of.Type == OKD {
		at = cmp.Or(s.OKD, ServerOKD)
	}
	get := s.get
	if strings.HasPrefix(at, "file://") {
		get = getFile
	}
	g, text, err := get(ctx, at, of)
	if err == nil && s.Save != nil {
		err = s.Save(of.Architecture, of.Channel, text)
	}
	return g, err
}

func (s *Server) get(ctx context.Context, at string, of Query) (*Graph, []byte, error) {
	u, err := webclient.ParseURL(at)
	if err != nil {
		return nil, nil, err
	}
	asked := url.Values{"arch": {of.Architecture}, "channel": {of.Channel}}
	if of.Version != "" {
		asked.Set("version", of.Version)
	}
	shown := (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawQuery: asked.Encode()}).String()
	query := u.Query()
	query.Del("version")
	query.Set("id", uuid.NewString())
	for name, values := range asked {
		query[name] = values
	}
	u.RawQuery = query.Encode()
	answer, err := s.Client.Get(ctx, u.String(), "application/json", MaxGraph)
	if err != nil {
		return nil, nil, err
	}
	if answer.Status != http.StatusOK {
		return nil, nil, fmt.Errorf("%w: %s answers with %s", fault.ErrServer, shown, answer)
	}
	g, err := ParseGraph(answer.Body)
	if err != nil {
		err = fmt.Errorf("%s answers with %s: %w", shown, answer, err)
	}
	return g, answer.Body, err
}

// getFile reads the file that has a graph in a directory.
func getFile(_ context.Context, at string, of Query) (*Graph, []byte, error) {
	u, err := url.Parse(at)
	if err != nil || u.Host != "" || u.Path == "" {
		return nil, nil, refuse("%s is no directory, expected file:///DIR", fault.Quote(at))
	}
	dir := filepath.FromSlash(u.Path)
	return readGraph(os.DirFS(dir), of, "the directory "+fault.Quote(dir))
}
