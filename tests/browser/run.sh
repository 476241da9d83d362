#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
#
# run.sh PACKAGES COMMAND...: runs COMMAND when all that the tests of pages need is there, with
# node's packages fetched into the folder PACKAGES. Exit 77 says what is missing; under CI=true,
# where everything was installed, that is exit 1. ISOSCALE is the program.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
packages=$1
shift

# absent WHAT: the test cannot run here.
absent() {
  echo "SKIPPED: $1" >&2
  if [[ ${CI:-} == true ]]; then
    echo "CI=true: what these tests need is to be installed here (launch/packages.txt, group browser)" >&2
    exit 1
  fi
  exit 77
}

for name in node npm; do
  command -v "$name" >/dev/null || absent "there is no $name"
done
[[ $(node -p 'parseInt(process.versions.node)') -ge 18 ]] || absent "Node.js is older than 18"

if [[ -z ${ISOSCALE_CHROMIUM:-} ]]; then
  for name in chromium chromium-browser google-chrome; do
    ISOSCALE_CHROMIUM=$(command -v "$name") && break
  done
fi
[[ -n ${ISOSCALE_CHROMIUM:-} ]] || absent "there is no chromium"
export ISOSCALE_CHROMIUM

: "${ISOSCALE_PYTHON:=python3}"
export ISOSCALE_PYTHON
"$ISOSCALE_PYTHON" -c 'import h5py' 2>/dev/null || absent "$ISOSCALE_PYTHON has no h5py"

if [[ ${ISOSCALE_HAS_PAGE:-1} == 0 || -e ${ISOSCALE_PAGE_MISSING:-} ]]; then
  absent "this build has no page (ISOSCALE_PAGE)"
fi

# Several tests start at once; the first one fetches.
mkdir -p "$packages"
fetch() {
  local wanted
  wanted=$(cat "$here/package.json" "$here/package-lock.json" | cksum)
  [[ -e $packages/fetched && $(<"$packages/fetched") == "$wanted" ]] && return
  cp "$here/package.json" "$here/package-lock.json" "$here/.npmrc" "$packages"
  (cd "$packages" && timeout 180 npm ci --ignore-scripts) >"$packages/npm.log" 2>&1 || return 1
  printf '%s\n' "$wanted" >"$packages/fetched"
}
(
  flock 9
  fetch
) 9>"$packages/lock" || absent "npm could not fetch its packages: see $packages/npm.log"

export ISOSCALE_BROWSER_PACKAGES=$packages
exec "$@"
