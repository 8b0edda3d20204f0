#!/usr/bin/env bash
# Builds the release of the checked-out commit twice, in clones at two places with a build cache each, and compares every byte.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for n in first second; do
	git clone -q "$root" "$work/$n/checkout"
	echo "building the $n time ..."
	(cd "$work/$n/checkout/hack/release" && GOCACHE=$work/$n/cache go run . -root "$work/$n/checkout" -out "$work/$n/dist")
	rm -rf "$work/$n/cache"
done
diff -r "$work/first/dist" "$work/second/dist" || { echo "the two builds differ" >&2; exit 1; }
(cd "$work/first/dist" && sha256sum --quiet --check SHA256SUMS)
echo "both builds are the same: $(wc -l <"$work/first/dist/SHA256SUMS") files"
