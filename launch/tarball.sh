#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
#
# A release as one archive: the sources of a commit, and the page of report --html bundled from
# them, so that a build from the archive needs neither npm nor a network.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=launch/checkout.sh
source "$here/checkout.sh"

usage() {
  cat <<TEXT
Usage: launch/tarball.sh [-o FOLDER] [-c COMMIT] [-p PACKAGES]

Writes isoscale-VERSION.tar.gz: what git has of COMMIT (HEAD by default) with the page of
report --html bundled. What is changed but not committed is not in it.
  -o FOLDER    where it goes (here by default)
  -p PACKAGES  a folder whose node_modules are those of analysis/page/web/package-lock.json, such as
               a build's page/; without it that of build/ where it fits, else npm fetches them
TEXT
}

folder=$PWD commit=HEAD packages=
while [[ $# -gt 0 ]]; do
  case $1 in
    -h | --help) usage && exit 0 ;;
    -o | -c | -p)
      [[ -n ${2:-} ]] || fail "$1 needs a value"
      case $1 in
        -o) folder=$(cd "$2" && pwd) ;;
        -c) commit=$2 ;;
        -p) packages=$(cd "$2" && pwd) ;;
      esac
      shift 2
      ;;
    *) usage >&2 && fail "unknown option '$1'" ;;
  esac
done

for tool in git node tar gzip; do
  command -v "$tool" >/dev/null || fail "$tool is missing"
done
git=(git -C "$isoscale_root")
"${git[@]}" rev-parse --verify --quiet "$commit^{commit}" >/dev/null ||
  fail "there is no commit '$commit' here"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"${git[@]}" archive "$commit" | tar -x -C "$scratch" --one-top-level=sources
version=$(sed -n 's/^project(isoscale VERSION \([0-9.]*\).*/\1/p' "$scratch/sources/CMakeLists.txt")
[[ -n $version ]] || fail "CMakeLists.txt of '$commit' names no version"
name=isoscale-$version
mv "$scratch/sources" "$scratch/$name"
page=$scratch/$name/analysis/page
web=$page/web

# fits FOLDER: whether its node_modules are those of the lock file.
fits() {
  [[ -d $1/node_modules ]] && cmp -s "$1/package-lock.json" "$web/package-lock.json"
}

if [[ -n $packages ]]; then
  fits "$packages" || fail "$packages has not what analysis/page/web/package-lock.json names"
elif fits "$(build_folder release)/page"; then
  packages=$(build_folder release)/page
else
  command -v npm >/dev/null || fail "npm is missing, and no build has what the page is made of"
  packages=$scratch/packages
  mkdir "$packages"
  cp "$web"/package.json "$web"/package-lock.json "$web"/.npmrc "$packages"
  say "npm fetches what the page is made of ..."
  (cd "$packages" && npm ci --ignore-scripts) >"$scratch/npm.log" 2>&1 || {
    cat "$scratch/npm.log" >&2
    fail "npm could not fetch what the page is made of; its messages are above"
  }
fi

node "$web/bundle.mjs" "$packages" "$page/page.html"
# The page is a copy of these: their terms ask for their texts.
{
  say "analysis/page/page.html contains parts of the following, under these terms."
  for part in echarts zrender tslib; do
    printf '\n==== %s %s\n\n' "$part" \
      "$(sed -n 's/^  "version": "\(.*\)",$/\1/p' "$packages/node_modules/$part/package.json")"
    cat "$packages/node_modules/$part"/{NOTICE,LICENSE,LICENSE.txt} 2>/dev/null || true
  done
} >"$page/page-licences.txt" 2>&1

# The same commit gives the same archive.
tar -c -C "$scratch" --sort=name --owner=0 --group=0 --numeric-owner --mode=u+rwX,go+rX,go-w \
  --mtime="@$("${git[@]}" log -1 --format=%ct "$commit")" "$name" |
  gzip -n -9 >"$scratch/$name.tar.gz"
mv "$scratch/$name.tar.gz" "$folder/$name.tar.gz"
say "wrote $folder/$name.tar.gz"
