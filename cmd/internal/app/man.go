package app

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/cmd/internal/secret"
	"github.com/operator-bindery/bindery/internal/atomicfs"
)

// manOptions are the flags of "man".
type manOptions struct {
	roff, markdown bool
	to             string
}

func manCommand(p *option.Session) *cli.Command {
	o := &manOptions{}
	return &cli.Command{
		Name:      "man",
		Usage:     "print a manual page",
		ArgsUsage: "[COMMAND...]",
		Description: "The page is that of COMMAND, such as \"build catalog\", or one of the whole program. --roff " +
			"prints it for \"man -l -\". --to writes the page of the program and one for each command in roff." +
			program.Examples("bindery man", "bindery man build catalog", "bindery man --roff migrate",
				"bindery man --to man1"),
		Flags: []cli.Flag{&cli.BoolFlag{Name: "roff", Destination: &o.roff, Usage: "print the page in roff, in place of plain text"},
			&cli.StringFlag{Name: "to", Destination: &o.to, Usage: "write all pages to the directory `DIR`, which is made " +
				"if it does not exist"},
			// For the documentation site.
			&cli.BoolFlag{Name: "markdown", Destination: &o.markdown, Hidden: true, Usage: "write the pages of --to in Markdown"}},
		Action: p.Action(func(_ context.Context, names []string) error { return o.run(p, names) }),
	}
}

func (o *manOptions) run(p *option.Session, names []string) error {
	app, dir := p.Command.App, o.to
	switch {
	case p.Given("to") && dir == "":
		return cmdline.Usagef("--to must not be empty")
	case dir != "" && len(names) > 0:
		return cmdline.Usagef("--to writes the pages of all commands: give no COMMAND with it")
	case o.markdown && dir == "":
		return cmdline.Usagef("--markdown needs --to")
	case o.markdown:
		return writeMarkdownPages(app, dir)
	case dir != "":
		return writeManPages(app, dir)
	}
	line, err := cmdline.Parse(app, slices.Concat([]string{app.HelpName}, names))
	if err != nil {
		return err
	}
	if len(line.Path) != len(names) {
		return cmdline.Usagef("%q has no commands", line.Name(app.HelpName))
	}
	if o.roff {
		return cmdline.WriteMan(p.Stdout, app, line, manSections()...)
	}
	return cmdline.WritePage(p.Stdout, app, line, manSections()...)
}

// writeMarkdownPages writes the page of the program, commands.md, and one for each of its commands to a directory.
func writeMarkdownPages(app *cli.App, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, l := range cmdline.Lines(app) {
		if len(l.Path) > 1 {
			continue
		}
		var page bytes.Buffer
		if err := cmdline.WriteMarkdown(&page, app, l, manSections()...); err != nil {
			return err
		}
		name := "commands"
		if l.Leaf() != nil {
			name = cmdline.PageName(app, l)
		}
		if err := atomicfs.WriteFile(filepath.Join(dir, name+".md"), page.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// writeManPages writes the page of each command to a directory.
func writeManPages(app *cli.App, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, l := range cmdline.Lines(app) {
		var page bytes.Buffer
		if err := cmdline.WriteMan(&page, app, l, manSections()...); err != nil {
			return err
		}
		if err := atomicfs.WriteFile(filepath.Join(dir, cmdline.PageName(app, l)+".1"), page.Bytes(),
			0o644); err != nil {
			return err
		}
	}
	return nil
}

// manSections returns the additional sections of the manual page.
func manSections() []cmdline.ManSection {
	return []cmdline.ManSection{
		{Title: "EXIT STATUS", Items: [][2]string{
			{"0", "Success. diff: the catalogs are equal. probe: the server is serving."},
			{"1",
				"Any error. validate, bundle validate: there are errors. verify: the image differs from its catalog, " +
					"or is not signed. diff: the catalogs differ, if standard output has the differences. migrate " +
					"--verify: the output lacks something of the source. resolve: nothing is resolved. probe: " +
					"invalid arguments."},
			{"2, 3",
				"Adding bundles: the catalog already contains the image (2), or another image of the same bundle (3)."},
			{"4",
				"Done in part. --keep-going: but for what the messages name. mirror: something that is asked for is " +
					"not there, or could not be deleted. migrate --repair: something was repaired."},
			{"2, 3, 4", "probe: no connection (2), the call failed (3), not serving (4)."},
			{"129, 130, 143",
				"Terminated by SIGHUP, SIGINT or SIGTERM; no partial output is left. serve: SIGHUP reloads the " +
					"catalog, the others stop the server with status 0."},
			{"141", "Standard output was closed by its reader."},
		}},
		{Title: "ENVIRONMENT", Items: [][2]string{
			{"BINDERY_*", "Defaults of the flags that name them above; a flag overrides its variable."},
			{secret.PassphraseVariable, "The passphrase of the keys of --sign-key."},
			{"SIGSTORE_ID_TOKEN, ACTIONS_ID_TOKEN_REQUEST_URL, ACTIONS_ID_TOKEN_REQUEST_TOKEN",
				"The identity token of --sign-keyless, and where a job of GitHub Actions gets one."},
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
			{"$XDG_CACHE_HOME/bindery/tuf, $HOME/.cache/bindery/tuf",
				"The trusted root and the services of Sigstore's public instance."},
			{"auth.json, registries.conf, registries.d, policy.json, certs.d",
				"Those of containers-auth.json(5), containers-registries.conf(5), containers-registries.d(5), " +
					"containers-policy.json(5) and containers-certs.d(5)."},
		}},
	}
}
