# shellcheck shell=bash
# Signatures, documents and copies through the programs that others use: a registry without a referrers API, which does not
# honour conditions of writes, skopeo and umoci. Sourced by hack/acceptance.sh.

supply() {
    local at=$work/supply supply_port=$((port + 400)) i
    mkdir -p "$at/registry"
    cat >"$at/registry.yml" <<END
version: 0.1
log: {level: error, accesslog: {disabled: true}}
storage: {filesystem: {rootdirectory: $at/registry}}
http: {addr: 127.0.0.1:$supply_port}
END
    docker-registry serve "$at/registry.yml" >"$at/registry.log" 2>&1 &
    supply_pid=$!
    trap 'kill $supply_pid 2>/dev/null' EXIT
    for i in $(seq 100); do (exec 3<>"/dev/tcp/127.0.0.1/$supply_port") 2>/dev/null && break; sleep 0.05; done
    export BINDERY_USE_HTTP=true
    printf 'open sesame' >"$at/passphrase"
    export BINDERY_SIGN_PASSPHRASE_FILE=$at/passphrase
    "$bindery" keys generate --name "$at/release"
    local image=127.0.0.1:$supply_port/acme/catalog:v1

    # Signed, with its documents, for two platforms; nothing of it changes the image.
    quiet build catalog "$work/catalog" -t "$image" --push --platform linux/amd64,linux/arm64 --digest-file "$at/plain" >/dev/null
    quiet build catalog "$work/catalog" -t "$image" --push --platform linux/amd64,linux/arm64 --digest-file "$at/signed" \
        --sign-key "$at/release.key" --sbom spdx,cyclonedx --provenance --builder-id https://ci.example.com/acceptance >/dev/null
    cmp "$at/plain" "$at/signed"
    local signed hex; signed=$(cat "$at/signed"); hex=${signed#sha256:}
    "$bindery" verify "$image" --key "$at/release.pub"
    "$bindery" verify "$image" --key "$at/release.pub" --type slsaprovenance1 -o json | grep '"verified": true' >/dev/null
    "$bindery" verify "$image" --key "$at/release.pub" --type spdxjson -o json | grep SPDXRef-DOCUMENT >/dev/null
    skopeo inspect --raw --tls-verify=false "docker://127.0.0.1:$supply_port/acme/catalog:sha256-$hex.sig" | grep simplesigning >/dev/null
    skopeo inspect --raw --tls-verify=false "docker://127.0.0.1:$supply_port/acme/catalog:sha256-$hex" | grep dev.sigstore.bundle >/dev/null

    # The policy of a cluster.
    mkdir -p "$at/registries.d"
    printf 'default-docker: {use-sigstore-attachments: true}\n' >"$at/registries.d/any.yaml"
    printf '{"default": [{"type": "reject"}], "transports": {"docker": {"": [{"type": "sigstoreSigned", "keyPath": "%s"}]}}}\n' \
        "$at/release.pub" >"$at/policy.json"
    quiet list packages "$image" --policy "$at/policy.json" --registries-d "$at/registries.d" >/dev/null
    ! quiet list packages "$image" --policy "$at/policy.json" 2>"$at/refused"
    grep -q use-sigstore-attachments "$at/refused"

    # Through an archive to another repository: all that is attached to the image is there, and nothing was rewritten.
    "$bindery" copy "$image" "oci-archive:$at/catalog.tar:v1" -o json >"$at/out.json"
    "$bindery" copy "oci-archive:$at/catalog.tar:v1" "docker://127.0.0.1:$supply_port/far/catalog:v1" -o json >"$at/in.json"
    jq -r '.images[].attachments[].digest' "$at/out.json" | sort >"$at/out.digests"
    [ -s "$at/out.digests" ]
    jq -r '.images[].attachments[].digest' "$at/in.json" | sort | cmp - "$at/out.digests"
    "$bindery" verify "127.0.0.1:$supply_port/far/catalog:v1" --key "$at/release.pub" --identity "$image" >"$at/far"
    ! grep -q '^refused' "$at/far"

    # Other programs read a layout with attachments as before.
    "$bindery" copy "$image" "oci:$at/layout:v1" >/dev/null
    [ "$(skopeo inspect --raw "oci:$at/layout:v1" | sha256sum | cut -d' ' -f1)" = "$hex" ]
    umoci list --layout "$at/layout" | grep -x v1 >/dev/null
    skopeo copy -q --all --preserve-digests --dest-tls-verify=false "oci:$at/layout:v1" "docker://127.0.0.1:$supply_port/skopeo/catalog:v1"

    # Twenty keys sign and attach at once, in a registry that lets the last writer win: nothing is lost.
    local many=127.0.0.1:$supply_port/many/catalog:v1 pids=()
    quiet build bundle testdata/bundles/etcd/0.9.4 -t "$many" --push >/dev/null
    for i in $(seq 20); do "$bindery" keys generate --name "$at/key$i" >/dev/null; done
    for i in $(seq 20); do
        "$bindery" sign "$many" --sign-key "$at/key$i.key" -q >/dev/null &
        pids+=($!)
    done
    for i in "${pids[@]}"; do wait "$i"; done
    for i in $(seq 20); do
        [ "$("$bindery" verify "$many" --key "$at/key$i.pub" | grep -c '^good')" = 2 ] || { echo "signatures of key $i are missing"; return 1; }
    done
}

check supply docker-registry skopeo umoci jq -- supply
