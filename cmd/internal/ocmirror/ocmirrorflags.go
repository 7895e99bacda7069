package ocmirror

import (
	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/mirror"
)

// ocMirrorCredentials are flags with credentials. Other processes of the machine see them, so that they are not used.
var ocMirrorCredentials = []string{"src-creds", "dest-creds", "src-username", "src-password", "dest-username",
	"dest-password", "src-registry-token", "dest-registry-token"}

// ocMirrorCommonFlags are those of all commands of oc-mirror.
func ocMirrorCommonFlags() []cli.Flag {
	ignored := func(names ...string) []cli.Flag {
		var out []cli.Flag
		for _, n := range names {
			out = append(out, &cli.StringFlag{Name: n, Hidden: true})
		}
		return out
	}
	return program.Flags([]cli.Flag{
		&cli.StringFlag{Name: "config", Aliases: []string{"c"}, Usage: "image set configuration `FILE`"},
		&cli.StringFlag{Name: "workspace", Usage: "`file://DIR` of the workspace"},
		&cli.StringFlag{Name: "authfile", Usage: "credentials `FILE`", EnvVars: []string{"REGISTRY_AUTH_FILE"}},
		&cli.StringFlag{Name: "cache-dir", Usage: "accepted, and not used: blobs are kept once"},
		&cli.BoolFlag{Name: "src-tls-verify", Value: true, Usage: "verify the certificates of sources"},
		&cli.BoolFlag{Name: "dest-tls-verify", Value: true, Usage: "verify the certificates of the destination"},
		&cli.UintFlag{Name: "parallel-images", Value: 4, Usage: "copy `N` images at once (1 to 10)"},
		&cli.UintFlag{Name: "parallel-layers", Value: 5, Usage: "copy `N` blobs of each image at once (1 to 10)"},
		&cli.IntFlag{Name: "retry-times", Value: 5, Usage: "retry failed requests up to `N` times"},
		&cli.DurationFlag{Name: "retry-delay", Usage: "`DURATION` between retries; 0 is one second, doubled each time"},
		&cli.BoolFlag{Name: "secure-policy", Usage: "verify the signatures of images that are fetched"},
		&cli.StringFlag{Name: "policy", Usage: "signature policy `FILE`"},
		&cli.StringFlag{Name: "registries.d", Usage: "`DIR` with files that say where signatures are"},
		&cli.StringFlag{Name: "log-level", Value: "info", Usage: "`LEVEL` of messages (info|debug|trace|error)"},
		&cli.StringFlag{Name: "port", Aliases: []string{"p"}, Usage: "accepted, and not used: nothing is listened to"},
		&cli.BoolFlag{Name: "v2", Usage: "accepted, and not needed"},
		&cli.BoolFlag{Name: "v1", Hidden: true},
		&cli.BoolFlag{Name: "force", Hidden: true},
		&cli.BoolFlag{Name: "ignore-release-signature", Hidden: true},
		&cli.StringFlag{Name: "src-cert-dir", Hidden: true},
		&cli.StringFlag{Name: "dest-cert-dir", Hidden: true},
		&cli.BoolFlag{Name: "src-no-creds", Hidden: true},
		&cli.BoolFlag{Name: "dest-no-creds", Hidden: true},
	}, ignored(ocMirrorCredentials...), ignored("rootless-storage-path", "cpu-prof", "mem-prof", "src-daemon-host",
		"dest-daemon-host", "src-shared-blob-dir", "dest-shared-blob-dir"))
}

func ocMirrorRunFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "from", Usage: "`file://DIR` with the archive"},
		&cli.DurationFlag{Name: "image-timeout", Usage: "time for one image with its retries", DefaultText: "none"},
		&cli.IntFlag{Name: "max-nested-paths", Usage: "maximum number `N` of path components at the destination"},
		&cli.StringFlag{Name: "since", Usage: "leave out what archives before `YYYY-MM-DD` carried"},
		&cli.BoolFlag{Name: "strict-archive", Usage: "refuse blobs larger than a segment of the archive"},
		&cli.BoolFlag{Name: "dry-run", Usage: "find out what would be mirrored"},
		&cli.BoolFlag{Name: "dry-run-manifest-lists", Usage: "as --dry-run, with the images of indexes"},
		&cli.BoolFlag{Name: "remove-signatures", Usage: "copy no signatures"},
		&cli.StringFlag{Name: "on-missing", Value: string(mirror.FailMissing),
			Usage: "what becomes of a catalog that names images which are not available (skip-bundle|fail)"},
		&cli.StringFlag{Name: "compat", Usage: "keep to what another `PROGRAM` does, including its losses (oc-mirror)"},
		&cli.BoolFlag{Name: "ignore-unsupported", Usage: "go on without platform, helm and samples"},
		&cli.StringFlag{Name: "account", Usage: "write the account of the run as JSON to `FILE`"},
		&cli.StringFlag{Name: "catalog-base", Value: string(mirror.KeepBase), Hidden: true},
		&cli.StringFlag{Name: "compression", Value: "gzip", Hidden: true},
		&cli.StringFlag{Name: "server", Hidden: true},
		&cli.IntFlag{Name: "max-layers", Value: 100, Hidden: true},
	}
}

func ocMirrorDeleteFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "generate", Usage: "list the images to delete"},
		&cli.StringFlag{Name: "delete-id", Usage: "`ID` in the name of the list"},
		&cli.StringFlag{Name: "delete-yaml-file", Usage: "delete the images of the list in `FILE`"},
		&cli.BoolFlag{Name: "delete-signatures", Usage: "list signatures, too"},
		&cli.BoolFlag{Name: "delete-v1-images", Usage: "refused: tags of oc-mirror v1 are not known"},
		&cli.BoolFlag{Name: "force-cache-delete", Usage: "accepted: there is no cache to delete from"},
		&cli.StringFlag{Name: "shared", Value: "keep", Usage: "images that others need (keep|delete)"},
		&cli.BoolFlag{Name: "ignore-unsupported", Usage: "go on without platform, helm and samples"},
		&cli.StringFlag{Name: "compat", Hidden: true},
	}
}

func ocMirrorListFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "catalog", Usage: "`CATALOG` to list"},
		&cli.BoolFlag{Name: "catalogs", Usage: "refused: it needs the vendor's list"},
		&cli.StringFlag{Name: "package", Usage: "show the channels of the package `NAME`"},
		&cli.StringFlag{Name: "channel", Usage: "show the versions of the channel `NAME`"},
		&cli.StringFlag{Name: "version", Usage: "for --catalogs"},
	}
}
