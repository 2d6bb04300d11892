#!/usr/bin/env python3
"""A short table of what bench/gpu/run.sh measured. usage: summary.py figure9.jsonl verify.jsonl [conv.jsonl]"""
import collections, json, math, os, sys


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

# Convolutions against cuDNN: geometric means over a suite's layers of one type and direction.
groups = collections.defaultdict(list)
for line in lines(sys.argv[3]) if len(sys.argv) > 3 else []:
    groups[line["suite"], line["type"], line["problem"].split()[0]].append(line)
if groups:
    print(f"{'suite':14} {'type':5} {'direction':10} {'problems':>8} {'ratio to cuDNN':>14} {'to first':>8} {'least':>7}  slowest problem")
for (suite, type, direction), group in sorted(groups.items()):
    timed = [line for line in group if line["ratio"]]
    notes = [f"{count} {what}" for what, count in (("wrong", sum(line["verified"] is False for line in group)), ("refused", sum(bool(line["peer_refusal"]) for line in group)),
                                                   ("where the peer differs", sum(line["peer_verified"] is False for line in group))) if count]
    mean = lambda key: math.exp(sum(math.log(line[key]) for line in timed) / len(timed))
    if timed:
        slowest = min(timed, key=lambda line: line["ratio"])
        print(f"{suite:14} {type:5} {direction:10} {len(group):8} {mean('ratio'):14.3f} {mean('first_ratio'):8.3f} {slowest['ratio']:7.3f}  {slowest['problem']}, {slowest['kernel']}, "
              f"peer {slowest['peer_algorithm']}{'; ' + ', '.join(notes) if notes else ''}")
    else:
        print(f"{suite:14} {type:5} {direction:10} {len(group):8} {'-':>14}  {', '.join(notes)}")
