#!/bin/bash
# Builds a table of Containerfiles with bindery and with the machine's buildah, and compares the images: hack/containerfile.sh BINDERY
# CONTAINERFILE_CASES=all compares all of them, the default is every third.
# It needs buildah, tar, gzip, bzip2, xz and zstd, and root for buildah's store; everything is in a temporary directory.
set -euo pipefail
bindery=$(realpath "${1:?usage: hack/containerfile.sh BINDERY}")
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
CGO_ENABLED=0 go build -tags containers_image_openpgp,exclude_graphdriver_btrfs -o "$work/compare" ./hack/containerfile
cd "$work"
umask 022
store=(--root "$work/store" --runroot "$work/run" --storage-driver vfs)

mkdir -p ctx/dir/sub ctx/many ctx/files ctx/rootfs/etc ctx/rootfs/usr/lib arch base/usr/bin base/usr/lib base/etc base/tmp base/home/user base/usr/share base/real basectx
echo a > ctx/a.txt; echo longer > ctx/b.txt; echo x > ctx/dir/x; echo y > ctx/dir/sub/y.md; chmod 600 ctx/dir/x
ln -s x ctx/dir/link; ln -s ../a.txt ctx/dir/up; ln -s dir ctx/linkdir; printf '#!/bin/sh\n' > ctx/files/run.sh; chmod 755 ctx/files/run.sh
for i in 1 2 3; do echo $i > ctx/many/f$i.conf; done; chmod 2775 ctx/many
echo n > ctx/rootfs/etc/new; echo l > ctx/rootfs/usr/lib/l; echo i > ctx/ignored; printf 'ign*\n!nothing\n' > ctx/.containerignore
echo q > arch/q; chmod 640 arch/q; tar --owner=12 --group=13 -cf ctx/t.tar arch
gzip -k ctx/t.tar; bzip2 -k ctx/t.tar; xz -k ctx/t.tar; zstd -qk ctx/t.tar
chmod 1777 base/tmp; chmod 700 base/home/user; ln -s usr/bin base/bin; ln -s usr/lib base/lib; ln -s /real base/link; ln -s /real/f base/linkfile
printf 'root:x:0:0::/:\nuser:x:1000:1001::/home/user:\n' > base/etc/passwd; printf 'root:x:0:\ngrp:x:77:\n' > base/etc/group
echo real > base/real/f; ln base/real/f base/real/hard; printf tool > base/usr/bin/tool; chmod 4755 base/usr/bin/tool; chmod 2755 base/usr/share
tar -C base --owner=0 --group=0 -cf basectx/base.tar .
printf 'FROM scratch\nADD base.tar /\nENV PATH=/bin FOO=bar\nLABEL base=yes\nCMD ["base"]\nEXPOSE 99\nUSER 0\n' > base.Containerfile
buildah "${store[@]}" bud --layers=false -q -f base.Containerfile -t localhost/base basectx > /dev/null
buildah "${store[@]}" push -q localhost/base "oci:$work/layout:v1"

n=0 failed=0 compared=0
# compare reads a Containerfile; @BASE@ in it is the image with links and odd modes.
compare() {
	n=$((n + 1))
	local text; text=$(cat)
	[ "${CONTAINERFILE_CASES:-}" = all ] || [ $((n % 3)) = 1 ] || return 0
	compared=$((compared + 1))
	rm -rf ours theirs
	sed "s,@BASE@,oci:$work/layout:v1," <<< "$text" > ours.Containerfile
	sed "s,@BASE@,localhost/base," <<< "$text" > theirs.Containerfile
	"$bindery" build containerfile -f ours.Containerfile ctx -t t:v1 --to oci:ours:v1 --no-cache > /dev/null 2> log || { echo "$n: bindery: $(cat log)"; failed=1; return 0; }
	buildah "${store[@]}" bud --layers=false -q -f theirs.Containerfile -t localhost/t ctx > /dev/null 2> log || { echo "$n: buildah: $(tail -1 log)"; failed=1; return 0; }
	buildah "${store[@]}" push -q localhost/t oci:theirs:v1
	if ! ./compare oci:ours:v1 oci:theirs:v1 > log; then
		echo "$n: differs:"; sed 's/^/  /' ours.Containerfile; cat log; failed=1
	fi
}
table() {
	local text=
	while IFS= read -r line; do
		if [ "$line" = --- ]; then compare <<< "$text"; text=; else text+="$line"$'\n'; fi
	done
}
table <<'EOF'
FROM scratch
COPY a.txt /a.txt
---
FROM scratch
COPY dir /dst
COPY dir/ /dst2/
LABEL a=b "c d"="e f" g='h i'
---
FROM scratch
COPY --chown=12:34 --chmod=0640 a.txt b.txt /x/y/
COPY --chown=7 many/*.conf /conf/
ENV A=1 B="two $A" C=${A:-q}${D:-def}${A:+plus}
ENV P=$B/x
WORKDIR /w/q
COPY a.txt .
COPY b.txt sub/
USER 1001
WORKDIR rel
EXPOSE 50051 8080/udp 7000-7003
VOLUME /data /v2
LABEL last=one
---
ARG BASE=scratch
ARG V=9
FROM ${BASE} AS one
ARG V
ARG W=w$V
COPY a.txt /one/$V-$W
FROM scratch AS two
COPY --from=one /one /two
COPY --from=0 /one/9-w9 /z
FROM two
COPY b.txt /three
CMD ["a","b"]
ENTRYPOINT ["/x"]
CMD c d
---
FROM scratch
ADD t.tar /plain
ADD t.tar.gz /gz/
ADD t.tar.xz /xz
ADD t.tar.bz2 /bz
ADD t.tar.zst /zst
ADD a.txt /added/
ADD dir /adddir
---
FROM scratch
COPY linkdir /ld
COPY dir/link /one
COPY . /all/
---
FROM scratch
COPY a.txt /d/f
COPY dir /d/f2
COPY many /d/f2
COPY b.txt /d/f2/x
ENTRYPOINT ["/bin/opm"]
CMD ["serve"]
---
FROM scratch AS base
COPY files /usr/bin/
WORKDIR /tmp
ENV X=1
LABEL l=1
EXPOSE 1
FROM base
COPY --from=base /usr/bin/run.sh /run.sh
COPY --chown=3:4 --from=base /usr /copy
ENV X=2 Y=3
LABEL l=2 m=3
EXPOSE 2
CMD []
---
# escape=`
FROM scratch
LABEL multi="a `
b" `
  other=c
COPY ["a.txt", "b.txt", "/sp ace/"]
EXPOSE 80/TCP
---
FROM scratch
WORKDIR /made/here
USER 5:6
WORKDIR /made/as/user
COPY a.txt /a
---
FROM @BASE@
COPY a.txt /bin/a.txt
COPY dir /lib/
COPY b.txt /tmp/b
COPY many /usr/share
COPY --chown=user:grp a.txt /home/user/a
COPY --chown=user a.txt /home/user/b
USER user
WORKDIR /home/user/w
COPY a.txt /link/there
COPY a.txt /linkfile
---
FROM @BASE@ as x
FROM scratch
COPY --from=x / /
---
FROM scratch
LABEL only=label
---
FROM scratch
COPY dir* /t
COPY many/f[12].conf /u/
COPY many/f?.conf linkdir/x /v/
---
FROM @BASE@
COPY a.txt /usr/bin
COPY dir /bin
COPY rootfs /
ADD t.tar /bin
---
FROM scratch
LABEL operators.operatorframework.io.bundle.mediatype.v1=registry+v1
LABEL operators.operatorframework.io.bundle.manifests.v1=manifests/
COPY dir /manifests/
COPY many /metadata/
---
FROM scratch
COPY a.txt /a
CMD echo hi "there"
ENTRYPOINT run me
STOPSIGNAL SIGTERM
MAINTAINER me <me@x>
ENV "q r"=1
ENV legacy value with  spaces
LABEL legacy  value with spaces
VOLUME ["/x", "/y"]
USER a:b
EXPOSE 8080/tcp 9090
ENV PATH=/x:$PATH
WORKDIR /
---
FROM scratch
ARG X=1
ENV Y=${X}2
ARG X=3
LABEL y=$Y x=$X esc=\$X single='$X' dbl="$X" e=${NONE:-dflt}
COPY --chmod=755 dir /modes
COPY dir/x /modes/
COPY dir/. /dot
COPY ./dir/../a.txt /up
COPY /a.txt /abs
---
FROM @BASE@
COPY dir /link
COPY a.txt /newdir/
COPY a.txt /etc/passwd
COPY a.txt b.txt /tmp/
ADD a.txt /bin/tool
---
FROM @BASE@
LABEL operators.operatorframework.io.index.database.v1=/database/index.db
ADD a.txt /database/index.db
EXPOSE 50051
ENTRYPOINT ["/bin/opm"]
CMD ["registry", "serve", "--database", "/database/index.db"]
---
FROM @BASE@ as builder
ADD dir /configs
FROM @BASE@
ENTRYPOINT ["/bin/opm"]
CMD ["serve", "/configs", "--cache-dir=/tmp/cache"]
COPY --from=builder /configs /configs
COPY --from=builder /configs/sub /tmp/cache
LABEL operators.operatorframework.io.index.configs.v1=/configs
---
FROM @BASE@
COPY --from=@BASE@ /usr/bin/tool /tool
COPY --from=@BASE@ /real /r
---
FROM @BASE@
USER user
WORKDIR /home/user/w/v
COPY --chown=user:grp dir .
ENV FOO=baz PATH=$PATH:/x
---
FROM @BASE@ AS a
COPY a.txt /tmp/a
FROM a AS b
COPY b.txt /tmp/a
FROM b
COPY --from=a /tmp/a /a
CMD x
---
FROM scratch
COPY . /
ENTRYPOINT x y
CMD ["z"]
---
FROM scratch
COPY many/f*.conf /m/
COPY dir/s* /m/
COPY --chmod=0711 files/run.sh /r
ONBUILD COPY a b
---
FROM @BASE@
COPY a.txt /usr/bin/tool
COPY dir /usr/share/dir
VOLUME /usr/share
COPY b.txt /usr/share/dir/x
LABEL l=1
---
EOF
echo "$compared of $n Containerfiles compared with $(buildah --version)"
exit $failed
