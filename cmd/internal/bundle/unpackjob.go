package bundle

import (
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/bundle/unpackjob"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/images/transport"
)

// jobOptions are the flags of "bundle unpack-job".
type jobOptions struct {
	unpackjob.Options
	output, owner string
	secrets       cli.StringSlice
}

func bundleUnpackJobCommand(p *option.Session) *cli.Command {
	o := &jobOptions{}
	return &cli.Command{
		Name:      "unpack-job",
		Usage:     "print the Kubernetes objects that unpack a bundle image",
		ArgsUsage: "REF",
		Description: `Prints the ConfigMap, Role, ServiceAccount, RoleBinding and Job that the Operator Lifecycle
Manager, version 0, creates for a bundle image. Their name depends on the reference only. Clusters with an
older release create other ones: --olm-version names it. Neither a cluster nor a registry is contacted.` +
			program.Examples("bindery bundle unpack-job registry.example.com/acme/etcd:v0.9.4 -n olm",
				"bindery bundle unpack-job registry.example.com/acme/etcd:v0.9.4 --olm-version 0.31.0",
				"bindery bundle unpack-job registry.example.com/acme/etcd:v0.9.4 -o json --timeout 0 "+
					"--catalog-source acme:0d2ac5a1-5b0f-4a0e-8a35-5d7f0e5e3a11"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "yaml", Destination: &o.output,
				Usage: "`FORMAT` of the objects (yaml|json)"},
			&cli.StringFlag{Name: "namespace", Aliases: []string{"n"}, Value: "olm", Destination: &o.Namespace,
				Usage: "`NAMESPACE` of the catalog source and the objects"},
			&cli.StringFlag{Name: "opm-image", Value: unpackjob.DefaultOpmImage, Usage: "`IMAGE` with opm", Destination: &o.OpmImage},
			&cli.StringFlag{Name: "util-image", Value: unpackjob.DefaultUtilImage, Usage: "`IMAGE` with /bin/cpb",
				Destination: &o.UtilImage},
			&cli.DurationFlag{Name: "timeout", Value: unpackjob.DefaultTimeout, Destination: &o.Timeout,
				Usage: "`DURATION` after which the job fails; 0 means never"},
			&cli.StringFlag{Name: "olm-version", DefaultText: "the newest", Destination: &o.Release,
				Usage: "`VERSION` of the Operator Lifecycle Manager whose objects these are, from " +
					unpackjob.OldestRelease + " on"},
			&cli.StringFlag{Name: "service-account", Destination: &o.ServiceAccount, DefaultText: "one of the objects' name; before 0.39 \"default\"",
				Usage: "`NAME` of an existing service account for the pod"},
			&cli.StringSliceFlag{Name: "pull-secret", Usage: "`NAME` of a secret with credentials for the images",
				Destination: &o.secrets},
			&cli.Int64Flag{Name: "user", Value: unpackjob.DefaultUser, Destination: &o.User,
				Usage: "`UID` of the pod; 0 leaves it to the cluster"},
			&cli.StringFlag{Name: "catalog-source", Usage: "`NAME:UID` of the catalog source that owns the ConfigMap",
				Destination: &o.owner},
		},
		Action: program.Exactly(1, p.Action(func(_ context.Context, args []string) error { return printJob(p, o, args[0]) })),
	}
}

func printJob(p *option.Session, o *jobOptions, ref string) error {
	format, err := program.ObjectFormat(o.output)
	if err != nil {
		return err
	}
	if o.PullSecrets, err = cmdline.List(o.secrets.Value()); err != nil {
		return err
	}
	o.Image = strings.TrimPrefix(ref, "docker://")
	for _, f := range [][2]string{{"olm-version", o.Release}, {"service-account", o.ServiceAccount}} {
		if p.Given(f[0]) && f[1] == "" {
			return cmdline.Usagef("--%s is empty", f[0])
		}
	}
	if owner := o.owner; owner != "" {
		name, uid, ok := strings.Cut(owner, ":")
		if !ok || uid == "" {
			return cmdline.Usagef("invalid --catalog-source value %q, expected NAME:UID", owner)
		}
		o.Owner = &unpackjob.Owner{Name: name, UID: uid}
	}
	if name, _, _ := strings.Cut(o.Image, ":"); program.Transports.Row(transport.Name(name)) != nil {
		return &cmdline.Error{Class: cmdline.ClassUsage, Object: o.Image,
			Err:  fmt.Errorf("%q is not in a registry: a cluster cannot pull it", o.Image),
			Hint: "the argument is the name by which the cluster pulls the image, REGISTRY/REPOSITORY:TAG"}
	}
	objects, err := unpackjob.New(o.Options)
	if err != nil {
		return &cmdline.Error{Class: cmdline.ClassUsage, Object: o.Image, Err: err}
	}
	texts, err := objects.JSON()
	if err != nil {
		return err
	}
	all := make([]any, len(texts))
	for i, text := range texts {
		all[i] = text
	}
	return printObjects(p, format, all...)
}
