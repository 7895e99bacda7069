package mirror

import "github.com/operator-bindery/bindery/internal/webclient"

// ChartOptions are how the charts of an image set are got and rendered.
type ChartOptions struct {
	// Client asks repositories, and [Options].Images registries. With [FromDisk] neither is asked.
	Client *webclient.Client
	// Values are texts of values in YAML, by the names of charts, which replace those of the charts.
	Values map[string][]byte
	// KubeVersion, unless empty, is the version of Kubernetes that charts are rendered for. Otherwise it is that of the newest
	// release of the run, or [DefaultKubeVersion].
	KubeVersion string
	// APIVersions are further APIs of the cluster, GROUP/VERSION or GROUP/VERSION/KIND.
	APIVersions []string
	// Compat keeps to what oc-mirror does: charts are rendered for its version of Kubernetes without OpenShift, and images are
	// taken from where it looks; what others there are is noted as not mirrored. Pinned image sets keep the rules of versions.
	Compat bool
	// Tests counts the images of tests, too.
	Tests bool
}

// DefaultKubeVersion is the version of Kubernetes that charts are rendered for where no release says which, and
// compatKubeVersion that of oc-mirror.
const (
	DefaultKubeVersion = "v1.33.0"
	compatKubeVersion  = "v1.20.0"
)
