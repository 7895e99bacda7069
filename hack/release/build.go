package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const (
	tags   = "containers_image_openpgp,exclude_graphdriver_btrfs"
	module = "github.com/operator-bindery/bindery"
	// bins is where the program embeds servers from.
	bins = "build/internal/serverbin/bin"
)

// serverArches are the processors whose server is embedded in every program.
var serverArches = []string{"amd64", "arm64", "ppc64le", "s390x"}

// kept are the variables of Go that say where things are, and not what is built.
var kept = []string{"GOCACHE", "GOMODCACHE", "GOPATH", "GOPROXY", "GOSUMDB", "GONOSUMDB", "GOROOT", "GOTOOLCHAIN",
	"GOTMPDIR",
	"GOMAXPROCS"}

// environment is that of the compiler: nothing of the caller's changes what is built.
func environment(p platform) []string {
	env := []string{"CGO_ENABLED=0", "GOWORK=off", "GOENV=off", "GOFLAGS=-buildvcs=false", "GOEXPERIMENT=",
		"GOFIPS140=off", "GOAMD64=v1",
		"GOARM64=v8.0", "GOPPC64=power8", "GOOS=" + p.os, "GOARCH=" + p.arch}
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); !strings.HasPrefix(name, "GO") || slices.Contains(kept, name) {
			env = append(env, v)
		}
	}
	return env
}

// command runs a program in the source and returns its standard output.
func (r *release) command(env []string, name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	var stderr strings.Builder
	cmd.Dir, cmd.Env, cmd.Stderr = r.root, env, &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, stderr.String())
	}
	return out, nil
}

// stripped is the linker's flags of every program.
const stripped = "-s -w"

// compile builds a command of the source.
func (r *release) compile(p platform, out, command, ldflags string, more ...string) error {
	fmt.Printf("  compiling %s for %s/%s\n", command, p.os, p.arch)
	args := append([]string{"build", "-trimpath", "-ldflags", ldflags, "-o", out}, more...)
	_, err := r.command(environment(p), goTool(), append(args, command)...)
	return err
}

func goTool() string {
	if g := os.Getenv("GO"); g != "" {
		return g
	}
	return "go"
}

// build builds the programs of all platforms, with the servers in them, and one for this machine.
func (r *release) build() error {
	pack := filepath.Join(r.scratch, "serverlayer")
	if err := r.compile(here, pack, "./build/internal/serverlayer", "", "-tags="+tags); err != nil {
		return err
	}
	layers := map[string]string{} // by the name of the layer
	for _, arch := range serverArches {
		server := filepath.Join(r.scratch, "opm-server-linux-"+arch)
		// The server carries no release, nor the identity of its build, so that a new release makes the same images.
		if err := r.compile(platform{"linux", arch}, server, "./cmd/opm-server", stripped+" -buildid=",
			"-tags="+tags+",grpcnotrace"); err != nil {
			return err
		}
		for compression, prefix := range map[string]string{"gzip": "", "zstd": "zstd-"} {
			layer := prefix + filepath.Base(server) + ".layer"
			layers[layer] = filepath.Join(r.scratch, layer)
			if _, err := r.command(os.Environ(), pack, server, "linux/"+arch, compression, layers[layer]); err != nil {
				return err
			}
		}
	}
	r.programs = map[platform]string{}
	set := " -X " + module + "/internal/version."
	stamp := stripped + set + "release=" + r.version + set + "commit=" + r.commit + set + "date=" + r.date
	for _, p := range append([]platform{here}, r.platforms...) {
		if r.programs[p] != "" {
			continue
		}
		overlay, err := r.overlay(p, layers)
		if err != nil {
			return err
		}
		r.programs[p] = filepath.Join(r.scratch, p.os+"-"+p.arch, p.program())
		if err := r.compile(p, r.programs[p], "./cmd/bindery", stamp, "-tags="+tags+",embedserver", "-overlay",
			overlay); err != nil {
			return err
		}
	}
	r.host = r.programs[here]
	return nil
}

// overlay writes the file that puts layers where the program embeds them from, without a change of the source: all
// servers as gzip, that of the program's own processor as zstd too. Layers that lie there are left out.
func (r *release) overlay(p platform, layers map[string]string) (string, error) {
	replace := map[string]string{}
	lying, err := filepath.Glob(filepath.Join(r.root, bins, "*"))
	if err != nil {
		return "", err
	}
	for _, file := range lying {
		replace[file] = ""
	}
	for name, file := range layers {
		if !strings.HasPrefix(name, "zstd-") || strings.HasSuffix(name, "-"+p.arch+".layer") {
			replace[filepath.Join(r.root, bins, name)] = file
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	file := filepath.Join(r.scratch, "overlay-"+p.os+"-"+p.arch+".json")
	return file, os.WriteFile(file, text, 0o644)
}
