# shellcheck shell=bash
# What OLM v1 makes of images, through the programs that others use on them: a catalog image as catalogd, umoci and podman
# unpack it; the bundle images of a registry checked, resolved and rendered; the plain bundle opened by skopeo and umoci;
# catalogd's API through curl. Sourced by hack/acceptance.sh.

# olmv1_catalog pushes two bundles, the second of which supports AllNamespaces, and writes their catalog.
olmv1_catalog() {
    cp -r testdata/bundles/etcd/0.9.4 "$at/next"
    sed -i 's/etcdoperator.v0.9.4/etcdoperator.v0.9.5/; s/version: 0.9.4/version: 0.9.5/; /supported: false/{N; s/false\(.*AllNamespaces\)/true\1/}' \
        "$at"/next/manifests/*clusterserviceversion.yaml
    quiet build bundle testdata/bundles/etcd/0.9.4 -t "$repo/etcd:v0.9.4" --push >/dev/null
    quiet build bundle "$at/next" -t "$repo/etcd:v0.9.5" --push >/dev/null
    cat >"$at/template.yaml" <<END
schema: olm.template.basic
entries:
- {schema: olm.package, name: etcd, defaultChannel: stable}
- {schema: olm.channel, package: etcd, name: stable, entries: [{name: etcdoperator.v0.9.4}, {name: etcdoperator.v0.9.5, replaces: etcdoperator.v0.9.4}]}
- {schema: olm.bundle, image: "$repo/etcd:v0.9.4"}
- {schema: olm.bundle, image: "$repo/etcd:v0.9.5"}
END
    mkdir "$at/catalog"
    quiet template render "$at/template.yaml" --migrate-level bundle-object-to-csv-metadata -o yaml >"$at/catalog/catalog.yaml"
}

# olmv1_same FILE compares what catalogd would store with the catalog directory.
olmv1_same() { diff "$at/stored" "$1" >/dev/null || { echo "$1: another catalog"; return 1; }; }

# The image as catalogd, umoci and podman unpack it: the same catalog. A base with a catalog of its own is hidden.
olmv1_images() {
    local image name=bindery-olmv1-$$
    "$work/as-catalogd" "$at/catalog" >"$at/stored"
    [ "$(wc -l <"$at/stored")" = 4 ]
    quiet build catalog "$work/catalog" -t "$repo/base:v4.19" --push >/dev/null
    quiet build catalog "$at/catalog" -t "$repo/catalog:v1" --push --server none --cache none --compression zstd >/dev/null
    quiet build catalog "$at/catalog" -t "$repo/catalog:based" --push --base "$repo/base:v4.19" >/dev/null
    for image in v1 based; do
        skopeo copy -q --src-tls-verify=false "docker://$repo/catalog:$image" "oci:$at/layout:$image"
        "$work/as-catalogd" "oci:$at/layout:$image" >"$at/$image.catalogd"
        olmv1_same "$at/$image.catalogd"
        podman pull -q --tls-verify=false "$repo/catalog:$image" >/dev/null
        # shellcheck disable=SC2086
        podman $podman_flags create --name $name "$repo/catalog:$image" /none >/dev/null
        podman export $name | tar -xC "$at" --transform "s,^,$image.podman/," --wildcards 'configs/*'
        podman rm -f $name >/dev/null
        podman rmi -f "$repo/catalog:$image" >/dev/null
        "$work/as-catalogd" "$at/$image.podman/configs" >"$at/$image.podman.out"
        olmv1_same "$at/$image.podman.out"
        quiet verify "$repo/catalog:$image" >/dev/null
    done
    # umoci knows no zstd.
    umoci unpack --rootless --image "$at/layout:based" "$at/umoci" >/dev/null 2>&1
    "$work/as-catalogd" "$at/umoci/rootfs/configs" >"$at/umoci.out"
    olmv1_same "$at/umoci.out"
    # The base is named as pipelines look for it.
    [ "$(skopeo inspect --raw --tls-verify=false "docker://$repo/catalog:based" |
        jq -r '.annotations["org.opencontainers.image.base.name"]')" = "$repo/base:v4.19" ]
}

# What is installed: without the images it is not known, with them it is.
olmv1_check() {
    local status=0
    quiet check "$repo/catalog:v1" --profile olmv1 -o json >"$at/check.json" || status=$?
    [ "$status" = 1 ] # of one the catalog knows that it does not support AllNamespaces
    jq -e '[.bundles[] | .state] | sort == ["refused", "unknown"]' "$at/check.json" >/dev/null
    quiet check "$repo/catalog:v1" --profile olmv1 --gate SingleOwnNamespaceInstallSupport --pull -o json >"$at/pulled.json"
    jq -e '.passed and ([.bundles[] | .state] == ["installable", "installable"])' "$at/pulled.json" >/dev/null
    status=0
    quiet check "$repo/catalog:based" --profile konflux -o sarif >"$at/konflux.sarif" || status=$?
    [ "$status" = 1 ]
    jq -e '[.runs[0].results[].ruleId] | index("fbc:base-image") and index("fbc:bundle-pinned")' "$at/konflux.sarif" >/dev/null
    quiet check "$repo/etcd:v0.9.5" --profile olmv1 -o junit >"$at/bundle.xml"
    grep -q '<testsuite name="bindery check [^>]* failures="0"' "$at/bundle.xml"
    [ "$(grep -c '<testcase ' "$at/bundle.xml")" -gt 10 ]
    [ "$(quiet resolve "$repo/catalog:v1" etcd -o json | jq -r .image)" = "$repo/etcd:v0.9.5" ]
    ! quiet resolve "$repo/catalog:v1" etcd --version '>1' 2>"$at/resolve.err"
    grep -q 'no bundles found for package "etcd" matching version ">1"' "$at/resolve.err"
}

# The manifests of a bundle image, for a tool that applies directories; the plain bundle has the same ones.
olmv1_manifests() {
    quiet bundle manifests "$repo/etcd:v0.9.4" --install-namespace etcd --watch-namespace team-a --create-namespace \
        --split --to "$at/deploy"
    "$work/kustomized" "$at/deploy" >"$at/kinds"
    [ "$(head -n 1 "$at/kinds")" = 'Namespace etcd' ]
    grep -qx 'Deployment etcd-operator' "$at/kinds"
    grep -q '^RoleBinding etcdoperator.v0.9' "$at/kinds"
    [ "$(quiet diff --manifests "$at/deploy" "$repo/etcd:v0.9.4" --install-namespace etcd --watch-namespace team-a)" = 'no differences' ]
    quiet build bundle testdata/bundles/etcd/0.9.4 --bundle-format plain --install-namespace etcd --watch-namespace team-a \
        -t "$repo/plain:v1" --to "oci:$at/plain:v1" >/dev/null
    [ "$(skopeo inspect "oci:$at/plain:v1" | jq -r '.Labels["operators.operatorframework.io.bundle.mediatype.v1"]')" = plain+v0 ]
    umoci unpack --rootless --image "$at/plain:v1" "$at/plain.umoci" >/dev/null 2>&1
    diff -r -x kustomization.yaml -x '.*' -x 'namespace_*' "$at/deploy" "$at/plain.umoci/rootfs/manifests"
}

# olmv1_curl PATH ARGUMENT... asks for a path of catalogd's API.
olmv1_curl() { local path=$1; shift; curl -sf "$@" "http://127.0.0.1:$((port + 602))/catalogs/acme/api/v1/$path"; }

# catalogd's API on the image.
olmv1_api() {
    local i
    "$bindery" serve "$repo/catalog:v1" -p $((port + 601)) --http-addr 127.0.0.1:$((port + 602)) --http-name acme -q >"$at/serve.log" 2>&1 &
    olmv1_pids+=($!)
    for i in $(seq 200); do olmv1_curl all >"$at/all" && break; sleep 0.05; done
    olmv1_same "$at/all"
    olmv1_curl 'metas?schema=olm.package&name=etcd' | jq -e '.defaultChannel == "stable"' >/dev/null
    olmv1_curl 'metas?package=etcd' -H 'Accept-Encoding: gzip' --compressed | diff - <(jq -c 'select(.package == "etcd")' "$at/stored")
    [ "$(olmv1_curl 'metas?nosuch=1' -o /dev/null -w '%{http_code}' || true)" = 400 ]
    olmv1_curl graphql -d '{"query": "{ olmbundles(limit: 1) { name image } summary { totalSchemas } }"}' |
        jq -e '.data.olmbundles[0].name == "etcdoperator.v0.9.4" and .data.summary.totalSchemas == 3' >/dev/null
}

olmv1() {
    at=$work/olmv1 olmv1_pids=()
    local repo=127.0.0.1:$((port + 600))/acme i
    mkdir -p "$at/registry"
    trap 'kill "${olmv1_pids[@]}" 2>/dev/null' EXIT
    CGO_ENABLED=0 go build -tags containers_image_openpgp,exclude_graphdriver_btrfs -o "$work/as-catalogd" ./hack/catalogd
    CGO_ENABLED=0 go build -tags containers_image_openpgp,exclude_graphdriver_btrfs -o "$work/kustomized" ./hack/kustomized
    cat >"$at/registry.yml" <<END
version: 0.1
log: {level: error, accesslog: {disabled: true}}
storage: {filesystem: {rootdirectory: $at/registry}}
http: {addr: 127.0.0.1:$((port + 600))}
END
    docker-registry serve "$at/registry.yml" >"$at/registry.log" 2>&1 &
    olmv1_pids+=($!)
    for i in $(seq 100); do (exec 3<>"/dev/tcp/127.0.0.1/$((port + 600))") 2>/dev/null && break; sleep 0.05; done
    export BINDERY_USE_HTTP=true
    olmv1_catalog
    olmv1_images
    olmv1_check
    olmv1_manifests
    olmv1_api
}

check olmv1 docker-registry skopeo umoci podman jq curl -- olmv1
