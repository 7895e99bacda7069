package ocmirror

import (
	"github.com/urfave/cli/v2"

	mirrorcmd "github.com/operator-bindery/bindery/cmd/internal/mirror"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/mirror"
)

// ocMirrorCredentials are flags with credentials. Other processes of the machine see them, so that they are not used.
var ocMirrorCredentials = []string{"src-creds", "dest-creds", "src-username", "src-password", "dest-username",
	"dest-password", "src-registry-token", "dest-registry-token"}

// options are the flags of the commands of oc-mirror.
type options struct {
	mirrorcmd.SetOptions
	option.Image
	logLevel, srcCertDir, destCertDir             string
	srcTLSVerify, destTLSVerify, securePolicy, v1 bool

	since, account   string
	removeSignatures bool

	deletion                       mirror.DeleteOptions // has the values that need no reading
	generate, v1Images             bool
	deleteID, deleteFile           string
	catalogs, channels             bool
	architectures                  cli.StringSlice
	catalog, pkg, channel, version string
}

// commonFlags are those of all commands of oc-mirror.
func (o *options) commonFlags() []cli.Flag {
	ignored := func(names ...string) []cli.Flag {
		var out []cli.Flag
		for _, n := range names {
			out = append(out, &cli.StringFlag{Name: n, Hidden: true})
		}
		return out
	}
	return program.Flags([]cli.Flag{
		&cli.StringFlag{Name: "config", Destination: &o.Request.Config, Aliases: []string{"c"}, Usage: "image set configuration `FILE`"},
		&cli.StringFlag{Name: "workspace", Destination: &o.Workspace, Usage: "`file://DIR` of the workspace"},
		&cli.StringFlag{Name: "src-authfile", Destination: &o.SrcAuthFile, Usage: "credentials `FILE` of sources"},
		&cli.StringFlag{Name: "dest-authfile", Destination: &o.DestAuthFile, Usage: "credentials `FILE` of the destination"},
		&cli.StringFlag{Name: "authfile", Destination: &o.Given.Registry.AuthFile, Usage: "credentials `FILE`", EnvVars: []string{"REGISTRY_AUTH_FILE"}},
		&cli.StringFlag{Name: "cache-dir", Usage: "accepted, and not used: blobs are kept once"},
		&cli.BoolFlag{Name: "src-tls-verify", Destination: &o.srcTLSVerify, Value: true, Usage: "verify the certificates of sources"},
		&cli.BoolFlag{Name: "dest-tls-verify", Destination: &o.destTLSVerify, Value: true, Usage: "verify the certificates of the destination"},
		&cli.IntFlag{Name: "parallel-images", Destination: &o.Request.ParallelImages, Value: 4, Usage: "copy as many blobs at once as `N` images have (1 to 10); with 1, image by image"},
		&cli.IntFlag{Name: "parallel-layers", Destination: &o.Request.ParallelLayers, Value: 5, Usage: "copy `N` blobs of each image at once (1 to 10)"},
		&cli.IntFlag{Name: "retry-times", Destination: &o.Given.Retries, Value: 5, Usage: "retry failed requests up to `N` times"},
		&cli.DurationFlag{Name: "retry-delay", Destination: &o.Given.Backoff, Usage: "`DURATION` between retries; 0 is one second, doubled each time"},
		&cli.BoolFlag{Name: "secure-policy", Destination: &o.securePolicy, Usage: "verify the signatures of images that are fetched"},
		&cli.StringFlag{Name: "policy", Destination: &o.Policy, Usage: "signature policy `FILE`"},
		&cli.StringFlag{Name: "registries.d", Destination: &o.Given.Registry.RegistriesDir, Usage: "`DIR` with files that say where signatures are"},
		&cli.StringFlag{Name: "log-level", Destination: &o.logLevel, Value: "info", Usage: "`LEVEL` of messages (info|debug|trace|error)"},
		&cli.StringFlag{Name: "port", Aliases: []string{"p"}, Usage: "accepted, and not used: nothing is listened to"},
		&cli.BoolFlag{Name: "v2", Usage: "accepted, and not needed"},
		&cli.BoolFlag{Name: "v1", Destination: &o.v1, Hidden: true},
		&cli.BoolFlag{Name: "force", Aliases: []string{"f"}, Hidden: true},
		&cli.BoolFlag{Name: "cpu-prof", Hidden: true},
		&cli.BoolFlag{Name: "mem-prof", Hidden: true},
		&cli.StringFlag{Name: "src-cert-dir", Destination: &o.srcCertDir, Hidden: true},
		&cli.StringFlag{Name: "dest-cert-dir", Destination: &o.destCertDir, Hidden: true},
		&cli.BoolFlag{Name: "src-no-creds", Hidden: true},
		&cli.BoolFlag{Name: "dest-no-creds", Hidden: true},
	}, ignored(ocMirrorCredentials...), ignored("rootless-storage-path", "src-daemon-host",
		"dest-daemon-host", "src-shared-blob-dir", "dest-shared-blob-dir"))
}

func (o *options) runFlags() []cli.Flag {
	return program.Flags(o.ReleaseFlags(), o.ChartFlags(), []cli.Flag{
		&cli.StringFlag{Name: "from", Destination: &o.From, Usage: "`file://DIR` with the archive"},
		&cli.DurationFlag{Name: "image-timeout", Destination: &o.Request.Timeout, Usage: "time for one image with its retries", DefaultText: "none"},
		&cli.IntFlag{Name: "max-nested-paths", Destination: &o.Request.Target.MaxNestedPaths, Usage: "maximum number `N` of path components at the destination"},
		&cli.StringFlag{Name: "since", Destination: &o.since, Usage: "leave out what archives before `YYYY-MM-DD` carried"},
		&cli.BoolFlag{Name: "strict-archive", Destination: &o.Request.Medium.Strict, Usage: "refuse blobs larger than a segment of the archive"},
		&cli.BoolFlag{Name: "dry-run", Destination: &o.Request.DryRun, Usage: "find out what would be mirrored"},
		&cli.BoolFlag{Name: "dry-run-manifest-lists", Destination: &o.Request.ManifestLists, Usage: "as --dry-run, with the images of indexes"},
		&cli.BoolFlag{Name: "remove-signatures", Destination: &o.removeSignatures, Usage: "copy no signatures"},
		&cli.StringFlag{Name: "on-missing", Destination: (*string)(&o.Request.OnMissing), Value: string(mirror.FailMissing),
			Usage: "what becomes of a catalog that names images which are not available (skip-bundle|fail)"},
		&cli.StringFlag{Name: "compat", Destination: &o.CompatWith, Usage: "keep to what another `PROGRAM` does, including its losses (oc-mirror)"},
		o.IgnoreUnsupportedFlag(),
		&cli.StringFlag{Name: "account", Destination: &o.account, Usage: "write the account of the run as JSON to `FILE`"},
		&cli.StringFlag{Name: "catalog-base", Destination: (*string)(&o.Request.CatalogBase), Value: string(mirror.KeepBase), Hidden: true},
		&cli.StringFlag{Name: "compression", Destination: (*string)(&o.Compression), Value: "gzip", Hidden: true},
		&cli.StringFlag{Name: "server", Destination: &o.ServerName, Hidden: true},
		&cli.IntFlag{Name: "max-layers", Destination: &o.MaxLayers, Value: 100, Hidden: true},
	})
}

func (o *options) deleteFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "generate", Destination: &o.generate, Usage: "list the images to delete"},
		&cli.StringFlag{Name: "delete-id", Destination: &o.deleteID, Usage: "`ID` in the name of the list"},
		&cli.StringFlag{Name: "delete-yaml-file", Destination: &o.deleteFile, Usage: "delete the images of the list in `FILE`"},
		&cli.BoolFlag{Name: "delete-signatures", Destination: &o.deletion.Signatures, Usage: "list signatures, too"},
		&cli.BoolFlag{Name: "delete-v1-images", Destination: &o.v1Images, Usage: "refused: tags of oc-mirror v1 are not known"},
		o.UnsignedFlag(true), // no signature is looked up
		o.CrossChannelFlag(),
		&cli.IntFlag{Name: "max-nested-paths", Destination: &o.Request.Target.MaxNestedPaths, Usage: "maximum number `N` of path components at the destination"},
		&cli.BoolFlag{Name: "force-cache-delete", Usage: "accepted: there is no cache to delete from"},
		&cli.StringFlag{Name: "shared", Destination: (*string)(&o.deletion.Shared), Value: string(mirror.KeepShared), Usage: "images that others need (keep|delete)"},
		o.IgnoreUnsupportedFlag(),
		&cli.StringFlag{Name: "compat", Destination: &o.CompatWith, Hidden: true},
	}
}

func (o *options) listFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "catalog", Destination: &o.catalog, Usage: "`CATALOG` to list"},
		&cli.BoolFlag{Name: "catalogs", Destination: &o.catalogs, Usage: "refused: it needs the vendor's list"},
		&cli.StringFlag{Name: "package", Destination: &o.pkg, Usage: "show the channels of the package `NAME`"},
		&cli.StringFlag{Name: "channel", Destination: &o.channel, Usage: "show the versions of the channel `NAME`"},
		&cli.StringFlag{Name: "version", Destination: &o.version, Usage: "for --catalogs"},
	}
}
