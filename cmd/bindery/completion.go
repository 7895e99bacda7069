package main

import (
	"io"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
)

func (p *program) completionCommand() *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "print a completion script for a shell",
		ArgsUsage: "bash|zsh|fish",
		Description: "To load it into the running bash: source <(bindery completion bash)" + examples(
			"bindery completion bash", "bindery completion zsh", "bindery completion fish"),
		Action: exactly(1, func(c *cli.Context) error {
			script, err := cmdline.Script(c.Args().First(), c.App.Name)
			if err != nil {
				return err
			}
			_, err = io.WriteString(p.stdout, script)
			return err
		}),
	}
}

// completeCommand returns the hidden command that completion scripts call.
func (p *program) completeCommand() *cli.Command {
	return &cli.Command{
		Name: "__complete", Hidden: true, SkipFlagParsing: true,
		Usage: "complete a command line",
		Action: func(c *cli.Context) error {
			return cmdline.Complete(c.App, c.Args().Slice()).Write(p.stdout)
		},
	}
}

func (p *program) manCommand() *cli.Command {
	return &cli.Command{
		Name:        "man",
		Usage:       "print the manual page",
		Description: "The page is in roff, for \"man -l\" and for packaging." + examples("bindery man"),
		Action: exactly(0,
			func(c *cli.Context) error { return cmdline.WriteMan(p.stdout, c.App, manSections()...) }),
	}
}

// manSections returns the additional sections of the manual page.
func manSections() []cmdline.ManSection {
	return []cmdline.ManSection{
		{Title: "EXIT STATUS", Items: [][2]string{
			{"0", "Success. diff: the catalogs are equal. probe: the server is serving."},
			{"1",
				"Any error. validate, bundle validate: there are errors. verify: the image differs from its catalog, or is not " +
					"signed. " +
					"diff: the catalogs differ, if standard output has the differences. migrate --verify: the output " +
					"lacks something of the source. resolve: nothing is resolved. probe: invalid arguments."},
			{"2, 3",
				"Adding bundles: the catalog already contains the image (2), or another image of the same bundle (3)."},
			{"2, 3, 4",
				"probe: no connection (2), the call failed (3), not serving (4). migrate --keep-going: packages were " +
					"skipped (4)."},
			{"129, 130, 143",
				"Terminated by SIGHUP, SIGINT or SIGTERM; no partial output is left. serve: SIGHUP reloads the " +
					"catalog, the others stop the server with status 0."},
			{"141", "Standard output was closed by its reader."},
		}},
		{Title: "ENVIRONMENT", Items: [][2]string{
			{"BINDERY_*", "Defaults of the flags that name them above; a flag overrides its variable."},
			{passphraseVariable, "The passphrase of the keys of --sign-key."},
			{"CI", "If it is set, --provenance without --builder-id is a warning."},
			{"REGISTRY_AUTH_FILE, XDG_RUNTIME_DIR, DOCKER_CONFIG",
				"Locations of registry credentials, as in podman(1) and docker(1)."},
			{"CONTAINERS_REGISTRIES_CONF, CONTAINERS_POLICY_JSON",
				"Files to read in place of registries.conf and policy.json."},
			{"CONTAINERS_STORAGE_CONF, STORAGE_DRIVER, STORAGE_OPTS",
				"podman's storage, for --load and containers-storage:."},
			{"TMPDIR", "The directory for temporary files."},
			{"GOMEMLIMIT", "serve: the soft memory limit; 85 % of the cgroup's limit by default."},
			{"SOURCE_DATE_EPOCH",
				"The creation time of built images, in seconds since 1970. Files in layers are always dated " +
					"1970-01-01."},
			{"KUBECONFIG", "The cluster of bundle extract."},
			{"NO_COLOR", "Disables colours in diff."},
		}},
		{Title: "FILES", Items: [][2]string{
			{"$XDG_CACHE_HOME/bindery/blobs, $HOME/.cache/bindery/blobs",
				"Blobs of images from registries; see cache info and cache prune."},
			{"auth.json, registries.conf, registries.d, policy.json, certs.d",
				"Those of containers-auth.json(5), containers-registries.conf(5), containers-registries.d(5), " +
					"containers-policy.json(5) and containers-certs.d(5)."},
		}},
	}
}
