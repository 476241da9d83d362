#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
#
# Installs what launch/packages.txt lists for the named groups and is not there yet.
# Exit codes: 0 nothing (left) to install, 2 somebody else has to install something.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=launch/checkout.sh
source "$here/checkout.sh"

if [[ $# -eq 0 || $1 == -h || $1 == --help ]]; then
  cat <<TEXT
Usage: launch/install-packages.sh GROUP...     groups: build, page, test, browser, cluster, lint, mpich
Installs the Debian/Ubuntu packages of these groups that are missing (launch/packages.txt).
TEXT
  exit 0
fi

for group in "$@"; do
  if [[ -z $(listed_of "$group") ]]; then
    fail "there is no package group '$group'; see launch/packages.txt"
  fi
done
mapfile -t wanted < <(packages_of "$@")
[[ ${#wanted[@]} -gt 0 ]] || exit 0

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  say "This is neither Debian nor Ubuntu: install the equivalents of these packages:"
  say "  ${wanted[*]}"
  exit 0
fi

mapfile -t missing < <(missing_of "${wanted[@]}")
if [[ ${#missing[@]} -eq 0 ]]; then
  exit 0
fi

as_root=()
if [[ $(id -u) -ne 0 ]]; then
  if ! sudo -n true 2>/dev/null; then
    say "Packages are missing, and only an administrator can install them. As root, run:"
    say "  apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
    exit 2
  fi
  as_root=(sudo -n)
fi

apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive
     apt-get -q -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
say "Installing ${#missing[@]} packages (a few minutes at most): ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { "${apt[@]}" update && "${apt[@]}" install -y --no-install-recommends "${missing[@]}"; } \
    >"$log" 2>&1 </dev/null; then
  tail -n 20 "$log" >&2
  fail "apt-get could not install the packages; its last lines are above"
fi
