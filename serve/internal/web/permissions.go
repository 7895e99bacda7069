package web

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/olmv1/upgrade"
)

// duty is what an account may do in one way, in words.
type duty struct {
	rank           rank
	account, where string
	does           string
	with           []string // what it does it with, sorted
}

// rank is how much a permission allows.
type rank int

const (
	toSecrets   rank = iota // all secrets of the cluster
	toAll                   // a wildcard
	toEscalate              // a way to permissions of others
	toCluster               // in the whole cluster
	toNamespace             // in some namespaces
)

// tags are the names of the ranks that a person should look at.
var tags = [...]literal{toSecrets: "all secrets", toAll: "wildcard", toEscalate: "can gain more rights"}

// rankOf ranks a permission; cluster is set if it is for the whole cluster.
func rankOf(c upgrade.PermissionChange, cluster bool) rank {
	has := func(verbs ...string) bool {
		return slices.ContainsFunc(verbs, func(v string) bool { return slices.Contains(c.Verbs, v) })
	}
	resource, sub, _ := strings.Cut(c.Resource, "/")
	switch {
	case cluster && c.Name == "" && (c.Group == "" || c.Group == "*") && (c.Resource == "secrets" || c.Resource == "*"):
		return toSecrets
	case c.Group == "*", resource == "*", strings.Contains(c.URL, "*"), has("*"):
		return toAll
	case has("bind", "escalate", "impersonate"), c.Role == "ClusterRole cluster-admin",
		c.Group == "" && (sub == "exec" || sub == "attach" || c.Resource == "serviceaccounts/token"),
		c.Group == rbacGroup && strings.Contains(c.Resource, "role") && has("create", "update", "patch"):
		return toEscalate
	case cluster:
		return toCluster
	}
	return toNamespace
}

// verbs are the words for the verbs of Kubernetes; others stand for themselves.
var verbs = map[string]string{"get": "read", "list": "read", "watch": "read", "create": "create", "update": "change",
	"patch": "change", "delete": "delete", "deletecollection": "delete", "post": "post to", "put": "change",
	"*": "do everything with"}

// inWords says what a permission allows, and with what.
func inWords(c upgrade.PermissionChange) (does, with string) {
	var words []string
	for _, known := range []string{"read", "create", "change", "delete"} {
		if slices.ContainsFunc(c.Verbs, func(v string) bool { return verbs[v] == known }) {
			words = append(words, known)
		}
	}
	for _, v := range c.Verbs {
		if word := cmp.Or(verbs[v], v); !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	switch {
	case slices.Contains(c.Verbs, "*"):
		does = verbs["*"]
	case len(words) > 1:
		does = strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
	default:
		does = strings.Join(words, "")
	}
	with = c.Resource
	switch {
	case c.Role != "":
		return "do", "what " + c.Role + " allows"
	case c.URL != "":
		with = c.URL
	case c.Resource == "*" && c.Group == "*":
		with = "everything"
	case c.Resource == "*":
		with = "everything of " + cmp.Or(c.Group, "the core group")
	case c.Group == "*":
		with += " of all groups"
	case c.Group != "":
		with += " (" + c.Group + ")"
	}
	if c.Name != "" {
		with += " “" + c.Name + "”"
	}
	return does, with
}

// duties returns permissions in words, what allows most first.
func duties(accounts []upgrade.Account, of func(upgrade.Account) []upgrade.PermissionChange) []duty {
	found := map[string]*duty{}
	for _, a := range accounts {
		where := "in the whole cluster"
		switch a.Namespace {
		case "":
		case watched:
			where = "in the namespaces that the operator watches"
		default:
			where = "in the namespace " + a.Namespace
		}
		for _, c := range of(a) {
			does, with := inWords(c)
			rank := rankOf(c, a.Namespace == "")
			key := strings.Join([]string{strconv.Itoa(int(rank)), where, a.Subject, does}, "\x00")
			d := found[key]
			if d == nil {
				d = &duty{rank, a.Subject, where, does, nil}
				found[key] = d
			}
			d.with = append(d.with, with)
		}
	}
	var out []duty
	for _, key := range slices.Sorted(maps.Keys(found)) {
		slices.Sort(found[key].with)
		out = append(out, *found[key])
	}
	return out
}

// maxWith is how many things of a duty are shown.
const maxWith = 60

// writeDuties shows duties as a list, those that a person should look at with the reason.
func (p *page) writeDuties(all []duty) {
	p.emit("\n<ul class=\"may\">\n")
	for i, d := range all {
		if i == maxRows || !p.hasSpace() {
			p.emit(`<li>{} more are not shown</li>`, strconv.Itoa(len(all)-i))
			break
		}
		p.emit(`<li><strong>{}</strong> `, name(d.does))
		named := "" // what the names that follow are of, which is said once
		for n, with := range d.with {
			if n > 0 {
				p.emit(", ")
			}
			if n == maxWith {
				p.emit(`and {} more`, strconv.Itoa(len(d.with)-n))
				break
			}
			of, _, ok := strings.Cut(with, " “")
			if ok && of == named {
				with = with[len(of)+1:]
			}
			if named = ""; ok {
				named = of
			}
			p.emit(`<span class="with">{}</span>`, name(with))
		}
		p.emit(` <span class="faint">{}, as {}</span>`, name(d.where), name(strings.TrimPrefix(d.account, "ServiceAccount ")))
		if int(d.rank) < len(tags) {
			p.emit(` <span class="tag old">` + tags[d.rank] + `</span>`)
		}
		p.emit("</li>\n")
	}
	p.emit("</ul>\n")
}

// permissions shows what the operator may do once a bundle is installed, of which all are the manifests, or err is the
// error of reading them.
func (p *page) permissions(all []upgrade.Manifest, err error, facts *csv) error {
	if many := errors.Is(err, fault.ErrLimit); !many && (err != nil || len(all) == 0) {
		return nil // the page says elsewhere that there are none, or shows those that cannot be read as text
	}
	roles := slices.DeleteFunc(all, func(m upgrade.Manifest) bool { return m.Group != rbacGroup })
	var report *upgrade.Report
	switch {
	case err != nil:
	case tooLarge(roles):
		err = fault.ErrLimit
	default:
		report, err = upgrade.Compare(p.ctx, nil, roles, nil)
	}
	p.emit(`<section aria-labelledby="permissions"><h2 id="permissions">Permissions</h2>` + "\n")
	switch {
	case errors.Is(err, fault.ErrLimit):
		p.emit(`<p class="notice">The permissions are too many to be shown.</p>`)
	case p.ctx.Err() != nil:
		return err
	case err != nil:
		p.emit(`<p class="notice">The permissions cannot be read.</p>`)
	default:
		p.mayDo(duties(report.Permissions, func(a upgrade.Account) []upgrade.PermissionChange { return a.Gained }), facts)
	}
	p.emit("</section>\n")
	return nil
}

// mayDo shows the permissions of a bundle: at once those that a person should look at, the others folded.
func (p *page) mayDo(all []duty, facts *csv) {
	if len(all) == 0 {
		p.emit(`<p>The operator asks for no permissions.</p>`)
		return
	}
	p.emit(`<p>What the operator may do once it is installed.`)
	if slices.Contains(facts.modes(), "AllNamespaces") &&
		slices.ContainsFunc(all, func(d duty) bool { return d.rank == toNamespace }) {
		p.emit(` Installed for all namespaces, it watches the whole cluster.`)
	}
	p.emit("</p>\n")
	rest := slices.IndexFunc(all, func(d duty) bool { return int(d.rank) >= len(tags) })
	switch {
	case rest < 0:
		p.writeDuties(all)
	case rest == 0:
		p.emit(`<p>None of it is about all secrets of the cluster or has a wildcard.</p>`)
		p.writeDuties(all)
	default:
		p.writeDuties(all[:rest])
		p.emit(`<details><summary>{}</summary>`, count(len(all)-rest, "more kind")+" of permissions")
		p.writeDuties(all[rest:])
		p.emit("</details>\n")
	}
}
