package checkup

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/check/bundlecheck"
	"github.com/operator-bindery/bindery/check/rules"
	"github.com/operator-bindery/bindery/internal/guard"
)

// related checks the related images of a catalog in their registries.
type related struct {
	*checkup
	subject *rules.CatalogSubject
	places  map[string]rules.Finding // of the first bundle that names the image
}

var relatedRules = []rules.Rule{rules.RelatedAccessible, rules.RelatedMediaType}

// relatedImages collects the related images of a catalog that is going to be checked.
func (c *checkup) relatedImages(s *rules.CatalogSubject) *related {
	r := &related{c, s, map[string]rules.Finding{}}
	if c.Pull {
		s.Related = func(image string, at rules.Finding) {
			if _, ok := r.places[image]; !ok {
				r.places[image] = at
			}
		}
	}
	return r
}

// check opens the images. The media types matter before OpenShift 4.20.
func (r *related) check(ctx context.Context) error {
	wanted := slices.ContainsFunc(relatedRules, r.run.Wants)
	if !wanted {
		return nil
	}
	if !r.Pull {
		r.run.NotRun("needs registries: --pull asks them", relatedRules...)
		return nil
	}
	docker := r.subject.BeforeOpenShift(4, 20)
	var mu sync.Mutex
	var found []rules.Finding
	err := r.each(ctx, slices.Sorted(maps.Keys(r.places)), func(ctx context.Context, image string) {
		f := r.places[image]
		switch mediaType, err := r.mediaType(ctx, image); {
		case err != nil:
			f.Rule = rules.RelatedAccessible.ID
			f.Message = fmt.Sprintf("The %q related image reference is not accessible: %v", image, err)
		case docker && strings.HasPrefix(mediaType, "application/vnd.oci."):
			f.Rule = rules.RelatedMediaType.ID
			f.Message = fmt.Sprintf("related image %s has the media type %s", image, mediaType)
		default:
			return
		}
		mu.Lock()
		defer mu.Unlock()
		found = append(found, f)
	})
	r.run.Find(relatedRules, found)
	return err
}

// each calls visit for names, several at once.
func (c *checkup) each(ctx context.Context, names []string, visit func(context.Context, string)) error {
	return guard.Each(ctx, max(c.Jobs, 4), names, func(ctx context.Context, _ int, name string) error {
		visit(ctx, name)
		return context.Cause(ctx)
	})
}

// mediaType opens an image and returns the media type of its manifest.
func (c *checkup) mediaType(ctx context.Context, name string) (string, error) {
	img, err := c.Render.Images.Image(ctx, name, v1.Platform{})
	if err != nil {
		return "", err
	}
	return img.MediaType, img.Close()
}

// Snapshot is a release snapshot: the images that are released together.
type Snapshot struct {
	Components []struct {
		Name  string `json:"name"`
		Image string `json:"containerImage"`
	} `json:"components"`
}

// maxSnapshot limits the bytes of a snapshot.
const maxSnapshot = 16 << 20

// ReadSnapshot reads a snapshot: JSON with components, or the spec of a Snapshot resource.
func ReadSnapshot(r io.Reader, name string) (*Snapshot, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxSnapshot+1))
	if err == nil && len(text) > maxSnapshot {
		err = fmt.Errorf("larger than %d bytes", maxSnapshot)
	}
	var s struct {
		Snapshot
		Spec *Snapshot `json:"spec"`
	}
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if s.Spec != nil {
		s.Snapshot = *s.Spec
	}
	if len(s.Components) == 0 {
		return nil, fmt.Errorf("%s: has no components with containerImage", name)
	}
	return &s.Snapshot, nil
}

// snapshot checks a bundle against the release snapshot.
func (c *checkup) snapshot(ctx context.Context, s bundlecheck.Subject) error {
	all := bundlecheck.SnapshotRules()
	switch {
	case c.Snapshot == nil:
		c.run.NotRun("needs a release snapshot: say --snapshot FILE", all...)
		return nil
	case !slices.ContainsFunc(all, c.run.Wants):
		return nil
	}
	c.run.Ran(bundlecheck.RuleSnapshotPinned)
	digests := map[digest.Digest]bool{}
	var found []rules.Finding
	for _, component := range c.Snapshot.Components {
		repository, d, pinned := strings.Cut(component.Image, "@")
		digests[digest.Digest(d)] = pinned
		own := s.Image != nil && trimTag(repository) == trimTag(s.Image.Name)
		if own && !pinned {
			found = append(found,
				rules.Finding{Rule: bundlecheck.RuleSnapshotPinned.ID, Image: component.Image, Message: fmt.Sprintf(
					"The %q image reference is not pinned in the input snapshot.", component.Image)})
		}
	}
	c.run.Find([]rules.Rule{bundlecheck.RuleSnapshotPinned}, found)
	return c.snapshotImages(ctx, s, digests)
}

// snapshotImages pulls what the snapshot names and what the bundle names beyond it.
func (c *checkup) snapshotImages(ctx context.Context, s bundlecheck.Subject, digests map[digest.Digest]bool) error {
	asked := []rules.Rule{bundlecheck.RuleUnmapped, bundlecheck.RuleSnapshotAccessible}
	if !c.Pull {
		c.run.NotRun("needs registries: --pull asks them", asked...)
		return nil
	}
	places := map[string]rules.Finding{}
	for _, component := range c.Snapshot.Components {
		places[component.Image] = rules.Finding{Rule: bundlecheck.RuleSnapshotAccessible.ID, Image: component.Image,
			Message: fmt.Sprintf("The %q image reference is not accessible in the input snapshot.", component.Image)}
	}
	for _, f := range s.Images() {
		if _, d, _ := strings.Cut(f.Image, "@"); !digests[digest.Digest(d)] {
			f.Rule = bundlecheck.RuleUnmapped.ID
			f.Message = fmt.Sprintf("The %q CSV image reference is not in the snapshot or accessible.", f.Image)
			places[f.Image] = f
		}
	}
	var mu sync.Mutex
	var found []rules.Finding
	err := c.each(ctx, slices.Sorted(maps.Keys(places)), func(ctx context.Context, image string) {
		if _, err := c.mediaType(ctx, image); err != nil {
			mu.Lock()
			defer mu.Unlock()
			found = append(found, places[image])
		}
	})
	c.run.Find(asked, found)
	return err
}

// trimTag returns the repository of an image name.
func trimTag(name string) string {
	name, _, _ = strings.Cut(strings.TrimPrefix(name, "docker://"), "@")
	if at := strings.LastIndexByte(name, ':'); at > strings.LastIndexByte(name, '/') {
		return name[:at]
	}
	return name
}
