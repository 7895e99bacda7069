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

// Releases are the flags about releases of OpenShift and OKD.
type Releases struct {
	updateURL, signatureURL, key, crossChannel, graphData, graphBase string
	sources                                                          cli.StringSlice
	allowExpired, unsigned, pin, pinGraph                            bool
}

// releaseGroup is how help calls the flags.
const releaseGroup = "releases"

// ChooseFlags say which releases are chosen.
func (o *Releases) ChooseFlags() []cli.Flag {
	return []cli.Flag{
		o.CrossChannelFlag(),
		&cli.StringFlag{Name: "update-url", Destination: &o.updateURL, EnvVars: []string{"UPDATE_URL_OVERRIDE"}, Category: releaseGroup,
			Usage: "`URL` of the graph server of OpenShift, or file://DIR with ARCHITECTURE-CHANNEL.json", DefaultText: "the vendor's"},
	}
}

// CrossChannelFlag returns --cross-channel, which commands need that choose again what a run has chosen.
func (o *Releases) CrossChannelFlag() cli.Flag {
	return &cli.StringFlag{Name: "cross-channel", Destination: &o.crossChannel, Value: "path", Category: releaseGroup,
		Usage: "also take the releases on the way between several channels, or those of the channels alone (path|none)"}
}

// verifyFlags say which signatures of releases are good.
func (o *Releases) verifyFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "release-key", Destination: &o.key, EnvVars: []string{"OCP_SIGNATURE_VERIFICATION_PK"}, Category: releaseGroup,
			Usage: "armored OpenPGP keys in `FILE` that sign releases, in place of the vendor's"},
		&cli.StringSliceFlag{Name: "release-source", Destination: &o.sources, Category: releaseGroup,
			Usage: "also accept signatures for releases in the repository `HOST/PATH`; can be repeated"},
		&cli.BoolFlag{Name: "allow-expired-release-signature", Destination: &o.allowExpired, Category: releaseGroup,
			Usage: "accept signatures and keys that have expired"},
	}
}

// Flags are those of commands that mirror releases.
func (o *Releases) Flags() []cli.Flag {
	return program.Flags(o.ChooseFlags(), []cli.Flag{
		&cli.StringFlag{Name: "release-signature-url", Destination: &o.signatureURL, EnvVars: []string{"OCP_SIGNATURE_URL"},
			Category: releaseGroup, Usage: "`URL` below which signatures of releases are", DefaultText: "the vendor's"},
	}, o.verifyFlags(), []cli.Flag{
		o.UnsignedFlag(false),
		&cli.StringFlag{Name: "graph-data", Destination: &o.graphData, Category: releaseGroup, DefaultText: "the vendor's",
			Usage: "archive for the graph image (graph: true): `URL` or file"},
		&cli.StringFlag{Name: "graph-base", Destination: &o.graphBase, Category: releaseGroup, DefaultText: "the vendor's",
			Usage: "`IMAGE` that the graph image stands on"},
		&cli.BoolFlag{Name: "pin-graph", Destination: &o.pinGraph, Category: releaseGroup, Usage: "name the graph image by digest"},
		&cli.BoolFlag{Name: "pin-releases", Destination: &o.pin, Category: releaseGroup,
			Usage: "write the version that a channel has given into the pinned image set"},
	})
}

// UnsignedFlag returns --ignore-release-signature.
func (o *Releases) UnsignedFlag(hidden bool) cli.Flag {
	return &cli.BoolFlag{Name: "ignore-release-signature", Destination: &o.unsigned, Category: releaseGroup, Hidden: hidden,
		Usage: "mirror the release that platform.release names without a signature, such as a nightly one"}
}

// Options are the values of the flags. The servers are reached through caFile, too, unless it is empty.
func (o *Releases) Options(ctx context.Context, p *option.Session, caFile string, retries int) (out mirror.ReleaseOptions, err error) {
	out = mirror.ReleaseOptions{UpdateURL: o.updateURL, Unsigned: o.unsigned, Pin: o.pin, PinGraph: o.pinGraph,
		GraphData: o.graphData, GraphBase: o.graphBase, NoCrossChannel: o.crossChannel == "none"}
	if v := o.crossChannel; v != "" && v != "path" && v != "none" {
		return out, cmdline.Usagef("invalid --cross-channel value %q, expected (path|none)", v)
	}
	if o.graphBase != "" {
		ref, err := imageset.ParseRef(o.graphBase, "oci-archive", "docker-archive", "dir", "containers-storage")
		var none *imageset.NoRegistryError
		if err == nil && errors.As(ref.CheckRegistry(), &none) {
			return out, &cmdline.Error{Class: cmdline.ClassUsage, Object: o.graphBase, Hint: none.Fix(), Err: fmt.Errorf("--graph-base: %w", none)}
		}
	}
	out.Client, err = webclient.NewClient(ctx, webclient.Options{CAFile: caFile, Retries: retries,
		UserAgent: "bindery/" + strings.TrimPrefix(version.Release(), "v")})
	if err != nil {
		return out, err
	}
	out.Signatures = signed.Options{URL: o.signatureURL, AllowExpired: o.allowExpired}
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
