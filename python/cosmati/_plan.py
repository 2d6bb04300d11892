"""Plans: how a problem is computed, for those who want to see or to choose it."""
from . import _native


class Plan:
    """How one problem is computed: a kernel, chosen and prepared. Made by plan_gemm and plan_conv2d.

    Called with the arrays that the function of the same name takes, it computes by this kernel whatever the function itself
    would take. Types, shapes, strides, alignments (up to 16 bytes) and the epilogue must be those of the plan: ValueError.
    """

    def __init__(self, capsule, call):
        self._call = call
        self._capsule = capsule
        self._facts = _native.plan_facts(capsule)

    def __call__(self, *arrays, **named):
        return self._call(self._capsule, *arrays, **named)

    @property
    def kernel(self):
        """The name of the kernel that was chosen."""
        return self._facts[0]

    @property
    def workspace_bytes(self):
        """Bytes of workspace that a run needs; they are allocated by the call."""
        return self._facts[2]

    @property
    def backend(self):
        """"cpu" or "cuda"."""
        return self._facts[3]

    @property
    def expected_error(self):
        """The expected rounding error as a share of the results' scale: the standard deviation of a result's error over that of
        the results, for random inputs of mean 0, before they are rounded to their type (docs/convolution.md, "How far off results
        are"). 0.0 of integers, whose sums are exact, and of a kernel that states none."""
        return self._facts[4]

    def explain(self):
        """Every kernel that was considered, a line each: chosen, possible, or refused and why."""
        return self._facts[1]

    def __repr__(self):
        return f"<cosmati.Plan: {self.kernel} on {self.backend}, {self.workspace_bytes} bytes of workspace>"


def mode_of(kernel, max_workspace, max_error, batch_invariant, policy, seconds):
    """What the extension takes as (options, measured)."""
    options = {"kernel": kernel, "max_workspace": max_workspace, "max_error": max_error, "policy": policy,
               "batch_invariant": "yes" if batch_invariant else None, "seconds": seconds}
    return ";".join(f"{key}={value}" for key, value in options.items() if value is not None), seconds is not None
