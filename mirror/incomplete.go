package mirror

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/mirror/filter"
)

// removeIncompleteBundles takes the bundles that lack images out of a catalog, after the images are copied. The error
// is why the catalog cannot be published.
func (r *run) removeIncompleteBundles(ctx context.Context, c *catalog) error {
	o := r.o
	out := c.lackingBundles(o.PruneBlocked)
	if len(out) == 0 {
		return nil
	}
	if o.OnMissing == FailMissing {
		return fmt.Errorf("%s of %s lack images: %s", strconv.Itoa(len(out)), bundlesText(len(c.bundles)), summary(out))
	}
	if n := c.countPending(); n > 0 {
		return fmt.Errorf("%d of its images are not at the target, and their sources have them: the run of a "+
			"shard has not copied them; --on-missing skip-bundle publishes the catalog without their bundles", n)
	}
	if c.onlyAsIs != nil {
		return fmt.Errorf("bundles that lack images cannot be taken out: %w", c.onlyAsIs)
	}
	if len(out) == len(c.bundles) {
		return fmt.Errorf("all its bundles lack images: %s", summary(out))
	}
	var without []edit.Name
	for _, l := range out {
		without = append(without, edit.Name{Package: l.Package, Bundle: l.Bundle})
	}
	if err := c.filter(ctx, o.Filter, without); err != nil {
		return fmt.Errorf("without bundles that lack images: %w", err)
	}
	if err := c.checkResult(); err != nil {
		return fmt.Errorf("without bundles that lack images: %w", err)
	}
	for _, l := range out {
		r.report.addProblem(Problem{Level: filter.Warning, Object: c.op.Catalog.Name(), Message: l.text()})
		r.report.log.warn(fmt.Sprintf("%s: bundle %s of package %s is taken out", c.op.Catalog.Name(), l.Bundle, l.Package))
	}
	c.account.LeftOut, c.asIs = out, false
	return nil
}

// lackingBundles lists the bundles that lack an image.
func (c *catalog) lackingBundles(pruneBlocked bool) (out []leftOut) {
	for i := range c.bundles {
		b := &c.bundles[i]
		if why, image := b.lack(pruneBlocked, true); why != "" {
			out = append(out, leftOut{b.pkg, b.name, b.version, image, why})
		}
	}
	return out
}

// lacking tells why the image of a release or of a bundle is not copied: the release lacks another image, and the bundle
// is left out of every catalog that has it.
func (i *item) lacking(pruneBlocked bool) string {
	switch {
	case i.kind == Release && i.release != nil:
		return i.release.lack()
	case i.kind != Bundle:
		return ""
	}
	why := ""
	for _, u := range i.users {
		lack := u.lack(pruneBlocked)
		if lack == "" {
			return ""
		}
		why = lack
	}
	return why
}

// lack tells why the bundle cannot be in its catalog; empty if nothing is known against it. The image of the bundle
// itself does not count.
func (u user) lack(pruneBlocked bool) string {
	for i := range u.catalog.bundles {
		if b := &u.catalog.bundles[i]; b.pkg == u.pkg && b.name == u.bundle {
			lack, _ := b.lack(pruneBlocked, false)
			return lack
		}
	}
	return ""
}

// lack tells why a bundle cannot be in its catalog, and which image is the reason. Own says whether the image of the
// bundle itself counts.
func (b *catalogBundle) lack(pruneBlocked, own bool) (why, image string) {
	if b.bad != nil {
		return b.bad.Error(), ""
	}
	for _, i := range b.images {
		switch {
		case i.account.Status == Blocked:
			if pruneBlocked {
				return "the image is blocked", i.name()
			}
		case i.kind == Bundle && !own:
		case i.account.Status == Failed:
			return i.account.Error, i.name()
		case i.account.Status == Skipped && i.account.Error != "":
			// The image of a bundle is skipped for what another image of it lacks, which is the one to name.
			why, image = i.account.Error, i.name()
		}
	}
	return why, image
}

func (l leftOut) text() string {
	return fmt.Sprintf("bundle %s of package %s is taken out: %s", l.Bundle, l.Package, l.because())
}

func (l leftOut) because() string {
	if l.Image == "" {
		return l.Reason
	}
	return l.Image + ": " + l.Reason
}

func bundlesText(n int) string {
	if n == 1 {
		return "1 bundle"
	}
	return strconv.Itoa(n) + " bundles"
}

// summary names the first of what is left out.
func summary(out []leftOut) string {
	text := fmt.Sprintf("bundle %s (%s)", out[0].Bundle, cmp.Or(out[0].Image, out[0].Reason))
	if len(out) > 1 {
		text += fmt.Sprintf(" and %d more", len(out)-1)
	}
	return text
}
