package migrate

import (
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/migrate"
	"github.com/operator-bindery/bindery/sqlite"
)

// reportFindings logs one line for each kind of difference between the catalog and the database. It also does so if no
// report was requested. opm prints nothing.
func reportFindings(p *option.Session, r *migrate.Report, reportFile string) {
	if p.Opm {
		return
	}
	where := program.WhereListed("report", reportFile)
	p.LogFound(p.Log.Warn, "dropped data that a catalog cannot represent", program.Findings(r.Findings, sqlite.Dropped), where)
	p.LogFound(p.Log.Warn, "repaired missing or damaged data of the source", program.Findings(r.Findings, sqlite.Repaired),
		where)
	p.LogFound(p.Log.Info, "derived data that the database does not store", program.Findings(r.Findings, sqlite.Derived), where)
}
