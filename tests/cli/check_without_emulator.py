"""Without the emulator's kernels, `--backend emulator` says in one sentence how to build them; plans and everything else work.
`make build` omits them, and a separate target builds them.

check_without_emulator.py PROGRAM LIBCOSMATI SOURCES CMAKE"""
import os, shutil, subprocess, sys, tempfile
import numpy as np

program, library, sources, cmake = sys.argv[1:]
failures = 0


def check(holds, text):
    global failures
    if not holds:
        print("FAILED:", text)
        failures += 1


def run(*words):
    return subprocess.run(list(map(str, words)), capture_output=True, text=True)


def without_module(folder):
    os.makedirs(folder + "/bin")
    os.makedirs(folder + "/lib")
    cosmati = shutil.copy(program, folder + "/bin/cosmati")
    for name in os.listdir(os.path.dirname(library)):
        if name.startswith("libcosmati.so"):
            shutil.copy(os.path.join(os.path.dirname(library), name), folder + "/lib", follow_symlinks=False)
    np.save(folder + "/a.npy", np.eye(4, dtype=np.float32))
    a = folder + "/a.npy"
    for words in (("run", "gemm", "--a", a, "--b", a, "--out", folder + "/d.npy"), ("run", "softmax", "--x", a, "--out", folder + "/y.npy"),
                  ("verify", "conv", "--count", "2"), ("bench", "gemm", "--size", "8x8x8"), ("find", "gemm", "--size", "8x8x8", "--out", folder + "/t.txt")):
        done = run(cosmati, *words, "--backend", "emulator")
        check(done.returncode == 3, f"{words[:2]}: status {done.returncode}, not 3: {done.stdout} {done.stderr}")
        check("libcosmati_emulator.so" in done.stderr and "make emulator" in done.stderr and "--target cosmati_emulator" in done.stderr
              and done.stderr.count("\n") == 1, f"{words[:2]} says {done.stderr!r}")
    done = run(cosmati, "explain", "gemm", "--size", "127x65x333", "--backend", "emulator")
    check(done.returncode == 0 and "double_buffered" in done.stdout, f"explain: {done.returncode} {done.stderr}")
    check(done.stdout == run(program, "explain", "gemm", "--size", "127x65x333", "--backend", "emulator").stdout, "the plan is another without the module")
    done = run(cosmati, "run", "gemm", "--a", a, "--b", a, "--out", folder + "/d.npy", "--backend", "reference")
    check(done.returncode == 0 and (np.load(folder + "/d.npy") == np.eye(4)).all(), f"the reference: {done.returncode} {done.stderr}")
    told = [line for line in run(cosmati, "info").stdout.splitlines() if line.split()[:2] == ["backend", "emulator"]]
    check(len(told) == 1 and " no " in told[0] and "make emulator" in told[0], f"info says {told}")


def left_out(folder):
    done = run(cmake, "-S", sources, "-B", folder, "-G", "Ninja", "-DCOSMATI_TESTS=OFF", "-DCOSMATI_EMULATOR=OFF", "-DCOSMATI_UNITY=OFF")
    check(done.returncode == 0, f"cmake: {done.stdout} {done.stderr}")
    catalogue = "src/backend/emulator/catalogue/"
    everything = run(cmake, "--build", folder, "--", "-t", "commands").stdout
    check("src/backend/emulator/machine/launch.cpp" in everything and catalogue not in everything, "the whole build has the emulator's kernels")
    check(catalogue in run(cmake, "--build", folder, "--", "-t", "commands", "cosmati_emulator").stdout, "the target has no kernels")


with tempfile.TemporaryDirectory(prefix="cosmati-without-") as work:
    without_module(work + "/copy")
    left_out(work + "/build")
print("all right" if failures == 0 else f"{failures} wrong")
sys.exit(failures > 0)
