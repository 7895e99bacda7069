package mirror

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/internal/regularfile"
	"github.com/operator-bindery/bindery/internal/version"
	"github.com/operator-bindery/bindery/internal/webclient"
	"github.com/operator-bindery/bindery/mirror"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/releases/signed"
)

// releaseGroup is how help calls the flags.
const releaseGroup = "releases"

// ChooseFlags say which releases are chosen.
func (o *SetOptions) ChooseFlags() []cli.Flag {
	return []cli.Flag{
		o.CrossChannelFlag(),
		&cli.StringFlag{Name: "update-url", Destination: &o.Request.Releases.UpdateURL, EnvVars: []string{"UPDATE_URL_OVERRIDE"}, Category: releaseGroup,
			Usage: "`URL` of the graph server of OpenShift, or file://DIR with ARCHITECTURE-CHANNEL.json", DefaultText: "the vendor's"},
	}
}

// CrossChannelFlag returns --cross-channel, which commands need that choose again what a run has chosen.
func (o *SetOptions) CrossChannelFlag() cli.Flag {
	return &cli.StringFlag{Name: "cross-channel", Destination: &o.crossChannel, Value: "path", Category: releaseGroup,
		Usage: "also take the releases on the way between several channels, or those of the channels alone (path|none)"}
}

// verifyFlags say which signatures of releases are good.
func (o *SetOptions) verifyFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "release-key", Destination: &o.key, EnvVars: []string{"OCP_SIGNATURE_VERIFICATION_PK"}, Category: releaseGroup,
			Usage: "armored OpenPGP keys in `FILE` that sign releases, in place of the vendor's"},
		&cli.StringSliceFlag{Name: "release-source", Destination: &o.sources, Category: releaseGroup,
			Usage: "also accept signatures for releases in the repository `HOST/PATH`; can be repeated"},
		&cli.BoolFlag{Name: "allow-expired-release-signature", Destination: &o.Request.Releases.Signatures.AllowExpired, Category: releaseGroup,
			Usage: "accept signatures and keys that have expired"},
	}
}

// ReleaseFlags are those of commands that mirror releases.
func (o *SetOptions) ReleaseFlags() []cli.Flag {
	return program.Flags(o.ChooseFlags(), []cli.Flag{
		&cli.StringFlag{Name: "release-signature-url", Destination: &o.Request.Releases.Signatures.URL, EnvVars: []string{"OCP_SIGNATURE_URL"},
			Category: releaseGroup, Usage: "`URL` below which signatures of releases are", DefaultText: "the vendor's"},
	}, o.verifyFlags(), []cli.Flag{
		o.UnsignedFlag(false),
		&cli.StringFlag{Name: "graph-data", Destination: &o.Request.Releases.GraphData, Category: releaseGroup, DefaultText: "the vendor's",
			Usage: "archive for the graph image (graph: true): `URL` or file"},
		&cli.StringFlag{Name: "graph-base", Destination: &o.Request.Releases.GraphBase, Category: releaseGroup, DefaultText: "the vendor's",
			Usage: "`IMAGE` that the graph image stands on"},
		&cli.BoolFlag{Name: "pin-graph", Destination: &o.Request.Releases.PinGraph, Category: releaseGroup, Usage: "name the graph image by digest"},
		&cli.BoolFlag{Name: "pin-releases", Destination: &o.Request.Releases.Pin, Category: releaseGroup,
			Usage: "write the version that a channel has given into the pinned image set"},
	})
}

// UnsignedFlag returns --ignore-release-signature.
func (o *SetOptions) UnsignedFlag(hidden bool) cli.Flag {
	return &cli.BoolFlag{Name: "ignore-release-signature", Destination: &o.Request.Releases.Unsigned, Category: releaseGroup, Hidden: hidden,
		Usage: "mirror the release that platform.release names without a signature, such as a nightly one"}
}

// newWebClient returns a client of servers that need no credentials.
func newWebClient(ctx context.Context, at *option.Registry, skipTLSVerify bool) (*webclient.Client, error) {
	return webclient.NewClient(ctx, webclient.Options{CAFile: at.Given.Registry.CAFile, Retries: at.Given.Retries,
		SkipTLSVerify: skipTLSVerify, UserAgent: "bindery/" + strings.TrimPrefix(version.Release(), "v")})
}

// Releases completes what the flags say of releases. The servers are reached as a registry is.
func (o *SetOptions) Releases(ctx context.Context, at *option.Registry) (out mirror.ReleaseOptions, err error) {
	out = o.Request.Releases
	out.NoCrossChannel = o.crossChannel == "none"
	if v := o.crossChannel; v != "" && v != "path" && v != "none" {
		return out, cmdline.Usagef("invalid --cross-channel value %q, expected (path|none)", v)
	}
	if base := out.GraphBase; base != "" {
		ref, err := imageset.ParseRef(base, "oci-archive", "docker-archive", "dir", "containers-storage")
		var none *imageset.NoRegistryError
		if err == nil && errors.As(ref.CheckRegistry(), &none) {
			return out, &cmdline.Error{Class: cmdline.ClassUsage, Object: base, Hint: none.Fix(), Err: fmt.Errorf("--graph-base: %w", none)}
		}
	}
	if out.Client, err = newWebClient(ctx, at, false); err != nil {
		return out, err
	}
	if o.key != "" {
		text, err := regularfile.ReadNamed(ctx, o.key, 1<<20)
		if err == nil {
			out.Signatures.Keys, err = signed.ReadKeys(text)
		}
		if err != nil {
			return out, &cmdline.Error{Class: cmdline.Classify(err), Object: o.key, Err: fmt.Errorf("--release-key %s: %w", o.key, err)}
		}
	}
	for _, text := range o.sources.Value() {
		at, err := imageset.ParseTarget(text)
		if err != nil || at.Path == "" {
			return out, cmdline.Usagef("invalid --release-source value %q, expected HOST/PATH of a repository", text)
		}
		out.Signatures.Sources = append(out.Signatures.Sources, at)
	}
	if text := os.Getenv("VERSION_FILTER"); text != "" {
		if out.VersionFilter, err = regexp.Compile(text); err != nil {
			return out, cmdline.Usagef("invalid VERSION_FILTER: %v", err)
		}
	}
	return out, nil
}
