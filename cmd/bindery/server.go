package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/internal/serverbin"
	"github.com/operator-bindery/bindery/layers"
)

// platforms reads --platform.
func platforms(c *cli.Context) ([]v1.Platform, error) {
	list, err := cmdline.List(c.StringSlice("platform"))
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return []v1.Platform{{OS: "linux", Architecture: runtime.GOARCH}}, nil
	}
	var out []v1.Platform
	for _, text := range list {
		p, err := parsePlatform(text)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

func parsePlatform(text string) (v1.Platform, error) {
	parts := strings.Split(text, "/")
	if len(parts) < 2 || len(parts) > 3 || parts[0] != "linux" || parts[1] == "" {
		return v1.Platform{}, cmdline.Usagef("invalid --platform value %q, expected linux/ARCH or linux/ARCH/VARIANT", text)
	}
	p := v1.Platform{OS: parts[0], Architecture: parts[1]}
	if len(parts) == 3 {
		p.Variant = parts[2]
	}
	return p, nil
}

// servers are the programs that serve the catalog in the image, one for each platform.
func (p *program) servers(c *cli.Context, of []v1.Platform) ([]build.Server, error) {
	switch file := c.String("server"); {
	case file == "none":
		if len(of) > 1 {
			return nil, cmdline.Usagef("--server none is for an image of one platform")
		}
		return nil, nil
	case file != "":
		if len(of) > 1 {
			return nil, cmdline.Usagef("--server is for an image of one platform")
		}
		s, err := build.ServerFile(file, of[0])
		return []build.Server{s}, err
	}
	var out []build.Server
	for _, platform := range of {
		s, err := p.embeddedServer(platform)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// embeddedServer is this program's server for a platform. It is looked for once, and safe for concurrent use.
func (p *program) embeddedServer(platform v1.Platform) (build.Server, error) {
	p.embeddedLock.Lock()
	defer p.embeddedLock.Unlock()
	key := platform.OS + "/" + platform.Architecture + "/" + platform.Variant
	if s, ok := p.embedded[key]; ok {
		return s, nil
	}
	s, err := p.findServer(platform)
	if err == nil {
		if p.embedded == nil {
			p.embedded = map[string]build.Server{}
		}
		p.embedded[key] = s
	}
	return s, err
}

func (p *program) findServer(platform v1.Platform) (build.Server, error) {
	found, err := serverbin.Find(platform.OS, platform.Architecture)
	if err != nil {
		return build.Server{}, &cmdline.Error{Class: cmdline.ClassUsage, Object: platform.Architecture, Err: err}
	}
	if found.Self {
		p.log.Warn("this program was built without the small server and puts itself into the image in its place; \"make build\" builds it with the server")
		path, err := os.Executable()
		if err != nil {
			return build.Server{}, fmt.Errorf("find this program: %w", err)
		}
		return build.ServerFile(path, platform)
	}
	l := found.Layer
	s, err := build.ServerStream(found.Open, l.ProgramSize, platform)
	if err != nil {
		return s, err
	}
	s = s.WithDigest(l.Program).WithLayer(writtenLayer(l, layers.Gzip), found.OpenLayer)
	if found.Zstd != nil {
		s = s.WithLayer(writtenLayer(found.Zstd, layers.Zstd), found.OpenZstd)
	}
	return s, nil
}

func writtenLayer(l *serverbin.Layer, c layers.Compression) layers.Blob {
	return layers.Blob{Digest: l.Digest, DiffID: l.DiffID, Size: l.Size, Uncompressed: l.Uncompressed, Compression: c}
}
