#!/usr/bin/python3
"""make release in a copy of the sources: its rejections and outputs, and that it makes no figure stale. The source distribution for Python
is made, and configured by CMake, where the test `python` has installed scikit-build-core in the BUILD folder.

usage: check_release.py SOURCE [BUILD]     exit status 77 where git is missing or SOURCE is no repository
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
PACKAGER = os.path.join(os.path.abspath(sys.argv[2]), "python", "venv", "bin", "python") if len(sys.argv) > 2 else ""


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


def has_packager():
    return os.path.exists(PACKAGER) and subprocess.run([PACKAGER, "-c", "import scikit_build_core"], capture_output=True).returncode == 0


def release(folder, version, status=0, sdist="no"):
    return call("make", "release", f"VERSION={version}", "WHEEL=no", f"SDIST={sdist}", folder=folder, status=status, SOURCE_DATE_EPOCH="1800000000")


def check_sdist(path, folder, work):
    """The distribution has what its build reads, and nothing else that is large."""
    read_by_build = call("git", "ls-files", "src", "include", "reference", "nets", "cli", "cmake", "python", "bench/suites", "bench/models", "share/cosmati", folder=folder)
    with tarfile.open(path) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
        archive.extractall(work)
    for name in ("PKG-INFO", "pyproject.toml", "README.md", "LICENSE", "CMakeLists.txt", *read_by_build.split()):
        require(name in names, f"the source distribution has no {name}")
    more = [name for name in names if name.startswith(("tests/", "bench/results/", "docs/pictures/", "build/"))]
    require(not more and os.path.getsize(path) < 15e6, f"the source distribution has {os.path.getsize(path)} bytes and {more[:5]}")
    unpacked = os.path.join(work, "cosmati-7.8.9")
    require("\nVersion: 7.8.9\n" in read(unpacked, "PKG-INFO"), "PKG-INFO has another version")
    # CMake before 3.26 has no module of the stable ABI; the packager brings one
    modules = call(PACKAGER, "-c", "import scikit_build_core.resources.find_python as found; print(*found.__path__)", folder=work).strip()
    configure = ["cmake", "-S", "python", "-B", os.path.join(work, "configured"), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DPython3_EXECUTABLE=/usr/bin/python3",
                 "-DCMAKE_MODULE_PATH=" + modules]
    require("oneDNN 2.6 or 2.7 was not found" in " ".join(call(*configure, "-DDNNL_LIBRARY=", folder=unpacked, status=1).split()), "a build without oneDNN is not refused")
    configured = call(*configure, "-UDNNL_LIBRARY", folder=unpacked)
    require("Build files have been written" in configured, configured)


def check(work):
    folder = os.path.join(work, "sources")
    os.makedirs(folder)
    copy_sources(folder)
    before = digests(folder)
    for version in ("1.2", "v1.2.3", "01.2.3"):
        require("is invalid; expected three numbers" in release(folder, version, 2), f"VERSION={version} is not refused as it should be")
    with open(os.path.join(folder, "stray"), "w", encoding="utf-8"):
        pass
    require("has changes" in release(folder, "7.8.9", 2), "a working tree with changes is not refused")
    os.remove(os.path.join(folder, "stray"))

    sdist = has_packager()
    release(folder, "7.8.9", sdist=PACKAGER if sdist else "no")
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
    dist = os.path.join(folder, "build", "dist")
    with tarfile.open(os.path.join(dist, "cosmati-7.8.9-source.tar.gz")) as archive:
        require("cosmati-7.8.9/CMakeLists.txt" in archive.getnames(), "the archive has no cosmati-7.8.9/CMakeLists.txt")
    sums = dict(reversed(line.split()) for line in read(dist, "SHA256SUMS").splitlines())
    require(set(sums) == {"cosmati-7.8.9-source.tar.gz", *(["cosmati-7.8.9.tar.gz"] if sdist else [])}, f"SHA256SUMS has {sums}")
    for name, digest in sums.items():
        with open(os.path.join(dist, name), "rb") as file:
            require(hashlib.sha256(file.read()).hexdigest() == digest, f"SHA256SUMS has another sum of {name}")
    if sdist:
        check_sdist(os.path.join(dist, "cosmati-7.8.9.tar.gz"), folder, work)
    else:
        print("SKIPPED: the source distribution: no scikit-build-core, which the test `python` installs")

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
