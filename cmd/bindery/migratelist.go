package main

import (
	"github.com/urfave/cli/v2"
)

func (p *program) migrateList(c *cli.Context, m *migration) error { return nil }
