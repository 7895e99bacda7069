package option

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"go.podman.io/image/v5/docker/reference"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/library"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/redact"
)

// Destination is where an image goes, and who signs it.
type Destination struct {
	Tags, To   cli.StringSlice
	Push, Load bool
	IfDigest   string
	Signing
}

// Flags are the flags of every command that writes images.
func (o *Destination) Flags() []cli.Flag {
	const group = "destination"
	return append([]cli.Flag{
		&cli.StringSliceFlag{Name: "tag", Aliases: []string{"t"},
			Usage: "image `NAME` in the form REGISTRY/REPOSITORY:TAG", Category: group, Destination: &o.Tags},
		&cli.BoolFlag{Name: "push", Usage: "push the image to the registry of each name", Category: group,
			Destination: &o.Push},
		&cli.BoolFlag{Name: "load",
			Usage:    "write the image to the storage of podman, buildah and CRI-O under each name",
			Category: group, Destination: &o.Load},
		&cli.StringFlag{Name: "if-digest",
			Usage:    "push only if the tag currently resolves to `DIGEST`, or with \"none\" only if it does not exist",
			Category: group, Destination: &o.IfDigest},
		&cli.StringSliceFlag{Name: "to", Aliases: []string{"output"},
			Usage: "write the image to `TRANSPORT:PATH`: " + program.OutputTransports(), Category: group, Destination: &o.To},
	}, o.Signing.Flags()...)
}

// Target has the names and the destinations of the image.
type Target struct {
	Names        []string
	Destinations []transport.Destination
}

// target reads the flags. Without --push, --load and --to the image goes to an OCI layout in the working directory.
func (o *Destination) target() (Target, error) {
	outputs, err := cmdline.List(o.To.Value())
	if err != nil {
		return Target{}, err
	}
	return o.TargetOf(outputs)
}

// TargetOf is like target with these values in place of --to.
func (o *Destination) TargetOf(outputs []string) (Target, error) {
	var t Target
	var err error
	if t.Names, err = cmdline.List(o.Tags.Value()); err != nil {
		return t, err
	}
	if len(t.Names) == 0 && (len(outputs) == 0 || o.Push || o.Load) {
		e := cmdline.Usagef("required flag(s) \"tag\" not set")
		e.Hint = "name the image with -t NAME"
		return t, e
	}
	for i, name := range t.Names {
		if t.Names[i], err = CheckName(name); err != nil {
			return t, err
		}
		if o.Push {
			outputs = append(outputs, "docker://"+t.Names[i])
		}
		if o.Load {
			outputs = append(outputs, library.InStore(t.Names[i]).String())
		}
	}
	if len(outputs) == 0 {
		for _, name := range t.Names {
			_, tag := SplitName(name)
			outputs = append(outputs, "oci:"+LayoutName(name)+":"+tag)
		}
	}
	seen := map[string]bool{}
	for _, text := range outputs {
		d, err := program.Transports.Parse(text)
		if err != nil {
			return t, &cmdline.Error{Class: cmdline.ClassUsage, Object: text,
				Err: fmt.Errorf("--to %q: %w", text, err)}
		}
		if err := CheckRegistry(d); err != nil {
			return t, err
		}
		for _, d := range t.WithNames(d) {
			if !seen[d.String()] {
				seen[d.String()] = true
				t.Destinations = append(t.Destinations, d)
			}
		}
	}
	return t, t.checkIfDigest(o.IfDigest)
}

// CheckRegistry refuses a destination without a registry host: the library would default to docker.io.
func CheckRegistry(d transport.Destination) error {
	if !d.InRegistry() {
		return nil
	}
	host, _, ok := strings.Cut(d.Name, "/")
	if ok && (strings.ContainsAny(host, ".:") || host == "localhost") {
		return nil
	}
	e := cmdline.Usagef("%q names no registry to push to", d.Name)
	e.Hint = fmt.Sprintf("include the registry, as in registry.example.com/%s or docker.io/%[1]s", d.Name)
	return e
}

// checkIfDigest refuses an invalid --if-digest condition.
func (t Target) checkIfDigest(text string) error {
	if text == "" {
		return nil
	}
	if err := images.CheckIfDigest(text); err != nil {
		return cmdline.Usagef("invalid --if-digest value %.200q, expected sha256:... or none", text)
	}
	if !slices.ContainsFunc(t.Destinations, transport.Destination.InRegistry) {
		return cmdline.Usagef("--if-digest requires --push or --to docker://NAME")
	}
	return nil
}

// WithNames adds the image's names to a local destination without a name: all of them to a layout, the first one to an
// archive.
func (t Target) WithNames(d transport.Destination) []transport.Destination {
	row := program.Transports.Row(d.Transport)
	if d.Name != "" || len(t.Names) == 0 || row.NameOf == nil {
		return []transport.Destination{d}
	}
	var out []transport.Destination
	for _, name := range t.Names {
		d.Name = row.NameOf(name)
		if out = append(out, d); !row.Many {
			break
		}
	}
	return out
}

var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/-]*$`)

// CheckName refuses invalid image names and adds the tag "latest" if there is none.
func CheckName(name string) (string, error) {
	name = strings.TrimPrefix(name, "docker://")
	repository, tag := SplitName(name)
	if strings.Contains(name, "@") {
		return "", cmdline.Usagef("--tag %q: a name with a digest cannot be built", redact.Text(name))
	}
	if !namePattern.MatchString(name) || strings.Contains(name, "//") || strings.HasSuffix(repository, "/") ||
		tag == "" {
		return "", cmdline.Usagef("--tag %q: invalid image name, expected REGISTRY/REPOSITORY:TAG", redact.Text(name))
	}
	// Other programs and registries must accept the name too.
	if _, err := reference.ParseNormalizedNamed(repository + ":" + tag); err != nil {
		return "", cmdline.Usagef("--tag %q: invalid image name, expected REGISTRY/REPOSITORY:TAG: %w", name, err)
	}
	return repository + ":" + tag, nil
}

// SplitName splits REPOSITORY:TAG; the tag is "latest" where there is none.
func SplitName(name string) (repository, tag string) {
	if i := strings.LastIndex(name, ":"); i > strings.LastIndex(name, "/") {
		return name[:i], name[i+1:]
	}
	return name, "latest"
}

// LayoutName returns the directory of the OCI layout of an image: the last element of its repository plus an extension,
// because the catalog's directory often has the same name.
func LayoutName(name string) string {
	repository, _ := SplitName(name)
	return path.Base(repository) + ".oci"
}

// WithOutputHint adds to an error about a read-only working directory how to write elsewhere.
func (o *Destination) WithOutputHint(err error) error {
	if !errors.Is(err, fs.ErrPermission) || len(o.To.Value()) > 0 || o.Push || o.Load {
		return err
	}
	return &cmdline.Error{Class: cmdline.ClassLocal,
		Hint: "without --push, --load and --to the image is written to the working directory", Err: err}
}

// References returns the image's names with its digest, or the digest alone if it has none.
func (t Target) References(image *build.Image, results []images.Result) []string {
	d := image.Digest
	var refs []string
	for _, name := range t.Names {
		repository, _ := SplitName(name)
		refs = append(refs, repository+"@"+d.String())
	}
	for _, r := range results {
		// Only registries can find an image by digest; an image without a name is reported by its digest alone.
		if len(t.Names) == 0 && strings.Contains(r.Reference, "@") {
			refs = append(refs, r.Reference)
		}
	}
	if len(refs) == 0 {
		refs = []string{d.String()}
	}
	return refs
}
