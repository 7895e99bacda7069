package option

import (
	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
)

// Answer is the form of an answer.
type Answer struct{ Output string }

// Flags are the flags of commands that answer in text or JSON.
func (o *Answer) Flags() []cli.Flag {
	return []cli.Flag{&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "text",
		Usage: "output `FORMAT` (text|json)", Destination: &o.Output}}
}

// AsJSON reports whether the answer is JSON.
func (o *Answer) AsJSON() (bool, error) {
	switch o.Output {
	case "text", "json":
		return o.Output == "json", nil
	default:
		return false, cmdline.Usagef("invalid --output value %q, expected (text|json)", o.Output)
	}
}
