package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// recipePaths are the recipes for CI systems in the source.
var recipePaths = []string{"action.yml", "deploy", "templates"}

// recipeSums is a list of archives with their checksums, for the action of GitHub.
const recipeSums = "deploy/github/checksums.txt"

// zeros stands for a digest that is not known.
var zeros = strings.Repeat("0", 64)

var (
	imagePin     = regexp.MustCompile(`ghcr\.io/operator-bindery/bindery:v([^@\s]+)@sha256:[0-9a-f]{64}`)
	actionPin    = regexp.MustCompile(`operator-bindery/bindery@([0-9a-f]{40}) # v\S+`)
	componentPin = regexp.MustCompile(`operator-bindery/bindery/([a-z]+)@v[0-9][^\s"]*`)
	withVersion  = regexp.MustCompile(`(?m)^( +version: )v[0-9]\S*( *\n +checksum: )[0-9a-f]{64}`)
	inputDefault = regexp.MustCompile(`(?m)^(    default: )v[0-9]\S*$`)
)

// recipes writes an archive with the recipes, in which versions, digests of images and checksums of archives are those
// of this release, whichever they are in the source. What this release does not have is named by zeros: the commit of
// the action, which the commit of a tag cannot hold, and images and platforms that are not made.
func (r *release) recipes() error {
	digests, err := r.imageDigests()
	if err != nil {
		return err
	}
	sums, amd64, err := r.archiveSums()
	if err != nil {
		return err
	}
	var members []file
	for _, top := range recipePaths {
		err := filepath.WalkDir(filepath.Join(r.root, top), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), ".") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			name, err := filepath.Rel(r.root, path)
			if err != nil {
				return err
			}
			f := file{name: filepath.ToSlash(name), mode: 0o644, text: []byte(r.pin(string(text), digests, amd64))}
			switch {
			case f.name == recipeSums:
				f.text = []byte(sums)
			case f.name == "action.yml":
				f.text = inputDefault.ReplaceAll(f.text, []byte("${1}"+r.version))
			case strings.HasSuffix(f.name, ".sh"):
				f.mode = 0o755
			}
			members = append(members, f)
			return nil
		})
		if err != nil {
			return err
		}
	}
	name := fmt.Sprintf("bindery_%s_recipes.tar.gz", strings.TrimPrefix(r.version, "v"))
	return create(filepath.Join(r.stage, name), func(w io.Writer) error { return r.tarGz(w, members) })
}

// pin puts this release in the place of another one in a recipe.
func (r *release) pin(text string, digests map[string]string, checksum string) string {
	text = imagePin.ReplaceAllStringFunc(text, func(pin string) string {
		tag := r.version
		if strings.HasSuffix(imagePin.FindStringSubmatch(pin)[1], "-debug") {
			tag += "-debug"
		}
		digest := digests[tag]
		if digest == "" {
			digest = "sha256:" + zeros
		}
		return r.image + ":" + tag + "@" + digest
	})
	text = actionPin.ReplaceAllString(text, "operator-bindery/bindery@"+zeros[:40]+" # "+r.version)
	text = componentPin.ReplaceAllString(text, "operator-bindery/bindery/${1}@"+r.version)
	return withVersion.ReplaceAllString(text, "${1}"+r.version+"${2}"+checksum)
}

// imageDigests are the digests of the images of this release by their tags.
func (r *release) imageDigests() (map[string]string, error) {
	text, err := os.ReadFile(filepath.Join(r.stage, imageNames))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	digests := map[string]string{}
	for _, line := range strings.Fields(string(text)) {
		name, digest, _ := strings.Cut(line, "@")
		digests[name[strings.LastIndex(name, ":")+1:]] = digest
	}
	return digests, err
}

// archiveSums is the list of archives that the action installs, and the checksum of the one for the usual runner.
func (r *release) archiveSums() (list, amd64 string, err error) {
	made := map[platform]bool{}
	for _, p := range r.platforms {
		made[p] = true
	}
	for _, p := range []platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"},
		{"windows", "amd64"}} {
		name, sum := r.name(p, ".tar.gz"), zeros
		if p.os == "windows" {
			name = r.name(p, ".zip")
		}
		if made[p] {
			if sum, err = sha256File(filepath.Join(r.stage, name)); err != nil {
				return "", "", err
			}
		}
		if amd64 == "" {
			amd64 = sum
		}
		list += sum + "  " + name + "\n"
	}
	return list, amd64, nil
}
