package charts

import "context"

// Download gets the archive of an entry.
func Download(ctx context.Context, g *Getter, e *Entry, repository string) error {
	u, err := baseURL(repository)
	if err != nil {
		return err
	}
	return g.download(ctx, e, u, &Archive{})
}
