package main

import (
	"encoding/json"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/fullbuild"
	"github.com/operator-bindery/bindery/internal/serverbin"
	"github.com/operator-bindery/bindery/internal/version"
)

func (p *program) versionCommand() *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "print the version",
		Description: `The JSON says more: the kind of the build, and for which platforms a server is embedded.
Started as opm, the program prints the version in opm's form.` + examples("bindery version",
			"bindery version -o json"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "output `FORMAT` (json)"},
		},
		Action: exactly(0, func(c *cli.Context) error {
			format, err := listFormat(c, "json")
			if err != nil {
				return err
			}
			return p.printVersion(format)
		}),
	}
}

func (p *program) printVersion(format string) error {
	info := version.Get()
	text := info.String()
	switch {
	case format == "json":
		return json.NewEncoder(p.stdout).Encode(versionReport{info, buildKind(), serverbin.Embedded()})
	case p.opm:
		text = info.OPM()
	}
	_, err := fmt.Fprintln(p.stdout, text)
	return err
}

// versionReport is the answer in JSON.
type versionReport struct {
	version.Info
	// Build is "usual", "small" (no Containerfiles, no podman store) or "full" (RUN in Containerfiles).
	Build string `json:"build"`
	// Servers are the platforms whose small server is embedded.
	Servers []string `json:"servers"`
}

func buildKind() string {
	switch {
	case smallBuild:
		return "small"
	case fullbuild.Available:
		return "full"
	}
	return "usual"
}
