package rules

// Upgrades sums up which upgrades OLM v1 refuses for their CustomResourceDefinitions.
type Upgrades struct {
	// Judged is how many upgrades were judged, Refused how many of them OLM v1 refuses, Unknown how many could not be
	// judged, and LeftOut how many begin or end at a bundle that OLM v1 does not install.
	Judged  int `json:"judged"`
	Refused int `json:"refused"`
	Unknown int `json:"unknown"`
	LeftOut int `json:"leftOut"`
	// Missing are the bundles whose manifests are not known, for which upgrades could not be judged.
	Missing []BundleName `json:"missing,omitempty"`
	// Refusals are what is refused, by package and bundle.
	Refusals []UpgradeRefusal `json:"refusals,omitempty"`
	// More is how many refusals there are beyond these.
	More int `json:"more,omitempty"`
}

// BundleName names a bundle of a package.
type BundleName struct {
	Package string `json:"package"`
	Bundle  string `json:"bundle"`
}

// UpgradeRefusal is a refusal of upgrades to a bundle.
type UpgradeRefusal struct {
	Package string `json:"package"`
	// Bundle is the bundle to which the upgrades lead, From the bundles from which OLM v1 refuses them with this message.
	Bundle string        `json:"bundle"`
	From   []UpgradeFrom `json:"from"`
	// Definitions are the CustomResourceDefinitions for which it does.
	Definitions []string `json:"definitions"`
	// Message is that of operator-controller.
	Message string `json:"message"`
}

// UpgradeFrom is a bundle that an upgrade begins at. Channels are those whose entries allow it; the bundles of a
// directory have none.
type UpgradeFrom struct {
	Bundle   string   `json:"bundle"`
	Channels []string `json:"channels,omitempty"`
}

// SetUpgrades records what is known of upgrades.
func (r *Run) SetUpgrades(u *Upgrades) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.upgrades = u
}

// Refuses reports whether a rule of OLM v1 that refuses a bundle is broken so far.
func (r *Run) Refuses(pkg, bundle string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.refused[bundleKey{r.at.Target, pkg, ""}])+len(r.refused[bundleKey{r.at.Target, pkg, bundle}]) > 0
}
