package ocmirror

import (
	"maps"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	mirrorcmd "github.com/operator-bindery/bindery/cmd/internal/mirror"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/mirror"
)

// refusedFlags are flags of oc-mirror that this program refuses, with the reason.
var refusedFlags = map[string]string{
	"src-creds": inFiles, "dest-creds": inFiles, "src-username": inFiles, "src-password": inFiles, "dest-username": inFiles,
	"dest-password": inFiles, "src-registry-token": inFiles, "dest-registry-token": inFiles,
	"src-no-creds":         "credentials are for the host that the file names, and no other gets them; --src-authfile names an empty one",
	"dest-no-creds":        "credentials are for the host that the file names, and no other gets them; --dest-authfile names an empty one",
	"src-daemon-host":      noDaemon,
	"dest-daemon-host":     noDaemon,
	"src-shared-blob-dir":  noShared,
	"dest-shared-blob-dir": noShared,
	"dest-compress-format": asTheyAre, "dest-compress-level": asTheyAre, "dest-compress": noDirectory, "dest-decompress": noDirectory,
	"dest-oci-accept-uncompressed-layers": noDirectory,
	"cpu-prof":                            noProfile, "mem-prof": noProfile,
	"v1": "this is oc-mirror v2",
}

// The reasons of refusedFlags.
const (
	inFiles = "every process of the machine sees it, and every registry would get it: log in with \"bindery login HOST\", or name a " +
		"file with --src-authfile or --dest-authfile"
	noDaemon    = "no daemon is asked"
	noShared    = "the layouts of an image set have their own blobs"
	asTheyAre   = "images are copied as they are, so that their digests stay; --compression is that of catalogs which are rebuilt"
	noDirectory = "it is for the format dir of other programs, which nothing is written in"
	noProfile   = "no profile is written"
)

// options are the flags of the commands of oc-mirror.
type options struct {
	mirrorcmd.SetOptions
	option.Image
	logLevel, srcCertDir, destCertDir         string
	srcTLSVerify, destTLSVerify, securePolicy bool

	wanted map[string]*bool // of the boolean flags that are refused

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
	var refused []cli.Flag
	for _, name := range slices.Sorted(maps.Keys(refusedFlags)) {
		if slices.Contains([]string{"v1", "cpu-prof", "mem-prof", "src-no-creds", "dest-no-creds", "dest-compress", "dest-decompress",
			"dest-oci-accept-uncompressed-layers"}, name) {
			refused = append(refused, &cli.BoolFlag{Name: name, Hidden: true, Destination: o.wants(name)})
		} else {
			refused = append(refused, &cli.StringFlag{Name: name, Hidden: true})
		}
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
		&cli.BoolFlag{Name: "force", Aliases: []string{"f"}, Hidden: true},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Hidden: true},
		&cli.StringFlag{Name: "src-cert-dir", Destination: &o.srcCertDir, Hidden: true},
		&cli.StringFlag{Name: "dest-cert-dir", Destination: &o.destCertDir, Hidden: true},
		// Each blob is looked for by its digest before it is sent, and nothing is kept in podman's store.
		&cli.BoolFlag{Name: "dest-precompute-digests", Hidden: true},
		&cli.StringFlag{Name: "rootless-storage-path", Hidden: true},
	}, refused)
}

// wants returns where the value of a boolean flag goes that is refused.
func (o *options) wants(name string) *bool {
	if o.wanted == nil {
		o.wanted = map[string]*bool{}
	}
	o.wanted[name] = new(bool)
	return o.wanted[name]
}

// checkFlags returns an error if a flag is given that is refused.
func (o *options) checkFlags(p *option.Session) error {
	for _, name := range slices.Sorted(maps.Keys(refusedFlags)) {
		if on := o.wanted[name]; p.Given(name) && (on == nil || *on) {
			return cmdline.Usagef("--%s is not supported: %s", name, refusedFlags[name])
		}
	}
	return nil
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
		&cli.BoolFlag{Name: "catalogs", Destination: &o.catalogs, Usage: "list the vendor's catalogs for --version"},
		&cli.StringFlag{Name: "package", Destination: &o.pkg, Usage: "show the channels of the package `NAME`"},
		&cli.StringFlag{Name: "channel", Destination: &o.channel, Usage: "show the versions of the channel `NAME`"},
		&cli.StringFlag{Name: "version", Destination: &o.version, Usage: "version `X.Y` of OpenShift, for --catalogs"},
	}
}
