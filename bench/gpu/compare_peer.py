#!/usr/bin/env python3
"""Compares the peer cudnn of `bench conv` with PyTorch, problem by problem.

usage: compare_peer.py CONV.jsonl [TORCH.jsonl]     lines of `cosmati bench conv --peer cudnn,torch --json`; of conv_vs_torch.py
PyTorch's times come from the peer torch, interleaved with cuDNN on one device, or from TORCH.jsonl, measured on an idle device.
A ratio is the peer's time over PyTorch's: 1 is as fast, 1.1 is 10 % slower. Printed per suite, type and direction: the median, the
slowest layer, and how our time compares with either. Exit status 1 if a median is above 1.05 or a layer above 1.15, 2 if there is
nothing to compare.
"""
import collections, json, statistics, sys

MEDIAN_LIMIT, LAYER_LIMIT = 1.05, 1.15


def lines(path):
    try:
        with open(path) as file:
            return [json.loads(line) for line in file if line.startswith("{")]
    except FileNotFoundError:
        return []


def suite_of(line):
    return (line["suite"] or "").rsplit("/", 1)[-1].removesuffix(".txt")


def main():
    ours = lines(sys.argv[1])
    if len(sys.argv) > 2:
        torch = {(line["our_label"], line["type"]): line for line in lines(sys.argv[2])}
    else:
        torch = {(line["problem"], line["type"]): {"torch": line["peer_seconds"], "torch_format": line["peer_layout"]}
                 for line in ours if line["peer"] == "torch" and line["peer_seconds"]}
    groups, problems = collections.defaultdict(list), []
    for line in ours:
        label = line["problem"]
        if not line["peer_seconds"]:
            problems.append(f"no peer: {label} {line['type']}: {line['peer_refusal']}")
            continue
        if line["peer_verified"] is False:
            problems.append(f"the result of {line['peer']} differs: {label} {line['type']} by {line['peer_algorithm']}")
        if line["peer"] != "cudnn":
            continue
        if line["capture_failure"]:
            problems.append(f"single calls: {label} {line['type']}: {line['capture_failure']}")
        theirs = torch.get((label, line["type"]))
        if theirs:
            groups[suite_of(line), line["type"], label.split()[0]].append((line["peer_seconds"] / theirs["torch"], line, theirs))
    if not groups:
        print("nothing to compare")
        return 2
    bad = 0
    print(f"{'suite':10} {'type':5} {'direction':9} {'n':>3} {'peer/torch':>10} {'slowest':>8} {'torch/ours':>10} {'peer/ours':>9}")
    everything = []
    for (suite, kind, direction), group in sorted(groups.items()):
        quotients = sorted(entry[0] for entry in group)
        everything += group
        median = statistics.median(quotients)
        of_torch = statistics.geometric_mean([entry[2]["torch"] / entry[1]["median_seconds"] for entry in group])
        of_peer = statistics.geometric_mean([entry[1]["ratio"] for entry in group])
        state = [word for word, told in (("median", median > MEDIAN_LIMIT), ("layer", quotients[-1] > LAYER_LIMIT)) if told]
        bad += bool(state)
        print(f"{suite:10} {kind:5} {direction:9} {len(group):3} {median:10.3f} {quotients[-1]:8.3f} {of_torch:10.3f} {of_peer:9.3f}  {'SLOW: ' + ', '.join(state) if state else 'ok'}")
    print("\nslowest layers of the peer:")
    for quotient, line, theirs in sorted(everything, key=lambda entry: -entry[0])[:12]:
        print(f"  {quotient:.3f}  {line['problem']} {line['type']}: peer {line['peer_seconds'] * 1e6:.1f} us by {line['peer_algorithm']}"
              f" ({line['peer_tried']} of {line['peer_algorithms']} tried), PyTorch {theirs['torch'] * 1e6:.1f} us {theirs['torch_format']}")
    interfaces = collections.Counter(line["peer_interface"] for _, line, _ in everything)
    print(f"\n{len(everything)} problems; the peer took " + ", ".join(f"{name} {count} times" for name, count in interfaces.most_common()))
    median = statistics.median(entry[0] for entry in everything)
    print(f"overall: median {median:.3f}, slowest {max(entry[0] for entry in everything):.3f}")
    for problem in problems[:20]:
        print("  " + problem)
    return 1 if bad else 0


sys.exit(main())
