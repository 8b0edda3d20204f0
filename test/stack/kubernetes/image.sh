#!/usr/bin/env bash
# image.sh IMAGE PATH: from now on the static binary PATH stands for IMAGE (tags do not matter). Pods that start later use it.
set -euo pipefail
. "$(dirname "$0")/env.sh"
[ $# = 2 ] || { sed -n '2s/^# //p' "$0" >&2 && exit 2; }
[ -x "$2" ] && [ ! -d "$2" ] || die "$2 is not an executable file; build it with CGO_ENABLED=0 go build"
[ -d "$STATE" ] || die "the cluster is down"
path=$(realpath "$2")
(
	flock 9
	touch "$IMAGES"
	{ awk -v name="$1" '$1 != name' "$IMAGES" && echo "$1 $path"; } >"$IMAGES.new"
	mv "$IMAGES.new" "$IMAGES"
) 9>"$RUN/kubernetes.images.lock"
