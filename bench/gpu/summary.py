#!/usr/bin/env python3
"""A short table of what bench/gpu/run.sh measured. usage: summary.py figure9.jsonl verify.jsonl"""
import collections, json, os, sys


def lines(path):
    if not os.path.exists(path):
        return []
    with open(path) as file:
        return [json.loads(line) for line in file if line.startswith("{")]


def number(value, form):
    return "-" if value is None else format(value, form)


print(f"{'problem':32} {'type':5} {'kernel':16} {'TFLOP/s':>8} {'of peak':>8} {'ratio to cuBLASLt':>24} {'to first':>8}  state")
for line in lines(sys.argv[1]):
    ratio = "-" if line["ratio"] is None else f"{line['ratio']:.3f} [{line['ratio_low']:.3f}, {line['ratio_high']:.3f}]"
    words = [{True: "verified", False: "WRONG", None: "not verified"}[line["verified"]]]
    words += [word for word, told in (("unsettled", not line["settled"]), ("slowing", not line["steady"]), ("throttled", line["throttled"]),
                                      ("peer differs", line["peer_verified"] is False), (line["peer_refusal"], line["peer_refusal"])) if told]
    print(f"{line['problem']:32} {line['type']:5} {line['kernel']:16} {line['gflops'] / 1e3:8.2f} {number(line['share_of_peak'], '8.1%'):>8} "
          f"{ratio:>24} {number(line['first_ratio'], '.3f'):>8}  {', '.join(words)}; host {number(line['host_seconds'] and line['host_seconds'] * 1e6, '.2f')} us")

verified = lines(sys.argv[2])
wrong = [line for line in verified if not line["correct"]]
kinds = collections.Counter(f"{line['type']} {line['kernel']}" for line in verified)
print(f"verify: {len(verified)} problems, {len(wrong)} wrong; " + ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items())))
for line in wrong[:20]:
    print(f"  WRONG {line['type']} {line['kernel']} {line['problem']}: {line['complaint']}")
