"""Helpers of the command-line tests: run the program on .npy files, and compare with numpy in f64."""
import json, os, subprocess, sys, tempfile
import numpy as np


class Program:
    def __init__(self, path, backend):
        self.path, self.backend = path, backend
        self.folder = tempfile.TemporaryDirectory(prefix="cosmati-cli-")
        self.failures, self.checks = [], 0

    def file(self, name):
        return os.path.join(self.folder.name, name)

    def save(self, name, array):
        path = self.file(name + ".npy")
        np.save(path, array)
        return path

    def call(self, *words, expect=0, stdin=None, **environment):
        """Runs the program; returns the finished process and reports any other exit status."""
        done = subprocess.run([self.path, *map(str, words)], capture_output=True, text=True, timeout=300,
                              env={**os.environ, **environment})
        self.check(done.returncode == expect, f"{' '.join(map(str, words))}: exit {done.returncode}, not {expect}: {done.stderr.strip()[:300]}")
        return done

    def try_verb(self, *words):
        """Runs the program; accepts any exit status."""
        return subprocess.run([self.path, *map(str, words)], capture_output=True, text=True, timeout=600)

    def try_run(self, *words):
        return self.try_verb("run", *words)

    def run(self, *words, out="out", expect=0):
        """Runs cosmati run ... --out FILE; returns the array, or None after a failure."""
        path = self.file(out + ".npy")
        if os.path.exists(path):
            os.remove(path)
        done = self.call("run", *words, "--backend", self.backend, "--out", path, expect=expect)
        return np.load(path) if done.returncode == 0 and os.path.exists(path) else None

    def has_kernels(self, subject):
        """Returns True if the backend supports the subject."""
        done = self.call("list", "kernels", "--json")
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        return any(line["subject"] == subject and line["backend"] == self.backend for line in lines)

    def check(self, right, message):
        self.checks += 1
        if not right:
            self.failures.append(message)
            print("FAIL", message)
        return right

    def load(self, name, keep=False):
        """Loads an extra output and deletes its file unless it is to be kept; None if it does not exist."""
        path = self.file(name)
        if not os.path.exists(path):
            return None
        array = np.load(path)
        if not keep:
            os.remove(path)
        return array

    def close(self, what, got, wanted, magnitude=None, relative=2e-5):
        """|got - wanted| <= relative * magnitude; NaN where NaN is wanted; equal shapes."""
        wanted = np.asarray(wanted, np.float64)
        if not self.check(got is not None, what + ": no result") or \
           not self.check(got.shape == wanted.shape, f"{what}: shape {got.shape}, not {wanted.shape}"):
            return
        magnitude = np.maximum(np.abs(wanted) if magnitude is None else magnitude, 1e-3 if wanted.size == 0 else np.nanmax(np.abs(wanted)) * 0.1)
        error = np.abs(got.astype(np.float64) - wanted)
        within = (error <= relative * magnitude) | (np.isnan(wanted) & np.isnan(got.astype(np.float64)))
        self.check(bool(np.all(within)), f"{what}: largest error {np.nanmax(error) if error.size else 0}, {np.sum(~within)} of {within.size} wrong")

    def equal(self, what, got, wanted):
        wanted = np.asarray(wanted)
        self.check(got is not None and got.shape == wanted.shape and np.array_equal(got, wanted),
                   f"{what}: {None if got is None else (got.dtype, got.shape, got.ravel()[:6])}, not {(wanted.dtype, wanted.shape, wanted.ravel()[:6])}")

    def finish(self):
        print(f"{self.checks - len(self.failures)} of {self.checks} checks passed")
        sys.exit(1 if self.failures else 0)


def to_bf16(array):
    """Returns the bit patterns of the nearest bf16, ties to even."""
    bits = np.asarray(array, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def from_e4m3(bits):
    sign = np.where(bits & 0x80, -1.0, 1.0)
    exponent, mantissa = (bits >> 3 & 15).astype(np.int64), (bits & 7).astype(np.float64)
    value = np.where(exponent == 0, mantissa * 2.0**-9, (8 + mantissa) * 2.0 ** (exponent - 10))
    return np.where((bits & 0x7F) == 0x7F, np.nan, sign * value)
