package build

import (
	"fmt"
	"path"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/build/internal/cataloglayer"
)

// server returns the program called opm that the base's configuration starts; empty if it starts another one or none.
func (b *base) server() string {
	for _, words := range [][]string{b.config.Config.Entrypoint, b.config.Config.Cmd} {
		if len(words) == 0 {
			continue
		}
		if path.Base(words[0]) == path.Base(cataloglayer.ServerPath) {
			return words[0]
		}
		return ""
	}
	return ""
}

// baseServer returns the common server of the bases of all platforms; empty if they differ or one has none.
func (o *Options) baseServer(bases []*base) string {
	if o.useBaseServer {
		return "/" + cataloglayer.ServerPath
	}
	found := ""
	for _, b := range bases {
		if b == nil {
			return ""
		}
		s := b.server()
		if s == "" || found != "" && s != found {
			return ""
		}
		found = s
	}
	return found
}

// settleServer decides between the base's server and servers that are added to the image. It returns the base's server
// if that is used.
func (o *Options) settleServer(bases []*base) (string, error) {
	if o.serverOf == nil && !o.useBaseServer {
		return "", nil
	}
	if s := o.baseServer(bases); s != "" {
		// Only the server that comes with it supports the native cache; others refuse to start with it.
		o.program, o.caches.Native = s, nil
		return s, nil
	}
	for _, p := range o.platforms() {
		s, err := o.serverOf(p)
		if err != nil {
			return "", err
		}
		if !samePlatform(s.Platform, p) {
			return "", fmt.Errorf("a server for %s/%s instead of %s/%s", s.Platform.OS, s.Platform.Architecture, p.OS,
				p.Architecture)
		}
		o.Servers = append(o.Servers, s)
	}
	return "", nil
}

func samePlatform(a, b v1.Platform) bool {
	return a.OS == b.OS && a.Architecture == b.Architecture && a.Variant == b.Variant
}
