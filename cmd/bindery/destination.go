package main

import (
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"go.podman.io/image/v5/docker/reference"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/internal/redact"
)

// destinationFlags say where an image goes. They mean the same in every command that writes images.
func destinationFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "tag", Aliases: []string{"t"}, Usage: "`NAME` of the image, as REGISTRY/REPOSITORY:TAG", Category: "where to"},
		&cli.BoolFlag{Name: "push", Usage: "write it to the registry of each name", Category: "where to"},
		&cli.BoolFlag{Name: "load", Usage: "write it to the store of podman, buildah and CRI-O under each name", Category: "where to"},
		&cli.StringFlag{Name: "if-digest", Usage: "write to a registry only if the name stands for `DIGEST` there until then, or for no image at all (DIGEST|none)", Category: "where to"},
		&cli.StringSliceFlag{Name: "output", Usage: "write it to `TRANSPORT:PATH`: oci:, oci-archive:, docker-archive:, dir:, docker://, containers-storage:", Category: "where to"},
	}
}

// registryFlags say how to talk to registries.
func registryFlags() []cli.Flag {
	const group = "registry"
	return []cli.Flag{
		&cli.StringFlag{Name: "authfile", Usage: "`FILE` with credentials (default $REGISTRY_AUTH_FILE and the places of podman and docker)", EnvVars: env("authfile"), Category: group},
		&cli.BoolFlag{Name: "tls-verify", Value: true, Usage: "verify certificates; --tls-verify=false does not", EnvVars: env("tls-verify"), Category: group},
		&cli.StringFlag{Name: "ca-file", Usage: "`FILE` with further certificate authorities", EnvVars: env("ca-file"), Category: group},
		&cli.StringFlag{Name: "cert-dir", Usage: "`DIR` with *.crt, *.cert and *.key files", EnvVars: env("cert-dir"), Category: group},
		&cli.StringFlag{Name: "registries-conf", Usage: "`FILE` in place of the system's registries.conf", EnvVars: env("registries-conf"), Category: group},
		&cli.StringFlag{Name: "policy", Usage: "`FILE` in place of the system's policy.json; images that it does not accept are refused", EnvVars: env("policy"), Category: group},
		&cli.IntFlag{Name: "retries", Value: 3, Usage: "try a busy or failing registry `N` more times", EnvVars: env("retries"), Category: group},
		&cli.DurationFlag{Name: "timeout", Usage: "`DURATION` after which fetching and copying end, such as 10m; 0 means never", EnvVars: env("timeout"), Category: group},
	}
}

// target is what the image is called and where it goes.
type target struct {
	names        []string
	destinations []images.Destination
}

// readTarget reads [destinationFlags]. Without --push, --load and --output the image goes to an OCI layout in the working
// directory.
func readTarget(c *cli.Context) (target, error) {
	outputs, err := cmdline.List(c.StringSlice("output"))
	if err != nil {
		return target{}, err
	}
	return readTargetOf(c, outputs)
}

// readTargetOf is [readTarget] with the destinations of --output.
func readTargetOf(c *cli.Context, outputs []string) (target, error) {
	var t target
	var err error
	if t.names, err = cmdline.List(c.StringSlice("tag")); err != nil {
		return t, err
	}
	if len(t.names) == 0 && (len(outputs) == 0 || c.Bool("push") || c.Bool("load")) {
		e := cmdline.Usagef("required flag(s) \"tag\" not set")
		e.Hint = "name the image with -t NAME"
		return t, e
	}
	for i, name := range t.names {
		if t.names[i], err = checkName(name); err != nil {
			return t, err
		}
		if c.Bool("push") {
			outputs = append(outputs, "docker://"+t.names[i])
		}
		if c.Bool("load") {
			outputs = append(outputs, images.InStore(t.names[i]).String())
		}
	}
	if len(outputs) == 0 {
		for _, name := range t.names {
			_, tag := splitName(name)
			outputs = append(outputs, "oci:"+layoutName(name)+":"+tag)
		}
	}
	seen := map[string]bool{}
	for _, text := range outputs {
		d, err := images.Parse(text)
		if err != nil {
			return t, &cmdline.Error{Class: cmdline.ClassUsage, Object: text, Err: fmt.Errorf("--output %q: %w", text, err)}
		}
		if err := checkRegistry(d); err != nil {
			return t, err
		}
		for _, d := range t.withNames(d) {
			if !seen[d.String()] {
				seen[d.String()] = true
				t.destinations = append(t.destinations, d)
			}
		}
	}
	return t, t.checkIfDigest(c.String("if-digest"))
}

// checkRegistry refuses a name in a registry that does not say which: the library would take docker.io for it.
func checkRegistry(d images.Destination) error {
	if d.Transport != images.Docker {
		return nil
	}
	host, _, ok := strings.Cut(d.Name, "/")
	if ok && (strings.ContainsAny(host, ".:") || host == "localhost") {
		return nil
	}
	e := cmdline.Usagef("%q names no registry to push to", d.Name)
	e.Hint = fmt.Sprintf("name the registry, as in registry.example.com/%s, or docker.io/%[1]s if that is meant", d.Name)
	return e
}

// checkIfDigest refuses a condition that cannot be meant.
func (t target) checkIfDigest(text string) error {
	if text == "" {
		return nil
	}
	if err := images.CheckIfDigest(text); err != nil {
		return cmdline.Usagef("invalid --if-digest value %.200q, expected sha256:... or none", text)
	}
	if !slices.ContainsFunc(t.destinations, func(d images.Destination) bool { return d.Transport == images.Docker }) {
		return cmdline.Usagef("--if-digest is for registries: give --push, or --output docker://NAME")
	}
	return nil
}

// withNames gives a local destination that says no name the image's own: a layout can hold all of them, an archive the
// first.
func (t target) withNames(d images.Destination) []images.Destination {
	if d.Name != "" || len(t.names) == 0 || d.Transport == images.Directory {
		return []images.Destination{d}
	}
	switch d.Transport {
	case images.DockerArchive:
		d.Name = t.names[0]
	case images.OCIArchive:
		_, d.Name = splitName(t.names[0])
	case images.OCI:
		var out []images.Destination
		for _, name := range t.names {
			_, d.Name = splitName(name)
			out = append(out, d)
		}
		return out
	}
	return []images.Destination{d}
}

var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/-]*$`)

// checkName refuses what cannot be the name of an image, and adds the tag "latest" where there is none.
func checkName(name string) (string, error) {
	name = strings.TrimPrefix(name, "docker://")
	repository, tag := splitName(name)
	if strings.Contains(name, "@") {
		return "", cmdline.Usagef("--tag %q: the digest of an image that is to be built is not known", redact.Text(name))
	}
	if !namePattern.MatchString(name) || strings.Contains(name, "//") || strings.HasSuffix(repository, "/") || tag == "" {
		return "", cmdline.Usagef("--tag %q: invalid image name, expected REGISTRY/REPOSITORY:TAG", redact.Text(name))
	}
	// What no registry and no other program would take is not a name of the image.
	if _, err := reference.ParseNormalizedNamed(repository + ":" + tag); err != nil {
		return "", cmdline.Usagef("--tag %q: invalid image name, expected REGISTRY/REPOSITORY:TAG: %w", name, err)
	}
	return repository + ":" + tag, nil
}

// splitName takes REPOSITORY:TAG apart; the tag is "latest" where there is none.
func splitName(name string) (repository, tag string) {
	if i := strings.LastIndex(name, ":"); i > strings.LastIndex(name, "/") {
		return name[:i], name[i+1:]
	}
	return name, "latest"
}

// layoutName is the directory of the OCI layout of an image: the last element of its repository, with an ending of its
// own because the catalog's directory often has the same name.
func layoutName(name string) string {
	repository, _ := splitName(name)
	return path.Base(repository) + ".oci"
}

// registryOptions reads [registryFlags] and opm's flags of the same meaning.
func registryOptions(c *cli.Context) images.Registry {
	r := images.Registry{
		AuthFile: c.String("authfile"), CertDir: c.String("cert-dir"), CAFile: c.String("ca-file"),
		RegistriesConf: c.String("registries-conf"), UserAgent: "bindery/" + strings.TrimPrefix(c.App.Version, "v"),
	}
	if c.IsSet("tls-verify") || c.Bool("skip-tls-verify") || c.Bool("use-http") || c.Bool("skip-tls") {
		skip := !c.Bool("tls-verify") || c.Bool("skip-tls-verify") || c.Bool("use-http") || c.Bool("skip-tls")
		r.SkipTLSVerify = &skip
		r.PlainHTTP = c.Bool("use-http") || c.Bool("skip-tls")
	}
	return r.Env(os.Getenv)
}
