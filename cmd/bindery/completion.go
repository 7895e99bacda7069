package main

import (
	"io"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
)

func (p *program) completionCommand() *cli.Command {
	return &cli.Command{
		Name:        "completion",
		Usage:       "print a completion script for a shell",
		ArgsUsage:   "bash|zsh|fish",
		Description: "To have it in the running bash: source <(bindery completion bash)" + examples("bindery completion bash", "bindery completion zsh", "bindery completion fish"),
		Action: exactly(1, func(c *cli.Context) error {
			script, err := cmdline.Script(c.Args().First(), c.App.HelpName)
			if err != nil {
				return err
			}
			_, err = io.WriteString(p.stdout, script)
			return err
		}),
	}
}

// completeCommand is what the completion scripts call.
func (p *program) completeCommand() *cli.Command {
	return &cli.Command{
		Name: "__complete", Hidden: true, SkipFlagParsing: true,
		Usage: "say how a command line may go on",
		Action: func(c *cli.Context) error {
			return cmdline.Complete(c.App, c.Args().Slice()).Write(p.stdout)
		},
	}
}

func (p *program) manCommand() *cli.Command {
	return &cli.Command{
		Name:        "man",
		Usage:       "print the manual page",
		Description: "The page is in roff, for man -l and for packages." + examples("bindery man"),
		Action:      exactly(0, func(c *cli.Context) error { return cmdline.WriteMan(p.stdout, c.App, manSections()...) }),
	}
}

// manSections are what the manual page has besides the commands.
func manSections() []cmdline.ManSection {
	return []cmdline.ManSection{
		{Title: "EXIT STATUS", Items: [][2]string{
			{"0", "Done. diff: the catalogs are the same. probe: the server is serving."},
			{"1", "Any error. validate, bundle validate: there are errors. verify: the image differs from its catalog. diff: the catalogs differ, if there is an answer on standard output. migrate --verify: something was lost. probe: invalid arguments."},
			{"2, 3", "Adding bundles: an image is in the catalog already; another image of the same bundle is."},
			{"2, 3, 4", "probe: no connection, the call failed, not serving. migrate --keep-going: 4 if packages were left out."},
			{"129, 130, 143", "Ended by SIGHUP, SIGINT, SIGTERM; nothing is left behind. serve: SIGHUP loads the catalog again; the others end it with 0."},
			{"141", "Nobody reads standard output any more."},
		}},
		{Title: "ENVIRONMENT", Items: [][2]string{
			{"BINDERY_*", "Values of the flags beside which they stand above; a flag wins over its variable."},
			{"REGISTRY_AUTH_FILE, XDG_RUNTIME_DIR, DOCKER_CONFIG", "Where credentials are looked for, as by podman(1) and docker(1)."},
			{"CONTAINERS_REGISTRIES_CONF, CONTAINERS_POLICY_JSON", "Files in place of registries.conf and policy.json."},
			{"CONTAINERS_STORAGE_CONF, STORAGE_DRIVER, STORAGE_OPTS", "The store of podman, of --load and containers-storage:."},
			{"TMPDIR", "The directory of temporary files."},
			{"GOMEMLIMIT", "serve: the memory that it may take; 85 % of the limit of the control group if it is not set."},
			{"SOURCE_DATE_EPOCH", "The time in the configuration of images that are built, in seconds since 1970. Files in layers always have the time 1970-01-01."},
			{"KUBECONFIG", "The cluster of bundle extract."},
			{"NO_COLOR", "diff prints no colours."},
		}},
		{Title: "FILES", Items: [][2]string{
			{"$XDG_CACHE_HOME/bindery/blobs, $HOME/.cache/bindery/blobs", "Blobs of images from registries; see cache info and cache prune."},
			{"auth.json, registries.conf, policy.json, certs.d", "Those of containers-auth.json(5), containers-registries.conf(5), containers-policy.json(5) and containers-certs.d(5)."},
		}},
	}
}
