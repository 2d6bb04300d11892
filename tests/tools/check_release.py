#!/usr/bin/python3
"""make release in a copy of the sources: its rejections and outputs, and that it makes no figure stale.

usage: check_release.py SOURCE     exit status 77 where git is missing or SOURCE is no repository
"""
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

NOTE = "- What a test has changed."
SOURCE = os.path.abspath(sys.argv[1])


def call(*command, folder, status=0, **environment):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=dict(os.environ, **environment))
    if done.returncode != status:
        sys.exit(f"{' '.join(command)}: status {done.returncode}, not {status}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def copy_sources(folder):
    listed = subprocess.run(["git", "-C", SOURCE, "ls-files", "-co", "--exclude-standard", "-z"], capture_output=True, text=True)
    if listed.returncode != 0:
        print(f"SKIPPED: git lists no files of {SOURCE}: {listed.stderr.strip()}")
        sys.exit(77)
    for name in filter(None, listed.stdout.split("\0")):
        if os.path.exists(os.path.join(SOURCE, name)):
            os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
            shutil.copy2(os.path.join(SOURCE, name), os.path.join(folder, name))
    changelog = read(folder, "CHANGELOG.md")
    with open(os.path.join(folder, "CHANGELOG.md"), "w", encoding="utf-8") as file:
        file.write(changelog.replace("## Unreleased\n", f"## Unreleased\n\n{NOTE}\n", 1))
    call("git", "init", "-q", "-b", "main", folder=folder)
    call("git", "add", "-A", folder=folder)
    call("git", "commit", "-q", "-m", "Sources", folder=folder)


def digests(folder):
    code = "import sys; sys.path.insert(0, 'bench'); import sources; print([sources.digest(name) for name in sources.SETS if name != 'program'])"
    return call("/usr/bin/python3", "-B", "-c", code, folder=folder)


def require(holds, sentence):
    if not holds:
        sys.exit(sentence)


def release(folder, version, status=0):
    return call("make", "release", f"VERSION={version}", "WHEEL=no", folder=folder, status=status, SOURCE_DATE_EPOCH="1800000000")


def check(work):
    folder = os.path.join(work, "cosmati")
    os.makedirs(folder)
    copy_sources(folder)
    before = digests(folder)
    for version in ("1.2", "v1.2.3", "01.2.3"):
        require("is invalid; expected three numbers" in release(folder, version, 2), f"VERSION={version} is not refused as it should be")
    with open(os.path.join(folder, "stray"), "w", encoding="utf-8"):
        pass
    require("has changes" in release(folder, "7.8.9", 2), "a working tree with changes is not refused")
    os.remove(os.path.join(folder, "stray"))

    release(folder, "7.8.9")
    require("project(cosmati VERSION 7.8.9" in read(folder, "CMakeLists.txt"), "CMakeLists.txt has another version")
    parts = re.findall(r"define COSMATI_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", read(folder, "include/cosmati.h"))
    require(parts == ["7", "8", "9"], f"cosmati.h has version {parts}")
    require("\nversion: 7.8.9\n" in read(folder, "CITATION.cff") and "date-released: 2027-01-15\n" in read(folder, "CITATION.cff"),
            "CITATION.cff has another version or date")
    require(f"## Unreleased\n\n## 7.8.9 (2027-01-15)\n\n{NOTE}" in read(folder, "CHANGELOG.md"), "the changelog's section was not closed")
    require(digests(folder) == before, "the release changed digests, so that every figure would be stale")
    require(call("git", "status", "--porcelain", folder=folder) == "", "the release left changes behind")
    tag = call("git", "for-each-ref", "--format=%(contents)", "refs/tags/v7.8.9", folder=folder)
    require(tag.startswith("Cosmati 7.8.9\n") and NOTE in tag, f"the tag v7.8.9 says: {tag[:200]}")
    with tarfile.open(os.path.join(folder, "build/dist/cosmati-7.8.9.tar.gz")) as archive:
        require("cosmati-7.8.9/CMakeLists.txt" in archive.getnames(), "the archive has no cosmati-7.8.9/CMakeLists.txt")
    sums = dict(reversed(line.split()) for line in read(folder, "build/dist/SHA256SUMS").splitlines())
    with open(os.path.join(folder, "build/dist/cosmati-7.8.9.tar.gz"), "rb") as file:
        require(sums == {"cosmati-7.8.9.tar.gz": hashlib.sha256(file.read()).hexdigest()}, f"SHA256SUMS has {sums}")

    require("Unreleased of CHANGELOG.md is empty" in release(folder, "7.9.0", 2), "an empty section is not refused")
    require("the tag v7.8.9 exists" in release(folder, "7.8.9", 2), "a tag that exists is not refused")
    require("expected a version after 7.8.9" in release(folder, "7.8.8", 2), "an earlier version is not refused")


if shutil.which("git") is None:
    print("SKIPPED: there is no git here")
    sys.exit(77)
os.environ |= {"GIT_AUTHOR_NAME": "test", "GIT_AUTHOR_EMAIL": "test@example.org", "GIT_COMMITTER_NAME": "test", "GIT_COMMITTER_EMAIL": "test@example.org",
               "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
with tempfile.TemporaryDirectory() as temporary:
    check(temporary)
print("released")
