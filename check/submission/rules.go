package submission

import (
	"github.com/operator-bindery/bindery/check/rules"
)

// The suites of rules that run in a pipeline.
var (
	community = []rules.Profile{rules.Community}
	isv       = []rules.Profile{rules.Certified, rules.Marketplace}
	common    = rules.Pipelines()
)

var (
	onOperator   = []rules.Scope{rules.OnOperator}
	onBundle     = []rules.Scope{rules.OnBundle}
	onCatalog    = []rules.Scope{rules.OnCatalog}
	onRepository = []rules.Scope{rules.OnRepository}
	onRequest    = []rules.Scope{rules.OnRequest}
)

// seeMessage is the fix of a rule whose messages say it.
const seeMessage = "see the message"

var ruleUsingFBC = rules.Rule{ID: "check_using_fbc", Severity: rules.Note, Profiles: community, Scopes: onBundle,
	Title: "An operator has file-based catalogs.", Fix: "set fbc.enabled in ci.yaml: the other way to submit will end"}

// wholeChecks are the rules on what all parts of a repository share.
var wholeChecks = []rules.Check[*check]{
	{Rules: []rules.Rule{{ID: "submission.config", Severity: rules.Error, Profiles: common, Scopes: onRepository,
		Title: "The config.yaml of the repository can be read.", Fix: "mend the file"}}, Find: findConfig},
}

// projectCheck counts for the operators of catalogs, too.
var projectCheck = rules.Check[*operatorCheck]{Rules: []rules.Rule{{ID: "certification-project-check", Severity: rules.Error, Profiles: isv, Scopes: onOperator,
	Title: "ci.yaml has the number of the certification project.",
	Fix:   "write the number of the project in quotes: cert_project_id: \"123\""}}, Find: findProject}

var operatorChecks = []rules.Check[*operatorCheck]{
	{Rules: []rules.Rule{{ID: "submission.half-bundle", Severity: rules.Warning, Profiles: common, Scopes: onOperator,
		Title: "A bundle has the directories manifests and metadata.",
		Fix:   "add the directory: the pipeline does not take the other one for a bundle"}}, Find: findHalves},
	{Rules: []rules.Rule{{ID: "check_schema_operator_ci_config", Severity: rules.Error, Profiles: common, Scopes: onOperator,
		Title: "ci.yaml has the fields that the pipeline knows, with values of their kinds.", Fix: seeMessage}},
		Find: findCISchema},
	{Rules: []rules.Rule{{ID: "check_operator_name_unique", Severity: rules.Error, Profiles: community, Scopes: onOperator,
		Title: "The names of all ClusterServiceVersions of an operator are equal up to the first dot.",
		Fix:   "give all bundles of the operator one name"}}, Find: findNames},
	{Rules: []rules.Rule{{ID: "check_ci_upgrade_graph", Severity: rules.Error, Profiles: community, Scopes: onOperator,
		Title: "ci.yaml says how the upgrade graph is made.",
		Fix:   "write \"updateGraph: replaces-mode\" or \"updateGraph: semver-mode\""}}, Find: findUpdateGraph},
	{Rules: []rules.Rule{{ID: "check_upgrade_graph_loop", Severity: rules.Error, Profiles: community, Scopes: onOperator,
		Title: "No upgrade of a channel leads back to where it began.",
		Fix:   "mend spec.replaces, spec.skips or olm.skipRange of the bundles"}}, Find: findLoops},
	{Rules: []rules.Rule{{ID: "check_catalog_usage_ci_config", Severity: rules.Error, Profiles: common, Scopes: onOperator,
		Title: "A catalog is made of one template.", Fix: "name the catalog in one entry of fbc.catalog_mapping"}},
		Find: findCatalogUsage},
	projectCheck,
	{Rules: []rules.Rule{{ID: "submission.template", Severity: rules.Warning, Profiles: common, Scopes: onOperator,
		Title: "The templates and the catalogs of fbc.catalog_mapping exist, and all catalogs of the operator are in it.",
		Fix:   seeMessage}}, Find: findTemplates},
}

var bundleChecks = []rules.Check[*bundleCheck]{
	{Rules: []rules.Rule{{ID: "check_operator_name", Severity: rules.Error, Profiles: common, Scopes: onBundle,
		Title: "The package, the name of the ClusterServiceVersion and the operator's directory are equal, in all bundles.",
		Fix:   "use one name everywhere"}}, Find: findOperatorName},
	{Rules: []rules.Rule{{ID: "submission.csv-second", Severity: rules.Error, Profiles: common, Scopes: onBundle,
		Title: "One file of the manifests has the ClusterServiceVersion.", Fix: "remove the others"}}, Find: findSecondCSV},
	{Rules: []rules.Rule{{ID: "check_required_fields", Severity: rules.Error, Profiles: community, Scopes: onBundle,
		Title: "The ClusterServiceVersion has the fields that a catalog shows.", Fix: seeMessage}}, Find: findFields},
	{Rules: []rules.Rule{{ID: "check_dangling_bundles", Severity: rules.Error, Profiles: community, Scopes: onBundle,
		Title: "All bundles of a channel but the highest can be upgraded.",
		Fix:   "let a later bundle replace or skip each of them"}}, Find: findDangling},
	{Rules: []rules.Rule{{ID: "check_api_version_constraints", Severity: rules.Error, Profiles: community, Scopes: onBundle,
		Title: "The bundle is not for an OpenShift whose Kubernetes is below minKubeVersion.",
		Fix:   "mend spec.minKubeVersion, or the annotation com.redhat.openshift.versions"}}, Find: findKubeVersion},
	{Rules: []rules.Rule{ruleUsingFBC}, Find: findNotFBC},
	{Rules: sdkRules, Find: findSDK},
	{Rules: []rules.Rule{{ID: "check_operator_version_directory_name", Severity: rules.Error, Profiles: common, Scopes: onBundle,
		Title: "The directory of a bundle is named as its spec.version.", Fix: "rename the directory, or mend spec.version"}},
		Find: findVersionDirectory},
	{Rules: []rules.Rule{{ID: "check_network_policy_presence", Severity: rules.Error, Profiles: common, Scopes: onBundle,
		Title: "A bundle has no NetworkPolicy.", Fix: "let the operator create it"}}, Find: findNetworkPolicy},
	{Rules: []rules.Rule{{ID: "check_bundle_release_config", Severity: rules.Error, Profiles: common, Scopes: onBundle,
		Title: "release-config.yaml names templates of ci.yaml, with channels that they can have.", Fix: seeMessage}},
		Find: findRelease},
	{Rules: []rules.Rule{{ID: "check_validate_schema_bundle_release_config", Severity: rules.Error, Profiles: common,
		Scopes: onBundle, Title: "release-config.yaml has the fields that the pipeline knows, with values of their kinds.",
		Fix: seeMessage}}, Find: findReleaseSchema},
	{Rules: []rules.Rule{{ID: "check_replaces_availability", Severity: rules.Error, Profiles: common, Scopes: onBundle,
		Title: "The bundle that is replaced is there, for all OpenShift versions of this one.",
		Fix:   "mend spec.replaces, or the annotation com.redhat.openshift.versions; the first bundle of an operator here replaces none"}}, Find: findReplaced},
	{Rules: []rules.Rule{{ID: "check_pruned_graph", Severity: rules.Warning, Profiles: isv, Scopes: onBundle,
		Title: "A bundle with olm.skipRange names what it replaces, so that the catalog keeps it.",
		Fix:   "set spec.replaces"}}, Find: findPruned},
	{Rules: []rules.Rule{{ID: "check_marketplace_annotation", Severity: rules.Error, Profiles: isv, Scopes: onBundle,
		Title: "The ClusterServiceVersion leads to the operator's pages of the marketplace.",
		Fix:   "set the annotation of the ClusterServiceVersion to the address in the message"}}, Find: findMarketplace},
	{Rules: []rules.Rule{{ID: "ocp_version_info", Severity: rules.Error, Profiles: common, Scopes: onBundle,
		Title: "There is a catalog of an OpenShift version for the bundle.",
		Fix:   "mend the annotations in metadata/annotations.yaml"}}, Find: findIndices},
	{Rules: []rules.Rule{{ID: "yaml-lint", Severity: rules.Error, Profiles: common, Scopes: onBundle,
		Title: "yamllint accepts the YAML of the bundle.", Fix: seeMessage}}, Find: findLint},
}

// packageChecks is how many of catalogChecks are about one package.
const packageChecks = 3

var catalogChecks = []rules.Check[*catalogCheck]{
	{Rules: []rules.Rule{{ID: "submission.catalog-files", Severity: rules.Error, Profiles: common, Scopes: onCatalog,
		Title: "One file has the catalog of a package.", Fix: "keep one: the pipeline takes any of them"}}, Find: findCatalogFiles},
	{Rules: []rules.Rule{{ID: "check_bundle_images_in_fbc", Severity: rules.Error, Profiles: common, Scopes: onCatalog,
		Title: "The images of bundles are in the registries that config.yaml allows.",
		Fix:   "name the image in a registry of allowed_bundle_registries"}}, Find: findImages},
	{Rules: []rules.Rule{{ID: "check_olm_bundle_object_in_fbc", Severity: rules.Error, Profiles: common, Scopes: onCatalog,
		Title: "From OpenShift 4.17 on bundles have olm.csv.metadata and no olm.bundle.object.",
		Fix:   "render the catalog with --migrate-level bundle-object-to-csv-metadata"}}, Find: findObjects},
	{Rules: []rules.Rule{{ID: "validate_catalog_format", Severity: rules.Error, Profiles: common, Scopes: onCatalog,
		Title: "opm validate accepts the catalog, with all its packages.", Fix: seeMessage}}, Find: findFormat},
}

// requestChecks are the rules on a change as a whole.
var requestChecks = []rules.Check[*request]{
	{Rules: []rules.Rule{{ID: "submission.staged", Severity: rules.Error, Profiles: common, Scopes: onRequest,
		Title: "The files that are checked are as they are staged or committed.", Fix: "stage the file with \"git add\", or remove it"}},
		Find: findUnstaged},
	{Rules: []rules.Rule{{ID: "check_added_bundles", Severity: rules.Error, Profiles: common, Scopes: onRequest,
		Title: "A request adds one bundle, and then deletes none.", Fix: "send a request for each bundle"}}, Find: findAdded},
	{Rules: []rules.Rule{{ID: "check_affected_catalog_operators", Severity: rules.Error, Profiles: common, Scopes: onRequest,
		Title: "A request changes a bundle or catalogs.", Fix: "send the catalogs by a request of their own"}},
		Find: findBundleAndCatalog},
	{Rules: []rules.Rule{{ID: "check_affected_operators", Severity: rules.Error, Profiles: common, Scopes: onRequest,
		Title: "A request with a bundle is about one operator.", Fix: "send a request for each operator"}}, Find: findOperators},
	{Rules: []rules.Rule{{ID: "check_deleted_bundles", Severity: rules.Error, Profiles: common, Scopes: onRequest,
		Title: "A bundle that is deleted is of an operator with file-based catalogs, and in none of them.",
		Fix:   "keep the bundle, or take it out of the catalogs first"}}, Find: findDeleted},
	{Rules: []rules.Rule{{ID: "check_extra_files", Severity: rules.Error, Profiles: common, Scopes: onRequest,
		Title: "A request changes files of operators and their catalogs alone.", Fix: "leave the other files as they are"}},
		Find: findExtra},
	{Rules: []rules.Rule{{ID: "check_modified_bundles", Severity: rules.Error, Profiles: common, Scopes: onRequest,
		Title: "A bundle that was published stays as it is.", Fix: "send a new version of the bundle"}}, Find: findModified},
}
