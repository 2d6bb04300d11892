"""--batch-invariant on the command line: the bits of rows, matrices and images, and rejected requests."""
import json, math, sys
import numpy as np
from program import Program

program = Program(sys.argv[1], sys.argv[2])
check, call, save, run = program.check, program.call, program.save, program.run
random = np.random.default_rng(11)
m, n, k = 37, 24, 600
a, b = random.standard_normal((3, m, k)).astype(np.float32), random.standard_normal((k, n)).astype(np.float32)
save("b", b), save("bias", random.standard_normal(n).astype(np.float32))


def product(rows, batch=1):
    save("a", a[0, :rows] if batch == 1 else a[:batch, :rows])
    return run("gemm", "--a", program.file("a.npy"), "--b", program.file("b.npy"), "--operand", "bias=" + program.file("bias.npy"),
               "--epilogue", "gelu(acc + bias[n])", "--batch-invariant")


whole = product(m)
program.close("the product", whole, (lambda v: v * 0.5 * (1 + np.vectorize(math.erf)(v / 2**0.5)))(a[0].astype(float) @ b + np.load(program.file("bias.npy"))),
              magnitude=np.abs(a[0]).astype(float) @ np.abs(b))
for rows in (1, 2, 8, 33):
    check(np.array_equal(product(rows).view(np.uint32), whole[:rows].view(np.uint32)), f"{rows} of {m} rows have other bits")
check(np.array_equal(product(m, 3)[0].view(np.uint32), whole.view(np.uint32)), "a matrix of three has other bits")

def verdicts(*words):
    done = call("explain", "gemm", "--size", "1x24x600", "--backend", program.backend, "--json", *words)
    return {line["kernel"]: line["verdict"] for line in map(json.loads, done.stdout.splitlines())}


expected = "in_order" if program.backend == "cpu" else "double_buffered"
check(verdicts("--batch-invariant")[expected] != "refused", f"{expected} is refused: {verdicts('--batch-invariant')}")
if program.backend == "cpu":
    check(verdicts()["in_order"] == "refused" and verdicts("--batch-invariant")["in_order"] == "chosen", "in_order is for this option")

x = random.standard_normal((3, 8, 9, 9)).astype(np.float32)
save("w", random.standard_normal((8, 8, 3, 3)).astype(np.float32))
images = {}
for count in (1, 3):
    save("x", x[:count])
    images[count] = run("conv", "--x", program.file("x.npy"), "--w", program.file("w.npy"), "--batch-invariant")
check(np.array_equal(images[1].view(np.uint32), images[3][:1].view(np.uint32)), "an image of three has other bits")

for words, said in ((("explain", "conv", "--size", "2x3x9x9x4x3x3", "--direction", "filter"), "a filter's gradient is a sum over the batch"),
                    (("explain", "batchnorm", "--size", "2x3x4x4", "--training"), "are sums over the batch"),
                    (("find", "gemm", "--size", "8x8x8"), "find selects the fastest"), (("train", "lenet5", "--data", "nowhere"), "train plans"),
                    (("predict", "lenet5", "--model", "nowhere"), "predict plans"), (("generate", "dcgan", "--count", "1"), "generate plans")):
    done = call(*words, "--batch-invariant", "--backend", program.backend, expect=2)
    check(said in done.stderr, f"{words[:2]}: {done.stderr.strip()}")

print(f"{program.checks} checks, {len(program.failures)} failed")
sys.exit(1 if program.failures else 0)
