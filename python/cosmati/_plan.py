"""Plans: shows or selects how a problem is computed."""
from . import _native


class Plan:
    """How one problem is computed: a kernel, chosen and prepared. Made by plan_gemm and plan_conv2d.

    Called with the arrays of the function of the same name, it computes them by this kernel, whichever kernel the
    function itself would select. ValueError unless types, shapes, strides, alignments (up to 16 bytes) and the epilogue are
    those of the plan.
    """

    def __init__(self, capsule, call):
        self._call = call
        self._capsule = capsule
        self._facts = _native.plan_facts(capsule)

    def __call__(self, *arrays, **named):
        return self._call(self._capsule, *arrays, **named)

    @property
    def kernel(self):
        """The name of the chosen kernel."""
        return self._facts[0]

    @property
    def workspace_bytes(self):
        """The bytes of workspace that a run needs; the call allocates them."""
        return self._facts[2]

    @property
    def backend(self):
        """"cpu" or "cuda"."""
        return self._facts[3]

    @property
    def expected_error(self):
        """The expected relative rounding error, which is the standard deviation of a result's error divided by that of the results,
        for random inputs of mean 0, before rounding to the output type (docs/convolution.md, "Expected errors"). 0.0 for integers,
        whose sums are exact, and for kernels that state none."""
        return self._facts[4]

    def explain(self):
        """Returns one line per kernel that was considered: chosen, possible, or the reason for rejection."""
        return self._facts[1]

    def __repr__(self):
        return f"<cosmati.Plan: {self.kernel} on {self.backend}, {self.workspace_bytes} bytes of workspace>"


def mode_of(kernel, max_workspace, max_error, batch_invariant, policy, seconds):
    """Returns (options, measured) as the extension expects them."""
    options = {"kernel": kernel, "max_workspace": max_workspace, "max_error": max_error, "policy": policy,
               "batch_invariant": "yes" if batch_invariant else None, "seconds": seconds}
    return ";".join(f"{key}={value}" for key, value in options.items() if value is not None), seconds is not None
