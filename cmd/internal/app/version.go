package app

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/build/containerfile/fullbuild"
	containerfilecmd "github.com/operator-bindery/bindery/cmd/internal/containerfile"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/internal/version"
)

func versionCommand(p *option.Session) *cli.Command {
	var output string
	return &cli.Command{
		Name:  "version",
		Usage: "print the version",
		Description: `The JSON says more: the kind of the build, and for which platforms a server is embedded.
Started as opm, the program prints the version in opm's form.` + program.Examples("bindery version",
			"bindery version -o json"),
		Flags: []cli.Flag{
			program.AnswerFlag(&output),
		},
		Action: program.Exactly(0, p.Action(func(context.Context, []string) error {
			format, err := program.AnswerFormat(output)
			if err != nil {
				return err
			}
			return printVersion(p, format)
		})),
	}
}

func printVersion(p *option.Session, format program.Format) error {
	info := version.Get()
	text := info.String()
	report := VersionReport{info, buildKind(), build.EmbeddedServers()}
	switch {
	case format == program.JSON:
		return json.NewEncoder(p.Stdout).Encode(report)
	case format == program.YAML:
		return p.PrintValue(format, report)
	case p.Opm:
		text = info.OPM()
	}
	_, err := fmt.Fprintln(p.Stdout, text)
	return err
}

// VersionReport is the answer in JSON.
type VersionReport struct {
	version.Info
	// Build is "usual", "small" (no Containerfiles, no podman store) or "full" (RUN in Containerfiles).
	Build string `json:"build"`
	// Servers are the platforms whose small server is embedded.
	Servers []string `json:"servers"`
}

func buildKind() string {
	switch {
	case containerfilecmd.SmallBuild:
		return "small"
	case fullbuild.Available:
		return "full"
	}
	return "usual"
}
