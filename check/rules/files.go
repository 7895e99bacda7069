package rules

import (
	"context"
	"io/fs"
)

var fileChecks = []Check[*catalogCheck]{
	{[]Rule{{ID: "olmv1.configs-label", Severity: Error, Profiles: v1, Scopes: onCatalogs,
		Title: "The image names the directory of its catalog by a label.",
		Fix:   "build the image with bindery build catalog"}}, findNoLabel},
	{[]Rule{{ID: "olmv1.link", Severity: Error, Profiles: v1, Scopes: onCatalogs,
		Title: "The catalog has regular files only, no links and no devices.",
		Fix:   "write the file itself: catalogd fails on links to directories and reads linked files twice"}},
		findLinks},
	{[]Rule{{ID: "olmv1.image-view", Severity: Error, Profiles: v1, Scopes: onCatalogs,
		Title: "catalogd serves the files of the image that container engines show.",
		Fix:   "build the image with bindery: an opaque marker in the directory hides what lower layers have"}},
		findOther},
}

func findNoLabel(_ context.Context, c *catalogCheck, emit Emit) {
	if c.Image == nil {
		return
	}
	if _, ok := c.Image.Labels[labelConfigs]; !ok {
		emit(Finding{Field: labelConfigs,
			Message: "catalog image is missing the required label \"" + labelConfigs + "\""})
	}
}

func findLinks(ctx context.Context, c *catalogCheck, emit Emit) {
	for _, f := range c.Unread {
		emit(f)
	}
	_ = fs.WalkDir(c.FS, ".", func(name string, d fs.DirEntry, err error) error { // errors are found when it is read
		switch {
		case ctx.Err() != nil:
			return fs.SkipAll
		case err != nil || d.IsDir() || d.Type().IsRegular():
			return nil
		case d.Type()&fs.ModeSymlink != 0:
			emit(Finding{File: name, Message: "the file is a symbolic link"})
		default:
			emit(Finding{File: name, Message: "the file is neither a regular file nor a directory"})
		}
		return nil
	})
}

func findOther(_ context.Context, c *catalogCheck, emit Emit) {
	if c.Image == nil {
		return
	}
	for _, f := range c.Image.Differences {
		emit(f)
	}
}
