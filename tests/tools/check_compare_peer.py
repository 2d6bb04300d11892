"""bench/gpu/compare_peer.py: cuDNN against PyTorch, from interleaved measurements of both, and from separate times of PyTorch.

usage: check_compare_peer.py SOURCE
"""
import json, os, subprocess, sys, tempfile

script = os.path.join(sys.argv[1], "bench", "gpu", "compare_peer.py")
failures = 0


def line(peer, seconds, problem="forward n1", **more):
    return {"suite": "x/vgg16.txt", "problem": problem, "type": "f16", "peer": peer, "peer_seconds": seconds, "ratio": seconds / 2e-5,
            "median_seconds": 2e-5, "peer_refusal": None, "peer_verified": True, "capture_failure": None, "peer_interface": "graph",
            "peer_algorithm": "graph engine 1 nhwc", "peer_layout": "nhwc", "peer_tried": 3, "peer_algorithms": 4, **more}


def compare(expected, words, ours, alone=None):
    global failures
    with tempfile.TemporaryDirectory() as folder:
        files = [os.path.join(folder, name) for name in ("conv.jsonl", "torch.jsonl")][:1 if alone is None else 2]
        for path, records in zip(files, (ours, alone)):
            with open(path, "w") as file:
                file.writelines(json.dumps(one) + "\n" for one in records)
        done = subprocess.run([sys.executable, script, *files], capture_output=True, text=True)
    if done.returncode != expected or any(word not in done.stdout for word in words):
        failures += 1
        print(f"FAIL: exit {done.returncode}, not {expected}; {words} in:\n{done.stdout}{done.stderr}")


compare(0, ["1.020", "1 problems"], [line("cudnn", 1.02e-5), line("torch", 1e-5)])
compare(1, ["SLOW: median"], [line("cudnn", 1.08e-5), line("torch", 1e-5)])
three = [one for i, slow in enumerate((1.0, 1.0, 1.2)) for one in (line("cudnn", slow * 1e-5, f"data n{i}"), line("torch", 1e-5, f"data n{i}"))]
compare(1, ["SLOW: layer", "1.200"], three)
compare(2, ["nothing to compare"], [line("cudnn", 1e-5)])
compare(0, ["the result of torch differs"], [line("cudnn", 1e-5), line("torch", 1e-5, peer_verified=False)])
# Separate times of PyTorch, from an otherwise idle device.
alone = [{"our_label": "forward n1", "type": "f16", "torch": 0.8e-5, "torch_format": "nchw"}]
compare(1, ["1.250"], [line("cudnn", 1e-5), line("torch", 1e-5)], alone)
print("failed" if failures else "right")
sys.exit(1 if failures else 0)
