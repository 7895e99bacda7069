#!/bin/sh
# Looks at the pages of a catalog in a real browser.
#
#   hack/page.sh BINDERY CATALOG [SCREENSHOTS]
#
# BINDERY is the program, CATALOG what it serves. With script switched off every page must have its heading;
# with script no page may make the browser complain;
# screenshots must not be blank. With a third argument they are kept in that directory. It needs chromium, curl and jq.
set -eu

bindery=$1 catalog=$2 keep=${3:-}
work=$(mktemp -d)
pid=
trap 'if [ -n "$pid" ]; then kill "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true; fi; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

fail() { echo "page: $*" >&2; exit 1; }

"$bindery" serve "$catalog" -p 0 --http-addr 127.0.0.1:0 --log-format json 2>"$work/log" &
pid=$!
address=
for _ in $(seq 100); do
	address=$(jq -r 'select(.for == "http-addr") | .address' "$work/log" 2>/dev/null) || address=
	[ -n "$address" ] && curl -fs -o "$work/all" "http://$address/api/v1/all" && break
	kill -0 "$pid" 2>/dev/null || fail "the server ended: $(cat "$work/log")"
	sleep 0.1
done
[ -s "$work/all" ] || fail "nothing is served: $(cat "$work/log")"
site=http://$address

# The package with most bundles.
package=$(jq -rs '[.[] | select(.schema == "olm.bundle") | .package] | group_by(.) | max_by(length)[0]' "$work/all")
bundle=$(jq -rs --arg p "$package" '[.[] | select(.schema == "olm.bundle" and .package == $p)][0].name' "$work/all")
channel=$(jq -rs --arg p "$package" '[.[] | select(.schema == "olm.channel" and .package == $p)][0].name' "$work/all")
escape() { jq -rn --arg v "$1" '$v | @uri'; }
p=$(escape "$package") b=$(escape "$bundle") c=$(escape "$channel")

# browse PAGE FLAG... runs a browser with a profile of its own.
browse() {
	name=$1; shift
	chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars --no-first-run --disable-extensions --disable-background-networking \
		--user-data-dir="$work/profile-$name" "$@"
}

# plain NAME ADDRESS writes what a page is without script. The browser needs script to tell what it has read, so it is given the
# page alone, from a file, where the address of the page's script leads nowhere.
plain() {
	curl -fs -o "$work/$1.html" "$site$2"
	browse "$1-plain" --dump-dom "file://$work/$1.html" >"$work/$1.dom" 2>/dev/null
}

# page NAME ADDRESS TEXT looks at one page.
page() {
	plain "$1" "$2" || fail "$1: the browser failed"
	grep -q '<h1>' "$work/$1.dom" || fail "$1: no heading without script"
	grep -qF -- "$3" "$work/$1.dom" || fail "$1: \"$3\" is not there without script"
	browse "$1" --enable-logging=stderr --window-size=1280,1000 --screenshot="$work/$1.png" "$site$2" >"$work/$1.console" 2>&1 || fail "$1: the browser failed"
	if grep 'CONSOLE' "$work/$1.console"; then fail "$1: the browser complains"; fi
	size=$(wc -c <"$work/$1.png")
	[ "$size" -gt 15000 ] || fail "$1: the screenshot is blank ($size bytes)"
	if [ -n "$keep" ]; then cp "$work/$1.png" "$keep/"; fi
	echo "page: $1: a screenshot of $size bytes"
}

# Two at a time: a browser waits as much as it works.
page list / "$package" & first=$!
page package "/package?name=$p" "$bundle" & second=$!
wait $first; page channel "/channel?package=$p&name=$c" "$bundle" & first=$!
wait $second; page bundle "/bundle?package=$p&name=$b" "$bundle" & second=$!
wait $first; page images "/images?package=$p" "Images of" & first=$!
wait $second; wait $first

# A search without script is a page of its own.
curl -fs "$site/?q=$p" | grep -qF -- "$package" || fail "a search for $package finds nothing"
curl -fs "$site/?q=nosuchpackage" | grep -q '0 packages of' || fail "a search for what is not there finds something"
echo "page: everything is as it should be"
