package edittest

import "github.com/operator-bindery/bindery/edit"

var (
	etcd = "community/etcd: v0.6.1 v0.9.0 v0.9.2 v0.9.2-clusterwide v0.9.4 v0.9.4-clusterwide"
	sts  = "community/silicom-sts-operator: v0.0.1 v0.0.2 v0.0.3 v0.0.4 v0.0.5 v0.0.6"
	prom = "community/prometheus: v0.14.0 v0.15.0 v0.22.2 v0.27.0 v0.32.0 v0.37.0 v0.47.0 v0.56.3"

	skupper = "community/skupper-operator: v1.5.3 v1.6.0 v1.7.0 v1.7.1 v1.8.0 v1.8.1 v1.8.2 v1.8.3 v1.8.4 v1.9.0 " +
		"v1.9.1 v1.9.2 v1.9.3 v1.9.4 v1.9.6"
	cross = "community/universal-crossplane: v1.2.1-up.3 v1.2.1-up.4 v1.2.2-up.1 v1.2.3-up.1 v1.3.1-up.1 " +
		"v1.3.3-up.1 v1.4.3-up.1 v1.5.1-up.1"
	kairos = "community/kairos-operator: v2.0.1 v2.1.0 v2.1.1 v2.2.0"
	health = "community/node-healthcheck-operator: v0.1.1 v0.3.0 v0.5.0 v0.6.0 v0.6.1 v0.7.0 v0.8.0 v0.9.0 v0.10.0 " +
		"v0.10.3 v0.11.0 v0.12.0"
	rhoas = "community/rhoas-operator: v0.6.8 v0.7.1 v0.7.2 v0.7.6 v0.7.8 v0.7.9 v0.7.10 v0.8.2 v0.9.0 v0.9.1 " +
		"v0.9.2 v0.9.3 v0.9.5 v0.9.6 v0.11.0 v0.12.0 v0.13.0"
	deprec   = "synth/synth-deprec: v1.0.0 v1.1.0 v1.2.0 v1.3.0 v1.4.0 v2.0.0"
	subsBase = "synth/synth-subs: v1.0.0 v1.1.0 v1.2.0"
	subs     = "synth/synth-subs: v1.0.0 v1.1.0 v1.1.0-0.1664.p v1.2.0 v1.2.0-0.1700.p"

	medium = []string{etcd, prom, sts, skupper,
		"community/pelorus-operator: v0.0.1 v0.0.2 v0.0.3 v0.0.4 v0.0.5 v0.0.6 v0.0.7 v0.0.8 v0.0.9",
		"community/rabbitmq-messaging-topology-operator: v1.8.0 v1.9.0 v1.10.0 v1.10.1 v1.10.2 v1.10.3 v1.11.0 " +
			"v1.12.0 v1.12.1 v1.12.2 v1.13.0 v1.14.1 v1.14.2 v1.15.0 v1.16.0 v1.17.4 v1.18.1 v1.18.2 v1.19.2 v1.19.3",
		"community/file-integrity-console-plugin: v0.3.1 v0.4.0 v0.4.0-ocp4.16 v0.4.0-ocp4.19 v0.4.1 v0.4.1-ocp4.16 " +
			"v0.4.1-ocp4.19",
		"community/cockroachdb: v2.0.9 v2.1.1 v2.1.11 v3.0.7 v5.0.3 v5.0.4 v6.0.0",
		"community/apicurito: v0.1.0 v1.0.1 v1.0.2 v1.0.3",
		"community/dapr-kubernetes-operator: v0.0.3 v0.0.4 v0.0.5 v0.0.6 v0.0.7 v0.0.8 v0.0.9 v0.0.10 v0.0.11 " +
			"v0.0.12 v0.0.13"}
	mediumDigest = []string{
		"etcd@sha256:39743e9a56f4de7861b7fcf7d3a7ec4171fd8d1f1457e0305fcbdfb54c1fe280",
		"etcd@sha256:ecb7ca6c2475004ef4ca26015c0e892ef7acef46a655294968909664cd80e960",
		"etcd@sha256:e456d0b3716de915b5ade9579124e8e123ac7e84100a22bc042bd16ddbee305d",
		"etcd@sha256:a1ab43f28c8901492fa20ff9c3a6e84ee5054ae9925c0427ad23660b38e0e599",
		"etcd@sha256:20764874ca1b2665ae825cd2e3bfbf0c1e242ec0e116e9f6a2f56aa5b5ba677a",
		"etcd@sha256:a00354c534ce2e3e3c61660b321776a24d999bda914e07936dc8b647547916d9",
		"silicom-sts-operator@sha256:9dbdbebd41e49d1218e38ba445ba231a7ed88b99c1ca6c7a0393a15d9b883122",
		"silicom-sts-operator@sha256:71bbc637f3a3a74fab1ac666857f748894c8487942c50f9c47d4e50685a08ad4",
		"silicom-sts-operator@sha256:a346c3c33a33b03e860cc3517cc30768d9dd16c89ee9a0ee7af4d219e68da06a",
		"silicom-sts-operator@sha256:2aed854a517c5332418f070d53f4bade5df0f45163c0df3990ca71dfed380f5f",
		"silicom-sts-operator@sha256:1e0d1cdedcd5a0d518c8bf0e4233c888ad1846f05ccd8cb2acd718b93109dc41",
		"silicom-sts-operator@sha256:9ebc892e86c4b1616b0925381da88d7701d7e31162da145378e0513bb35494d7"}
)

func byDigest() []string {
	var out []string
	for _, d := range mediumDigest {
		out = append(out, Registry+"community/"+d)
	}
	return out
}

// Sequences are the steps that made the recorded databases. Those with a From field start with opm's graph of that
// database.
var Sequences = []Sequence{
	{Database: "small", Steps: []Step{add(edit.AddOptions{}, etcd, sts)}, Objects: true},
	{Database: "small-digest", Steps: []Step{addRefs(edit.AddOptions{}, byDigest())}, Objects: true},
	{Database: "medium", Steps: []Step{add(edit.AddOptions{}, medium...)}, Objects: true},
	{Database: "constraint", Steps: []Step{add(edit.AddOptions{}, "synth/synth-constraint: v0.1.0 v0.2.0", etcd, prom)},
		Objects: true},
	{Database: "incremental", Steps: each(edit.AddOptions{}, skupper), Objects: true},
	{Database: "incremental-semver", Steps: each(edit.AddOptions{Mode: edit.SemVer}, cross)},
	{Database: "deprec-base", Steps: []Step{add(edit.AddOptions{}, deprec)}, Objects: true},
	{Database: "subs", Steps: []Step{add(edit.AddOptions{SubstitutesFor: true}, subs)}, Objects: true},
	{Database: "subs-two-step", Steps: []Step{
		add(edit.AddOptions{SubstitutesFor: true}, subsBase),
		add(edit.AddOptions{SubstitutesFor: true}, "synth/synth-subs: v1.1.0-0.1664.p"),
		add(edit.AddOptions{SubstitutesFor: true}, "synth/synth-subs: v1.2.0-0.1700.p"),
	}, Objects: true},
	{Database: "subs-noalpha", Steps: []Step{
		add(edit.AddOptions{}, subs).fails(1, edit.ErrAlpha, "SubstitutesFor is an alpha-only feature"),
		add(edit.AddOptions{Permissive: true}, subs),
	}, Why: "opm keeps the bundles that it added before it failed; what it keeps is what a permissive add adds",
		Objects: true},
	{Database: "overwrite", From: "small",
		Steps: []Step{add(edit.AddOptions{OverwriteLatest: true}, "synth/etcd-overwrite: v0.9.4")}, Objects: true},
	{Database: "overwrite-notlatest", From: "small", Steps: []Step{
		add(edit.AddOptions{OverwriteLatest: true}, "synth/etcd-overwrite: v0.9.2").fails(1, edit.ErrOverwrite,
			"Cannot overwrite a bundle that is not at the head of a channel using --overwrite-latest"),
	}, Objects: true},
	{Database: "readd", From: "small", Steps: []Step{
		add(edit.AddOptions{}, "community/etcd: v0.9.4").fails(2, edit.ErrImageExists,
			"Bundle 127.0.0.1:5056/community/etcd:v0.9.4 already exists\nBundle already added that provides package "+
				"and csv"),
	}, Objects: true},
	{Database: "replaces-fail-permissive", Steps: []Step{add(edit.AddOptions{Permissive: true}, kairos)},
		Objects: true},
	{Database: "replaces-fail", Steps: []Step{
		add(edit.AddOptions{}, kairos).fails(1, edit.ErrGraph,
			"add prunes bundle kairos-operator.v2.0.1 (127.0.0.1:5056/community/kairos-operator:v2.0.1) from package "+
				"kairos-operator, channel alpha: this may be due to incorrect channel head (kairos-operator.v2.2.0, "+
				"skips/replaces [kairos-operator.v2.1.1]). Be aware that"),
		add(edit.AddOptions{Permissive: true}, kairos),
	}, Why: "opm changes the database although the add fails; the graph is that of a permissive add", Objects: true},
	{Database: "nodefault", Steps: []Step{
		add(edit.AddOptions{}, "community/kairos-operator: v2.0.1", "synth/synth-nodefault: v0.1.0").fails(1,
			edit.ErrDefaultChannel, "unable to determine default channel among channel heads"),
		add(edit.AddOptions{Permissive: true}, "community/kairos-operator: v2.0.1", "synth/synth-nodefault: v0.1.0"),
	}, Why: "opm keeps the package that it could add", Objects: true},
	{Database: "deprec-readd", From: "deprec-v1.2.0", Steps: []Step{
		add(edit.AddOptions{}, "synth/synth-deprec: v1.1.0").fails(1, edit.ErrGraph,
			"add prunes bundle synth-deprec.v1.1.0 (127.0.0.1:5056/synth/synth-deprec:v1.1.0) from package "+
				"synth-deprec, channel stable: this may be due to incorrect channel head (synth-deprec.v1.3.0, "+
				"skips/replaces [synth-deprec.v1.2.0])."),
	}, Objects: true},
	{Database: "rm", From: "medium", Steps: []Step{rm("prometheus", "cockroachdb")}, Objects: true},
	{Database: "rm-missing", From: "medium", Steps: []Step{
		rm("nosuchpackage").fails(1, edit.ErrNotFound,
			"error removing operator package nosuchpackage: no package found for packagename nosuchpackage"),
	}, Objects: true},
	{Database: "prune", From: "medium", Steps: []Step{prune("etcd", "skupper-operator")}, Objects: true},
	{Database: "prune-none", From: "medium", Steps: []Step{prune("nosuchpackage")}, Objects: true},
	{Database: "prune-stranded", From: "replaces-fail", Steps: []Step{pruneStranded()}, Objects: true,
		Why: "what is stranded in a database is not in the catalog that is read from it"},
	{Database: "prune-stranded2", From: "stranded-in", Steps: []Step{pruneStranded()}, Objects: true,
		Why: "what is stranded in a database is not in the catalog that is read from it"},
	{Database: "deprec-v1.0.0", From: "deprec-base",
		Steps: []Step{truncate(edit.TruncateOptions{}, "synth/synth-deprec: v1.0.0")}, Objects: true},
	{Database: "deprec-v1.2.0", From: "deprec-base",
		Steps: []Step{truncate(edit.TruncateOptions{}, "synth/synth-deprec: v1.2.0")}, Objects: true},
	{Database: "deprec-two", From: "deprec-base",
		Steps: []Step{truncate(edit.TruncateOptions{}, "synth/synth-deprec: v1.1.0 v1.2.0")}, Objects: true},
	{Database: "deprec-allheads", From: "deprec-base", Steps: []Step{
		truncate(edit.TruncateOptions{AllowPackageRemoval: true}, "synth/synth-deprec: v1.3.0 v1.4.0 v2.0.0")},
		Objects: true},
	{Database: "deprec-missing", From: "deprec-base", Steps: []Step{
		truncate(edit.TruncateOptions{}, "synth/synth-deprec: v9.9.9").fails(1, edit.ErrNotFound,
			"target bundlepaths for deprecation missing from registry: [127.0.0.1:5056/synth/synth-deprec:v9.9.9]")},
		Objects: true},
	{Database: "deprec-v1.3.0", From: "deprec-base", Steps: []Step{
		truncate(edit.TruncateOptions{}, "synth/synth-deprec: v1.3.0").fails(1, edit.ErrDefaultChannel,
			"error deprecating bundle 127.0.0.1:5056/synth/synth-deprec:v1.3.0: Bundle deprecation causing default "+
				"channel removal")}, Objects: true},
	{Database: "deprec-v2.0.0", From: "deprec-base", Steps: []Step{
		truncate(edit.TruncateOptions{}, "synth/synth-deprec: v2.0.0").fails(1, edit.ErrDefaultChannel,
			"error deprecating bundle 127.0.0.1:5056/synth/synth-deprec:v2.0.0: Bundle deprecation causing default "+
				"channel removal")}, Objects: true},
	{Database: "skippatch", Steps: each(edit.AddOptions{Mode: edit.SemVerSkipPatch}, health, cross, kairos, etcd,
		rhoas), Compare: onlyHeads,
		Why: "eleven of the adds failed in opm (\"Invalid graph\") and cut the channels off anyway; only heads " +
			"and default channels are those that they should be",
		Contains: []string{
			"etcd/clusterwide-alpha: etcdoperator.v0.9.0, etcdoperator.v0.9.2-clusterwide, " +
				"etcdoperator.v0.9.4-clusterwide !etcdoperator.v0.9.0 !etcdoperator.v0.9.2-clusterwide",
			"etcd/singlenamespace-alpha: etcdoperator.v0.9.0, etcdoperator.v0.9.2, etcdoperator.v0.9.4 " +
				"!etcdoperator.v0.9.0 !etcdoperator.v0.9.2",
			"kairos-operator/stable: 2.0.1, 2.1.0, 2.1.1 >2.0.1 !2.1.0, 2.2.0 >2.1.1",
		}},
	{Database: "semver", Steps: each(edit.AddOptions{Mode: edit.SemVer}, health, cross, rhoas, kairos, etcd)},
}
