#!/usr/bin/python3
"""Builds the site with warnings as errors, and checks it: every page is listed, links between pages resolve, search finds words.

usage: check_site.py PROGRAM     exit status 77 where `make docs` has not made its environment, or Doxygen is missing
       check_site.py --built     checks the site that `make docs` has just built
"""
import html
import os
import re
import shutil
import subprocess
import sys
import urllib.parse

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SITE = os.path.join(ROOT, "build", "site")


def built():
    if not os.path.exists(os.path.join(ROOT, "build", "site-venv", "requirements.txt")) or shutil.which("doxygen") is None:
        print("SKIPPED: Sphinx or Doxygen is missing here; `make docs` installs them (it needs PyPI)")
        sys.exit(77)
    done = subprocess.run([os.path.join(ROOT, "tools", "site", "build.sh")], capture_output=True, text=True, env=dict(os.environ, COSMATI=os.path.abspath(sys.argv[1])))
    if done.returncode != 0:
        sys.exit(f"the site was not built:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")


def read(*path):
    with open(os.path.join(SITE, *path), encoding="utf-8") as file:
        return file.read()


def pages():
    for folder, _, names in os.walk(SITE):
        yield from (os.path.relpath(os.path.join(folder, name), SITE) for name in names if name.endswith(".html"))


def wrong_links(page, anchors):
    for link in re.findall(r'(?:href|src)="([^"]+)"', read(page)):
        target, _, anchor = html.unescape(link).partition("#")
        if re.match(r"\w+:", target):
            continue
        path = os.path.normpath(os.path.join(os.path.dirname(page), urllib.parse.unquote(target.split("?")[0]))) if target else page
        if not os.path.exists(os.path.join(SITE, path)):
            yield f"{page} leads to {link}, which is not there"
        elif anchor and path.endswith(".html") and urllib.parse.unquote(anchor) not in anchors(path):
            yield f"{page} leads to {link}, where there is no such heading"


def main():
    if sys.argv[1] != "--built":
        built()
    known = {}

    def anchors(path):
        if path not in known:
            known[path] = {"", *map(html.unescape, re.findall(r'\bid="([^"]+)"', read(path)))}
        return known[path]

    found = sorted(pages())
    wrong = [one for page in found for one in wrong_links(page, anchors)]
    index = read("searchindex.js")
    wrong += [f"the search index does not know '{word}'" for word in ("gemmproblem", "epilogu", "cosmati_run", "local_response_norm", "--batch-invariant".strip("-"))
              if word not in index.lower()]
    wrong += [f"{page} loads {url}: the site is to work offline" for page in found for url in re.findall(r'<(?:script|link rel="stylesheet")[^>]*"(https?:[^"]+)"', read(page))]
    wrong += [f"{page} has the option {option} with a dash" for page in found for option in re.findall(r"[\s(>]([–—][a-z][\w-]*)", read(page))]
    if len(found) < 120:
        wrong.append(f"only {len(found)} pages")
    print("\n".join(wrong) or f"{len(found)} pages, every link leads somewhere")
    sys.exit(1 if wrong else 0)


main()
