package imageset

import (
	"bytes"
	"errors"
	"net/url"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/mirror/charts"
)

// Helm are the charts whose images are wanted. The zero value wants none.
type Helm struct {
	Repositories []ChartRepository
	// Local are charts in files or directories.
	Local []Chart
}

// IsZero tells whether no chart is wanted.
func (h *Helm) IsZero() bool {
	for i := range h.Repositories {
		if h.Repositories[i].All || len(h.Repositories[i].Charts) > 0 {
			return false
		}
	}
	return len(h.Local) == 0
}

// ChartRepository is a repository of charts: one of http or https with an index, or a path at a registry, oci://HOST/PATH.
type ChartRepository struct {
	Name, URL string
	// Charts are those that are wanted; All wants every version of every chart that is no library.
	Charts []Chart
	All    bool
	Line   int
}

// Chart is a chart of a repository, which has a name and perhaps a version, or a local one, which has a path.
type Chart struct {
	Name string
	// Version is a rule of [charts.ParseRule].
	Version string
	// Path is an archive or a directory.
	Path string
	// ImagePaths are JSONPath expressions that find further images in the objects of the chart.
	ImagePaths []string
	// Platforms, unless empty, are the only ones that are copied of indexes.
	Platforms []v1.Platform
	Line      int
}

type helmForm struct {
	Repositories []chartRepositoryForm `json:"repositories,omitempty"`
	Local        []chartForm           `json:"local,omitempty"`
}

type chartRepositoryForm struct {
	Name string `json:"name,omitempty"`
	URL  string `json:"url,omitempty"`
	// Charts are null for all charts, and empty for none.
	Charts *[]chartForm `json:"charts"`
}

type chartForm struct {
	Name       string         `json:"name,omitempty"`
	Version    string         `json:"version,omitempty"`
	Path       string         `json:"path,omitempty"`
	ImagePaths []string       `json:"imagePaths,omitempty"`
	Platforms  []platformForm `json:"platforms,omitempty"`
}

// form returns the written form; nil if nothing is wanted. pinned, unless nil, returns the version that a chart of a repository
// is pinned to, or an empty text to leave it as it is. The form has no passwords: it is for archives and workspaces.
func (h *Helm) form(pinned func(r *ChartRepository, c *Chart) string) *helmForm {
	if len(h.Repositories)+len(h.Local) == 0 {
		return nil
	}
	form := func(c *Chart) chartForm {
		return chartForm{c.Name, c.Version, c.Path, c.ImagePaths, platforms(c.Platforms)}
	}
	f := &helmForm{}
	for i := range h.Repositories {
		r := &h.Repositories[i]
		one := chartRepositoryForm{Name: r.Name, URL: charts.WithoutSecrets(r.URL)}
		if !r.All {
			list := []chartForm{}
			for n := range r.Charts {
				c := form(&r.Charts[n])
				if pinned != nil {
					if v := pinned(r, &r.Charts[n]); v != "" {
						c.Version = v
					}
				}
				list = append(list, c)
			}
			one.Charts = &list
		}
		f.Repositories = append(f.Repositories, one)
	}
	for i := range h.Local {
		f.Local = append(f.Local, form(&h.Local[i]))
	}
	return f
}

// PublicText returns the text of the configuration without the users, passwords and queries of repositories of charts: what goes
// into archives. Where they are not in the text as such, as YAML has several ways to write a text, it is written newly.
func (s *Set) PublicText() []byte {
	text := s.Text
	for i := range s.Helm.Repositories {
		if at := s.Helm.Repositories[i].URL; at != charts.WithoutSecrets(at) {
			text = bytes.ReplaceAll(text, []byte(at), []byte(charts.WithoutSecrets(at)))
		}
	}
	if len(text) == len(s.Text) && !s.hasSecrets(s) {
		return s.Text
	}
	again, err := Parse(text, "", s.Kind, Options{Compat: true})
	if err != nil || again.hasSecrets(s) {
		return s.Pinned(s.Kind, func(Operator) digest.Digest { return "" }, nil, nil)
	}
	return text
}

// hasSecrets tells whether the URL of a repository has a user, a password or a query, or the text has those of another set.
func (s *Set) hasSecrets(of *Set) bool {
	for i := range s.Helm.Repositories {
		if at := s.Helm.Repositories[i].URL; at != charts.WithoutSecrets(at) {
			return true
		}
	}
	for i := range of.Helm.Repositories {
		if u, err := url.Parse(of.Helm.Repositories[i].URL); err == nil && u.User != nil && bytes.Contains(s.Text, []byte(u.User.String()+"@")) {
			return true
		}
	}
	return false
}

// errChart is in problems of charts, which oc-mirror finds while it collects images.
var errChart = errors.New("chart")

// wrongChart adds a problem of a chart.
func (n node) wrongChart(name, what, fix string) {
	p := n.problem(name, what, fix)
	p.Err = errors.Join(p.Err, errChart)
	n.r.problems.Add(p)
}

// readHelm reads the stanza about charts.
func (r *reader) readHelm(n node) Helm {
	var h Helm
	names := map[string]int{}
	for _, item := range n.objects("repositories") {
		one := ChartRepository{Name: item.text("name"), URL: item.text("url"), Line: item.line(), All: item.fields["charts"] == nil}
		if line, twice := names[one.Name]; twice && one.Name != "" {
			item.wrongChart("name", "duplicate repository "+fault.Quote(one.Name)+", as in "+lineName(line),
				"give it another name, or join the charts of the two")
		}
		names[one.Name] = one.Line
		item.checkRepositoryURL(one)
		for _, c := range item.objects("charts") {
			chart := r.readChart(c)
			if !c.misfit("name") {
				if err := charts.CheckName(chart.Name); chart.Name == "" {
					c.wrongChart("name", "chart without a name: name must be specified", "")
				} else if err != nil {
					c.wrongChart("name", err.Error(), "")
				}
			}
			if _, err := charts.ParseRule(chart.Version); err != nil && !c.misfit("version") {
				c.wrongChart("version", err.Error(), "such as 1.2.3, ~1.2 or \">=1.0 <2.0\"")
			}
			if chart.Path != "" {
				c.r.warn(c.at.In("path"), c.field("path"), "the path of a chart of a repository is not looked at", "helm.local has charts in files")
			}
			one.Charts = append(one.Charts, chart)
		}
		h.Repositories = append(h.Repositories, one)
	}
	for _, item := range n.objects("local") {
		chart := r.readChart(item)
		if chart.Path == "" && !item.misfit("path") {
			item.wrongChart("path", "local chart without a path: path must be specified", "path: charts/web-1.0.0.tgz, or a directory")
		}
		h.Local = append(h.Local, chart)
	}
	return h
}

// checkRepositoryURL checks the address of a repository.
func (n node) checkRepositoryURL(of ChartRepository) {
	if n.misfit("url") {
		return
	}
	u, err := url.Parse(of.URL)
	switch {
	case of.URL == "":
		n.wrongChart("url", "repository without a URL: url must be specified", "url: https://charts.example.com/stable")
	case err != nil, u.Host == "", u.Scheme != "http" && u.Scheme != "https" && u.Scheme != OCI:
		n.wrongChart("url", fault.Quote(redact.Text(of.URL))+" is no URL of a repository", "url: https://charts.example.com/stable, or oci://HOST/PATH")
	case u.Scheme == OCI && of.All:
		n.wrongChart("charts", "a registry has no index of charts", "name the charts below oci://"+u.Host+u.Path)
	case u.Scheme == OCI:
		if _, err := ParseTarget(strings.TrimPrefix(of.URL, OCI+"://")); err != nil {
			n.wrongChart("url", fault.Quote(redact.Text(of.URL))+" is no path at a registry", "url: oci://registry.example.com/charts")
		}
	}
}

// readChart reads the fields that all charts have.
func (r *reader) readChart(n node) Chart {
	before := len(r.problems.Problems)
	c := Chart{Name: n.text("name"), Version: n.text("version"), Path: n.text("path"), Platforms: n.platforms(), Line: n.line()}
	for i := before; i < len(r.problems.Problems); i++ {
		p := &r.problems.Problems[i]
		p.Err = errors.Join(p.Err, errChart)
	}
	items, _ := n.fields["imagePaths"].([]any)
	for _, item := range items {
		if text, ok := item.(string); ok {
			c.ImagePaths = append(c.ImagePaths, text)
		}
	}
	return c
}
