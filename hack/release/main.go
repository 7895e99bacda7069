// Command release makes the files of a release of bindery: archives, packages, bills of materials, images, manifests
// for package managers, checksums. "make release" runs it. The same source, version, commit, date and Go give the same
// bytes on every machine, for everything but signatures.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"
)

// release is what is being made, and with what.
type release struct {
	root, dist, stage     string // the source, the output, and where the output is until it is complete
	scratch               string // removed at the end
	version, commit, date string
	time                  time.Time
	platforms             []platform
	key                   string // signs, unless empty
	push                  string // the repository that images are pushed to, unless empty
	image                 string // the repository that images are named after
	base                  string // of the debug image, unless empty
	host                  string // a bindery that runs here
	programs              map[platform]string
}

// platform is an operating system and a processor in Go's words.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

// program is the file name of the command.
func (p platform) program() string {
	if p.os == "windows" {
		return "bindery.exe"
	}
	return "bindery"
}

const allPlatforms = "linux/amd64 linux/arm64 linux/ppc64le linux/s390x darwin/amd64 darwin/arm64 windows/amd64"

// semantic is a semantic version with a "v".
var semantic = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)

func main() {
	r := &release{}
	var platforms string
	flag.StringVar(&r.root, "root", "../..", "the `DIR` of the source")
	flag.StringVar(&r.dist, "dist", "", "the `DIR` to write to")
	flag.StringVar(&r.version, "version", "", "the `VERSION`, such as v1.0.0")
	flag.StringVar(&r.commit, "commit", "", "the `COMMIT` of the source")
	flag.StringVar(&r.date, "date", "", "the `DATE` of the commit (RFC 3339), which is that of all files")
	flag.StringVar(&platforms, "platforms", allPlatforms, "the `LIST` of platforms")
	flag.StringVar(&r.key, "key", "", "the private key `FILE` to sign with; BINDERY_SIGN_PASSPHRASE has its passphrase")
	flag.StringVar(&r.push, "push", "", "push the images to `REPOSITORY`")
	flag.StringVar(&r.image, "image", "ghcr.io/operator-bindery/bindery",
		"the `REPOSITORY` that the images are named after")
	flag.StringVar(&r.base, "base", "", "the `IMAGE` with a shell that the debug image is based on")
	flag.Parse()
	if err := r.run(platforms, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func (r *release) run(platforms string, rest []string) (err error) {
	if err := r.check(platforms, rest); err != nil {
		return err
	}
	if err := os.MkdirAll(r.dist, 0o755); err != nil {
		return err
	}
	if r.scratch, err = os.MkdirTemp(r.dist, ".release-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.scratch)) }()
	r.stage = filepath.Join(r.scratch, "stage")
	if err := os.Mkdir(r.stage, 0o755); err != nil {
		return err
	}
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"programs", r.build}, {"archives", r.archives}, {"packages", r.packages}, {"bills of materials", r.sboms},
		{"images", r.images}, {"manifests", r.manifests}, {"recipes", r.recipes}, {"checksums", r.checksums},
		{"signatures", r.sign},
		{"files in their place", r.publish}, {"pushed images", r.pushImages},
	} {
		began := time.Now()
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
		fmt.Printf("%6.1fs  %s\n", time.Since(began).Seconds(), step.what)
	}
	return nil
}

// check reads the arguments.
func (r *release) check(platforms string, rest []string) (err error) {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unknown argument %q", rest[0])
	case !semantic.MatchString(r.version):
		return fmt.Errorf("version %q is not one like v1.0.0 or v1.1.0-rc.1", r.version)
	case r.dist == "":
		return errors.New("-dist is missing")
	}
	if r.time, err = time.Parse(time.RFC3339, r.date); err != nil {
		return fmt.Errorf("the date of the commit, which a source without git must be given as DATE: %w", err)
	}
	r.time = r.time.UTC()
	for _, path := range []*string{&r.root, &r.dist, &r.key} {
		if *path != "" {
			if *path, err = filepath.Abs(*path); err != nil {
				return err
			}
		}
	}
	for _, text := range strings.Fields(platforms) {
		if !strings.Contains(" "+allPlatforms+" ", " "+text+" ") {
			return fmt.Errorf("unknown platform %q, expected some of %s", text, allPlatforms)
		}
		goos, arch, _ := strings.Cut(text, "/")
		r.platforms = append(r.platforms, platform{goos, arch})
	}
	if len(r.platforms) == 0 {
		return errors.New("no platforms")
	}
	return nil
}

// name returns the name of a file for a platform, such as bindery_1.0.0_linux_amd64.tar.gz.
func (r *release) name(p platform, suffix string) string {
	return fmt.Sprintf("bindery_%s_%s_%s%s", strings.TrimPrefix(r.version, "v"), p.os, p.arch, suffix)
}

// linux returns the platforms with packages and images.
func (r *release) linux() (out []platform) {
	for _, p := range r.platforms {
		if p.os == "linux" {
			out = append(out, p)
		}
	}
	return out
}

var here = platform{runtime.GOOS, runtime.GOARCH}
