#!/usr/bin/env bash
# Releases a version: writes it where it is stated, closes the section "Unreleased" of the changelog, commits, tags, and
# leaves the files of the release in build/dist/. Pushes nothing.
# usage: release.sh VERSION [WHEEL [SDIST]]     `no` leaves out the wheel or the source distribution of the Python package
#
# SDIST may also name a Python that has scikit-build-core, which otherwise comes from PyPI. The source distribution's file name is
# prescribed, so the archive of the sources has a different one.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$1 wheel=${2:-yes} sdist=${3:-yes} date=$(date -u -d "@${SOURCE_DATE_EPOCH:-$(date +%s)}" +%F)
refuse() {
  echo "release: $1" >&2
  exit 2
}

[[ $version =~ ^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)$ ]] || refuse "VERSION=$version is invalid; expected three numbers, such as 0.2.0"
major=${BASH_REMATCH[1]} minor=${BASH_REMATCH[2]} patch=${BASH_REMATCH[3]}
[ -z "$(git status --porcelain)" ] || refuse "the working tree has changes; commit or remove them first"
! git rev-parse -q --verify "refs/tags/v$version" >/dev/null || refuse "the tag v$version exists already"
latest=$(sed -nE 's/^## ([0-9.]+) \(.*/\1/p' CHANGELOG.md | head -1)
[ -z "$latest" ] || { [ "$latest" != "$version" ] && [ "$(printf '%s\n' "$latest" "$version" | sort -V | tail -1)" = "$version" ]; } ||
  refuse "VERSION=$version is invalid; expected a version after $latest, the latest of CHANGELOG.md"
notes=$(sed -n '/^## Unreleased$/,/^## [0-9]/p' CHANGELOG.md | sed '/^## /d')
[ -n "${notes//[[:space:]]/}" ] || refuse "the section Unreleased of CHANGELOG.md is empty"

sed -i -E "s/^(project\(cosmati VERSION) [0-9.]+/\1 $version/" CMakeLists.txt
sed -i -E "s/(define COSMATI_VERSION_MAJOR) .*/\1 $major/; s/(define COSMATI_VERSION_MINOR) .*/\1 $minor/
           s/(define COSMATI_VERSION_PATCH) .*/\1 $patch/" include/cosmati.h
sed -i -E "s/^version: .*/version: $version/; /^date-released:/d" CITATION.cff
echo "date-released: $date" >>CITATION.cff
sed -i -E "s/^## Unreleased$/## Unreleased\n\n## $version ($date)/" CHANGELOG.md
git commit -qam "Release $version"
printf 'Cosmati %s\n%s\n' "$version" "$notes" | git tag -a --cleanup=verbatim -F - "v$version"

rm -rf build/dist
mkdir -p build/dist
git archive --prefix="cosmati-$version/" -o "build/dist/cosmati-$version-source.tar.gz" "v$version"
if [ "$sdist" = no ]; then
  echo "release: without a source distribution for Python, as SDIST=no says"
else
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  if [ "$sdist" = yes ]; then
    /usr/bin/python3 -m venv "$work/venv"
    sdist=$work/venv/bin/python
    "$sdist" -m pip --disable-pip-version-check -q install 'scikit-build-core>=0.10'
  fi
  tar -xf "build/dist/cosmati-$version-source.tar.gz" -C "$work"
  (cd "$work/cosmati-$version" && "$sdist" -c 'import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])' "$work") >/dev/null
  cp "$work/cosmati-$version.tar.gz" build/dist/ || refuse "scikit-build-core made no cosmati-$version.tar.gz"
fi
if [ "$wheel" = no ]; then
  echo "release: without a wheel, as WHEEL=no says"
else
  make wheel
  cp build/wheel/cosmati-"$version"-*.whl build/dist/ || refuse "make wheel left no wheel of $version"
fi
(cd build/dist && sha256sum -- * >SHA256SUMS)
echo "release: v$version is tagged; build/dist has:"
cat build/dist/SHA256SUMS
