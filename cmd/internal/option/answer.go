package option

import (
	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
)

// AnswerFlags select the form of an answer.
func AnswerFlags() []cli.Flag {
	return []cli.Flag{&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "text",
		Usage: "output `FORMAT` (text|json)"}}
}

func CheckAnswer(c *cli.Context) (asJSON bool, err error) {
	switch format := c.String("output"); format {
	case "text", "json":
		return format == "json", nil
	default:
		return false, cmdline.Usagef("invalid --output value %q, expected (text|json)", format)
	}
}
