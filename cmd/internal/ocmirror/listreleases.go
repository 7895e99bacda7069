package ocmirror

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/internal/printable"
	"github.com/operator-bindery/bindery/mirror/releases"
)

// listReleasesFlags are those of "oc-mirror list releases".
func (o *options) listReleasesFlags() []cli.Flag {
	return program.Flags(o.ChooseFlags(), []cli.Flag{
		&cli.StringFlag{Name: "channel", Destination: &o.channel, Usage: "list the versions of the channel `NAME`"},
		&cli.StringFlag{Name: "version", Destination: &o.version, Usage: "list the versions of stable-`X.Y`"},
		&cli.BoolFlag{Name: "channels", Destination: &o.channels, Usage: "list the channels that have versions of --version"},
		&cli.StringSliceFlag{Name: "filter-by-archs", Destination: &o.architectures, Value: cli.NewStringSlice("amd64"),
			Usage: "`ARCHITECTURES` to list (" + strings.Join(releases.Architectures(), "|") + ")"},
	})
}

// releaseRepository has the releases of OpenShift.
const releaseRepository = "quay.io/openshift-release-dev/ocp-release"

// listReleases lists the versions of a channel, the channels of a version, or all versions X.Y.
func (o *options) listReleases(ctx context.Context, p *option.Session, args []string) error {
	if err := o.begin(p); err != nil {
		return err
	}
	if len(args) > 0 {
		return cmdline.Usagef("\"list releases\" takes no arguments, such as %q", args[0])
	}
	with, err := o.Releases(ctx, &o.Registry)
	if err != nil {
		return err
	}
	server := &releases.Server{Client: with.Client, OCP: with.UpdateURL}
	channel := o.channel
	if channel == "" && o.version != "" {
		channel = "stable-" + o.version
	}
	switch {
	case o.channels && o.version == "":
		return cmdline.Usagef("must specify --version with --channels")
	case o.channels:
		return o.listReleaseChannels(ctx, p, server)
	case channel == "":
		return o.listMinors(ctx, p)
	}
	architectures := strings.Split(strings.Join(o.architectures.Value(), ","), ",")
	var unknown []string
	for _, name := range architectures {
		if !slices.Contains(releases.Architectures(), name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		return cmdline.Usagef("invalid architecture(s) %v. Known architectures: %v", unknown, releases.Architectures())
	}
	var b strings.Builder
	if strings.HasPrefix(channel, "stable") {
		fmt.Fprintf(&b, "Listing stable channels. Use --channel=<name> to filter.\n"+
			"Use oc-mirror --v2 list releases --channels --version=%s to discover other channels.\n\n", o.version)
	}
	var failed []error
	for _, name := range architectures {
		versions, err := releases.Versions(ctx, server, channel, name)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		fmt.Fprintf(&b, "Channel: %s\nArchitecture: %s\n%s\n", channel, name, strings.Join(versions, "\n"))
	}
	if len(failed) < len(architectures) {
		_, err = p.Stdout.Write([]byte(printable.Text(b.String())))
	}
	return errors.Join(append(failed, err)...)
}

// listReleaseChannels lists the channels that a version X.Y is in.
func (o *options) listReleaseChannels(ctx context.Context, p *option.Session, server releases.Graphs) error {
	channels, err := releases.ChannelsOf(ctx, server, o.version, "amd64")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.Stdout, "Listing channels for version %s:\n\n%s\n", o.version,
		printable.Text(strings.Join(channels, "\n")))
	return err
}

// listMinors lists the versions X.Y of which there are releases.
func (o *options) listMinors(ctx context.Context, p *option.Session) error {
	remote, err := o.newRemote(ctx, p, program.Source, nil)
	if err != nil {
		return err
	}
	at, err := remote.Repository(releaseRepository)
	if err != nil {
		return err
	}
	tags, _, err := at.Tags(ctx, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", releaseRepository, err)
	}
	_, err = fmt.Fprintf(p.Stdout, "Available OpenShift Container Platform release versions:\n%s\n",
		"  "+strings.Join(releases.Minors(tags), "\n  "))
	return err
}
