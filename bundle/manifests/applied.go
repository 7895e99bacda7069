package manifests

// Applied is an object that a cluster gets, with where in the bundle it comes from.
type Applied struct {
	Object
	// File is the file with the object or with the ClusterServiceVersion from which it is generated; it is empty if the
	// bundle has no files, see [FromObjects]. Path is the place in the ClusterServiceVersion of what it is generated
	// from; nil for an object of the bundle.
	File string
	Path []any
}

// origin is where an object comes from: a file, as it is in it if given is set, and else generated.
type origin struct {
	file  string
	given bool
}

// Applied returns the objects that a cluster would get from the bundle, in the order of [Bundle.Manifests], also if its
// install modes or the configuration do not allow it to be installed. If a validator refuses it, and if nothing can be
// generated, they are those of the bundle alone.
func (b *Bundle) Applied(s Settings) []Applied {
	c, err := b.configuration(s)
	if err != nil {
		c = configuration{}
	}
	targets, err := b.targets(s.InstallNamespace, c.targets)
	if err != nil {
		targets = []string{""}
	}
	var g *generation
	if err = b.validate(); err == nil {
		g, err = b.generation(RenderOptions{InstallNamespace: s.InstallNamespace, Certs: s.Certs,
			DeploymentConfig: c.deployment}, targets)
	}
	if err != nil {
		g = &generation{Bundle: b, namespace: s.InstallNamespace}
		for _, d := range b.crds {
			g.from = origin{d.file, true}
			if g.append(d.Object) != nil {
				return nil
			}
		}
		if g.addOthers() != nil {
			return nil
		}
	}
	out := make([]Applied, len(g.objects))
	for i, object := range g.objects {
		out[i] = Applied{Object: object, File: g.origins[i].file}
		if !g.origins[i].given {
			out[i].Path = b.source(object)
		}
	}
	return out
}

// source returns the place in the ClusterServiceVersion of what an object is generated from.
func (b *Bundle) source(o Object) []any {
	switch o.Kind {
	case "Deployment":
		for i, d := range b.deployments() {
			if d.Name == o.Name {
				return []any{"spec", "install", "spec", "deployments", i}
			}
		}
	case "Service", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
		return []any{"spec", "webhookdefinitions"}
	}
	return []any{"spec", "install", "spec"}
}
