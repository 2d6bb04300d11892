#!/usr/bin/env bash
# Builds the site: build/site/index.html. Warnings, broken links among them, are errors.
# Needs Doxygen, build/release/bin/cosmati (or the program that COSMATI names), and PyPI when run for the first time.
set -euo pipefail
cd "$(dirname "$0")/../.."
program=${COSMATI:-build/release/bin/cosmati} source=build/site-source
venv=build/site-venv
if ! cmp -s tools/site/requirements.txt $venv/requirements.txt; then
  /usr/bin/python3 -m venv $venv
  $venv/bin/pip install -q -r tools/site/requirements.txt
  cp tools/site/requirements.txt $venv/requirements.txt
fi

rm -rf $source build/site build/site-doctrees # C++ declarations left by an earlier build would slow this one down
mkdir -p $source/doxygen
for name in README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md CODE_OF_CONDUCT.md LICENSE docs examples; do
  cp -r "$name" "$source/$name"
done
cp tools/site/index.md $source/index.md
doxygen tools/site/Doxyfile
tools/program/write_help.py "$program" markdown $source/reference/program
mv $source/reference/program/cosmati.md $source/reference/program.md
sed -i 's|(cosmati-|(program/cosmati-|' $source/reference/program.md
cp tools/site/python.md $source/reference/python.md
$venv/bin/python tools/site/headers.py $source/reference $source/doxygen/xml
$venv/bin/sphinx-build -q -W --keep-going -j auto -b html -c tools/site -d build/site-doctrees $source build/site
echo "build/site/index.html"
