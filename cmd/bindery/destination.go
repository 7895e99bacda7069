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
	"github.com/operator-bindery/bindery/images/library"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/redact"
)

// destinationFlags are the flags for the destinations of an image. They are the same in every command that writes
// images.
func destinationFlags() []cli.Flag {
	return append([]cli.Flag{
		&cli.StringSliceFlag{Name: "tag", Aliases: []string{"t"},
			Usage: "image `NAME` in the form REGISTRY/REPOSITORY:TAG", Category: "destination"},
		&cli.BoolFlag{Name: "push", Usage: "push the image to the registry of each name", Category: "destination"},
		&cli.BoolFlag{Name: "load",
			Usage:    "write the image to the storage of podman, buildah and CRI-O under each name",
			Category: "destination"},
		&cli.StringFlag{Name: "if-digest",
			Usage:    "push only if the tag currently resolves to `DIGEST`, or with \"none\" only if it does not exist",
			Category: "destination"},
		&cli.StringSliceFlag{Name: "output",
			Usage: "write the image to `TRANSPORT:PATH`: " + outputTransports(), Category: "destination"},
	}, signFlags()...)
}

// registryFlags are the flags for registry access.
func registryFlags() []cli.Flag {
	const group = "registry"
	return []cli.Flag{
		&cli.StringFlag{Name: "authfile",
			Usage:   "credentials `FILE` (default $REGISTRY_AUTH_FILE and the locations of podman and docker)",
			EnvVars: env("authfile"), Category: group},
		&cli.BoolFlag{Name: "tls-verify", Value: true, Usage: "verify the certificates of registries; =false accepts any",
			EnvVars: env("tls-verify"), Category: group},
		&cli.StringFlag{Name: "ca-file", Usage: "`FILE` with additional certificate authorities",
			EnvVars: env("ca-file"), Category: group},
		&cli.StringFlag{Name: "cert-dir", Usage: "certificate `DIR` with *.crt, *.cert and *.key files",
			EnvVars: env("cert-dir"), Category: group},
		&cli.StringFlag{Name: "registries-conf", Usage: "registries.conf `FILE` (default the system's)",
			EnvVars: env("registries-conf"), Category: group},
		&cli.StringFlag{Name: "policy", Usage: "signature policy `FILE` (default the system's policy.json)",
			EnvVars: env("policy"), Category: group},
		&cli.StringFlag{Name: "registries-d",
			Usage:   "`DIR` with files that say where signatures are (default the system's registries.d)",
			EnvVars: env("registries-d"), Category: group},
		&cli.BoolFlag{Name: "require-signed",
			Usage:   "refuse every image that the signature policy accepts without a signature",
			EnvVars: env("require-signed"), Category: group},
		&cli.StringSliceFlag{Name: "trusted-key",
			Usage: "refuse every image that no key in `FILE` has signed, in place of what the policy requires; " +
				"can be repeated", EnvVars: env("trusted-key"), Category: group},
		&cli.IntFlag{Name: "retries", Value: 3, Usage: "retry failed registry requests up to `N` times",
			EnvVars: env("retries"), Category: group},
		&cli.DurationFlag{Name: "timeout",
			Usage: "stop fetching and copying after `DURATION`, such as 10m; 0 means never", EnvVars: env("timeout"),
			Category: group},
	}
}

// writeFlags are [registryFlags] for commands that only write beside an image: the policy is about images that are read.
func writeFlags() []cli.Flag { return withoutPolicy(registryFlags()) }

// withoutPolicy leaves out the flags about the policy, for commands that use no content of an image.
func withoutPolicy(flags []cli.Flag) []cli.Flag {
	return slices.DeleteFunc(flags, func(f cli.Flag) bool {
		return slices.Contains([]string{"policy", "registries-d", "require-signed", "trusted-key"}, f.Names()[0])
	})
}

// target has the names and the destinations of the image.
type target struct {
	names        []string
	destinations []transport.Destination
}

// readTarget reads [destinationFlags]. Without --push, --load and --output the image goes to an OCI layout in the
// working directory.
func readTarget(c *cli.Context) (target, error) {
	outputs, err := cmdline.List(c.StringSlice("output"))
	if err != nil {
		return target{}, err
	}
	return readTargetOf(c, outputs)
}

// readTargetOf is [readTarget] with these values in place of --output.
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
			outputs = append(outputs, library.InStore(t.names[i]).String())
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
		d, err := transports.Parse(text)
		if err != nil {
			return t, &cmdline.Error{Class: cmdline.ClassUsage, Object: text,
				Err: fmt.Errorf("--output %q: %w", text, err)}
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

// checkRegistry refuses a destination without a registry host: the library would default to docker.io.
func checkRegistry(d transport.Destination) error {
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
func (t target) checkIfDigest(text string) error {
	if text == "" {
		return nil
	}
	if err := images.CheckIfDigest(text); err != nil {
		return cmdline.Usagef("invalid --if-digest value %.200q, expected sha256:... or none", text)
	}
	if !slices.ContainsFunc(t.destinations, transport.Destination.InRegistry) {
		return cmdline.Usagef("--if-digest requires --push or --output docker://NAME")
	}
	return nil
}

// withNames adds the image's names to a local destination without a name: all of them to a layout, the first one to an
// archive.
func (t target) withNames(d transport.Destination) []transport.Destination {
	row := transports.Row(d.Transport)
	if d.Name != "" || len(t.names) == 0 || row.NameOf == nil {
		return []transport.Destination{d}
	}
	var out []transport.Destination
	for _, name := range t.names {
		d.Name = row.NameOf(name)
		if out = append(out, d); !row.Many {
			break
		}
	}
	return out
}

var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/-]*$`)

// checkName refuses invalid image names and adds the tag "latest" if there is none.
func checkName(name string) (string, error) {
	name = strings.TrimPrefix(name, "docker://")
	repository, tag := splitName(name)
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

// splitName splits REPOSITORY:TAG; the tag is "latest" where there is none.
func splitName(name string) (repository, tag string) {
	if i := strings.LastIndex(name, ":"); i > strings.LastIndex(name, "/") {
		return name[:i], name[i+1:]
	}
	return name, "latest"
}

// layoutName returns the directory of the OCI layout of an image: the last element of its repository plus an extension,
// because the catalog's directory often has the same name.
func layoutName(name string) string {
	repository, _ := splitName(name)
	return path.Base(repository) + ".oci"
}

// registryOptions reads [registryFlags] and opm's equivalent flags. Under opm's name plain HTTP means that no certificate
// is verified, too.
func registryOptions(c *cli.Context) registries.Config {
	r := registries.Config{
		AuthFile: c.String("authfile"), CertDir: c.String("cert-dir"), CAFile: c.String("ca-file"),
		RegistriesConf: c.String("registries-conf"), RegistriesDir: c.String("registries-d"),
		UserAgent: "bindery/" + strings.TrimPrefix(c.App.Version, "v"),
	}
	r.PlainHTTP = c.Bool("use-http") || c.Bool("skip-tls")
	if skip := c.Bool("skip-tls-verify") || r.PlainHTTP && c.App.Name == opmName; skip || c.IsSet("tls-verify") {
		skip = skip || !c.Bool("tls-verify")
		r.SkipTLSVerify = &skip
	}
	return r.Env(os.Getenv)
}
