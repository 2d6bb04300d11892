"""check_limits.py PROGRAM: runs under limits of memory and threads end with one of the program's exit statuses, never by a signal."""
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile

import numpy

NOBODY = 65534
failures = []


def check(holds, text):
    if not holds:
        failures.append(text)
        print("FAILED:", text)


def run(program, folder, arguments, limit=None):
    return subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True, timeout=120, preexec_fn=limit,
                          env={**os.environ, "COSMATI_CACHE": str(folder / "cache")})


def address_space(kilobytes):
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (kilobytes * 1024, kilobytes * 1024))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return limit


def check_memory(program, folder):
    """Under any limit of the address space, expects the result or a one-sentence message. Below the lowest limit under
    which the program starts at all, the exit status is the dynamic loader's."""
    runs = {"gemm": ["run", "gemm", "--a", "a.npy", "--b", "a.npy", "--out", "d.npy"],
            "gemm with c": ["run", "gemm", "--a", "a.npy", "--b", "a.npy", "--c", "a.npy", "--set", "beta=1", "--out", "d.npy"],
            "gemm f64": ["run", "gemm", "--a", "b.npy", "--b", "b.npy", "--out", "d.npy"],
            "conv": ["run", "conv", "--x", "x.npy", "--w", "w.npy", "--direction", "forward", "--out", "d.npy"]}
    lowest = next(k for k in range(8000, 200000, 4000) if run(program, folder, ["list", "suites"], address_space(k)).returncode == 0)
    for name, arguments in runs.items():
        statuses = {}
        for kilobytes in [*range(lowest, 300000, 7000), *range(98000, 112000, 1000), 102400]:
            done = run(program, folder, [*arguments, "--backend", "cpu", "--threads", "2"], address_space(kilobytes))
            statuses[done.returncode] = statuses.get(done.returncode, 0) + 1
            check(done.returncode in (0, 2, 3), f"{name} in {kilobytes} KiB: status {done.returncode}, {done.stderr[-200:]!r}")
            check(done.returncode == 0 or done.stderr.startswith("cosmati: "), f"{name} in {kilobytes} KiB says {done.stderr[-200:]!r}")
        check(0 in statuses, f"{name}: no limit was large enough")
        print(name, "from", lowest, "KiB on: statuses", statuses)


def check_threads(program, folder):
    """Runs the program as a user who may not start any more processes."""
    if os.geteuid() == 0:  # root is exempt from process limits; the copy is in a folder that another user may read
        root = folder / "copy"
        shutil.copytree(pathlib.Path(program).parent, root / "bin", ignore=lambda _, names: [n for n in names if n != pathlib.Path(program).name])
        shutil.copytree(pathlib.Path(program).parent.parent / "lib", root / "lib", symlinks=True,
                        ignore=lambda _, names: [n for n in names if not n.startswith("libcosmati")])
        program = str(root / "bin" / pathlib.Path(program).name)
    for path in (folder, *folder.iterdir()):
        path.chmod(0o777)

    def limit():
        if os.geteuid() == 0:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
        resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))

    for arguments in (["run", "gemm", "--a", "a.npy", "--b", "a.npy", "--out", "d.npy"],
                      ["run", "conv", "--x", "x.npy", "--w", "w.npy", "--direction", "forward", "--out", "d.npy"]):
        done = run(program, folder, [*arguments, "--backend", "cpu", "--threads", "4"], limit)
        check(done.returncode == 0, f"{arguments[1]} without threads: status {done.returncode}, {done.stderr[-300:]!r}")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        random = numpy.random.default_rng(1)
        numpy.save(folder / "a.npy", random.standard_normal((300, 300)).astype(numpy.float32))
        numpy.save(folder / "b.npy", random.standard_normal((300, 300)))
        numpy.save(folder / "x.npy", random.standard_normal((2, 32, 28, 28)).astype(numpy.float32))
        numpy.save(folder / "w.npy", random.standard_normal((32, 32, 3, 3)).astype(numpy.float32))
        check_threads(sys.argv[1], folder)
        check_memory(sys.argv[1], folder)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
