package mirror

import (
	"cmp"
	"context"
	"fmt"

	"github.com/operator-bindery/bindery/edit"
)

// lackOf tells why a bundle cannot be in its catalog; empty if nothing is known against it.
func (r *run) lackOf(u user) string {
	c := r.catalogs[u.catalog]
	for i := range c.bundles {
		if b := &c.bundles[i]; b.pkg == u.pkg && b.name == u.bundle {
			lack, _ := r.lack(b, false)
			return lack
		}
	}
	return ""
}

// lack tells why a bundle cannot be in its catalog, and which image is the reason. Own says whether the image of the
// bundle itself counts.
func (r *run) lack(b *catalogBundle, own bool) (why, image string) {
	if b.bad != nil {
		return b.bad.Error(), ""
	}
	for _, i := range b.images {
		switch {
		case i.account.Status == Blocked:
			if r.o.PruneBlocked {
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

// settle decides on each catalog after the images are copied, and publishes those that can be.
func (r *run) settle(ctx context.Context) error {
	for _, c := range r.catalogs {
		err := r.settleCatalog(ctx, c)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			c.account.Error = err.Error()
			if fatal(err) {
				r.note(r.unpublishedProblem(c, err))
				return err
			}
			r.unpublished(c, err)
		}
		r.progress.add(func(e *Event) { e.Images++; e.Image, e.Err = c.op.Catalog.Name(), err })
	}
	return nil
}

// unpublished notes why a catalog is not published. Who reports the run says it: the log says that it is so.
func (r *run) unpublished(c *catalog, err error) {
	r.note(r.unpublishedProblem(c, err))
	r.log.warn(c.op.Catalog.Name() + ": the catalog is not " + r.publishing())
	r.log.debug(fmt.Sprintf("%s: %v", c.op.Catalog.Name(), err))
}

func (r *run) unpublishedProblem(c *catalog, err error) Problem {
	return Problem{Level: Fault, Object: c.op.Catalog.Name(),
		Message: fmt.Sprintf("the catalog is not %s: %v", r.publishing(), err)}
}

// lackingBundles lists the bundles of a catalog that lack an image.
func (r *run) lackingBundles(c *catalog) (out []LeftOut) {
	for i := range c.bundles {
		b := &c.bundles[i]
		if why, image := r.lack(b, true); why != "" {
			out = append(out, LeftOut{b.pkg, b.name, b.version, image, why})
		}
	}
	return out
}

func (r *run) settleCatalog(ctx context.Context, c *catalog) error {
	out := r.lackingBundles(c)
	if r.o.Shard.Count > 0 {
		return nil // the images of other parts may not be there yet
	}
	if len(out) > 0 {
		if r.o.OnMissing == FailMissing {
			return fmt.Errorf("%s of %s lack images: %s", itoa(len(out)), bundlesText(len(c.bundles)), summary(out))
		}
		if n := c.waiting(); n > 0 {
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
		if err := c.apply(ctx, r.o.Filter, without); err != nil {
			return fmt.Errorf("without bundles that lack images: %w", err)
		}
		if err := c.refused(); err != nil {
			return fmt.Errorf("without bundles that lack images: %w", err)
		}
		for _, l := range out {
			r.note(Problem{Level: Warning, Object: c.op.Catalog.Name(), Message: l.text()})
			r.log.warn(fmt.Sprintf("%s: bundle %s of package %s is taken out", c.op.Catalog.Name(), l.Bundle, l.Package))
		}
		c.account.LeftOut, c.asIs = out, false
	}
	c.describe()
	if err := r.publish(ctx, c); err != nil {
		return err
	}
	return r.checkTag(ctx, c)
}

// publishing is what a run does with a catalog that is whole.
func (r *run) publishing() string {
	if r.o.Mode == ToDisk {
		return "packed"
	}
	return "published"
}

func (l LeftOut) text() string {
	return fmt.Sprintf("bundle %s of package %s is taken out: %s", l.Bundle, l.Package, l.because())
}

func (l LeftOut) because() string {
	if l.Image == "" {
		return l.Reason
	}
	return l.Image + ": " + l.Reason
}

func bundlesText(n int) string {
	if n == 1 {
		return "1 bundle"
	}
	return itoa(n) + " bundles"
}

// summary names the first of what is left out.
func summary(out []LeftOut) string {
	text := fmt.Sprintf("bundle %s (%s)", out[0].Bundle, cmp.Or(out[0].Image, out[0].Reason))
	if len(out) > 1 {
		text += fmt.Sprintf(" and %d more", len(out)-1)
	}
	return text
}

// describe fills in the packages of the account.
func (c *catalog) describe() {
	c.account.Packages = map[string]CatalogedPackage{}
	for i := range c.result.Catalog.Packages {
		p := &c.result.Catalog.Packages[i]
		c.account.Packages[p.Name] = CatalogedPackage{DefaultChannel: p.DefaultChannel, Channels: map[string][]string{}}
	}
	for i := range c.result.Catalog.Channels {
		h := &c.result.Catalog.Channels[i]
		names := make([]string, len(h.Entries))
		for n, e := range h.Entries {
			names[n] = e.Name
		}
		if p, ok := c.account.Packages[h.Package]; ok {
			p.Channels[h.Name] = names
		}
	}
}

// toPublish is the number of catalogs that are published at the end.
func (r *run) toPublish() int {
	if r.o.Shard.Count > 0 {
		return 0
	}
	return len(r.catalogs)
}
