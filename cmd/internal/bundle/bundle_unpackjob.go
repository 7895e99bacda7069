package bundle

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/bundle/unpackjob"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/images/transport"
)

func bundleUnpackJobCommand(p *option.Session) *cli.Command {
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
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "yaml",
				Usage: "`FORMAT` of the objects (yaml|json)"},
			&cli.StringFlag{Name: "namespace", Aliases: []string{"n"}, Value: "olm",
				Usage: "`NAMESPACE` of the catalog source and the objects"},
			&cli.StringFlag{Name: "opm-image", Value: unpackjob.DefaultOpmImage, Usage: "`IMAGE` with opm"},
			&cli.StringFlag{Name: "util-image", Value: unpackjob.DefaultUtilImage, Usage: "`IMAGE` with /bin/cpb"},
			&cli.DurationFlag{Name: "timeout", Value: unpackjob.DefaultTimeout,
				Usage: "`DURATION` after which the job fails; 0 means never"},
			&cli.StringFlag{Name: "olm-version", DefaultText: "the newest",
				Usage: "`VERSION` of the Operator Lifecycle Manager whose objects these are, from " +
					unpackjob.OldestRelease + " on"},
			&cli.StringFlag{Name: "service-account", DefaultText: "one of the objects' name; before 0.39 \"default\"",
				Usage: "`NAME` of an existing service account for the pod"},
			&cli.StringSliceFlag{Name: "pull-secret", Usage: "`NAME` of a secret with credentials for the images"},
			&cli.Int64Flag{Name: "user", Value: unpackjob.DefaultUser,
				Usage: "`UID` of the pod; 0 leaves it to the cluster"},
			&cli.StringFlag{Name: "catalog-source", Usage: "`NAME:UID` of the catalog source that owns the ConfigMap"},
		},
		Action: program.Exactly(1, func(c *cli.Context) error { return bundleUnpackJob(p, c) }),
	}
}

func bundleUnpackJob(p *option.Session, c *cli.Context) error {
	format, err := program.ListFormat(c, "yaml", "json")
	if err != nil {
		return err
	}
	secrets, err := cmdline.List(c.StringSlice("pull-secret"))
	if err != nil {
		return err
	}
	o := unpackjob.Options{
		Image: strings.TrimPrefix(c.Args().First(), "docker://"), Namespace: c.String("namespace"),
		OpmImage: c.String("opm-image"), UtilImage: c.String("util-image"),
		ServiceAccount: c.String("service-account"), PullSecrets: secrets, Timeout: c.Duration("timeout"),
		User: c.Int64("user"), Release: c.String("olm-version"),
	}
	for _, name := range []string{"olm-version", "service-account"} {
		if c.IsSet(name) && c.String(name) == "" {
			return cmdline.Usagef("--%s is empty", name)
		}
	}
	if owner := c.String("catalog-source"); owner != "" {
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
	objects, err := unpackjob.New(o)
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
