#!/usr/bin/env python3
"""Requests that must be rejected: outputs that are inputs, options without effect; and control characters. usage: check_requests.py PROGRAM"""
import json, os, re, shlex, signal, struct, subprocess, sys, zlib
import numpy as np
from program import Program

program = Program(sys.argv[1], "cpu")
os.environ["COSMATI_LIBCUDA"] = "/nowhere/libcuda.so"  # the same results on machines with a GPU
f32 = lambda *shape: np.ones(shape, np.float32)
read = lambda path: open(path, "rb").read()


def write(name, data):
    path = program.file(name)
    with open(path, "wb") as file:
        file.write(data)
    return path


def idx(array):
    return struct.pack(">HBB", 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


chunk = lambda name, data: struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(pixels, kind, extra=b""):
    """Returns 8-bit rows (height, width, channels) as a PNG of color type `kind`."""
    height, width = pixels.shape[:2]
    rows = b"".join(b"\0" + row.astype(np.uint8).tobytes() for row in pixels)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)) + extra + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def bmp(pixels):
    """Returns blue, green, red and alpha (height, width, 4) as a BMP with a version-4 header."""
    height, width = pixels.shape[:2]
    header = struct.pack("<IiiHHIIiiII4I", 108, width, height, 1, 32, 3, pixels.size, 0, 0, 0, 0, 0xff0000, 0xff00, 0xff, 0xff000000)
    body = header.ljust(108, b"\0") + pixels[::-1].astype(np.uint8).tobytes()
    return b"BM" + struct.pack("<IHHI", 14 + len(body), 0, 0, 14 + 108) + body


def says(done, *words):
    text = done.stderr
    program.check(text.startswith("cosmati: ") and text.count("\n") <= 3, f"one sentence: {text!r}")
    for word in words:
        program.check(word in text, f"{' '.join(map(str, done.args[1:]))[:200]} says {word!r}: {text!r}")


def data_folder():
    """Writes forty images of each split with classes that a network can learn."""
    folder = program.file("data")
    os.makedirs(folder, exist_ok=True)
    rng = np.random.default_rng(3)
    for split in ("train", "t10k"):
        labels = np.arange(40, dtype=np.uint8) % 10
        images = rng.integers(0, 60, (40, 28, 28)).astype(np.uint8)
        for i, label in enumerate(labels):
            images[i, 2 * label:2 * label + 8, 4:24] += 150
        write(f"data/{split}-images-idx3-ubyte", idx(images))
        write(f"data/{split}-labels-idx1-ubyte", idx(labels))
    return folder


def ways_to(path):
    """Returns other names of a file: absolute, through .., a symbolic link and a hard link."""
    name = os.path.basename(path)
    for link, make in (("soft-" + name, os.symlink), ("hard-" + name, os.link)):
        if not os.path.lexists(program.file(link)):
            make(path, program.file(link))
    place = os.path.dirname(path)
    return [path, os.path.join(place, ".", name), os.path.join(place, "..", os.path.basename(place), name), program.file("soft-" + name), program.file("hard-" + name)]


def outputs_that_are_inputs(data):
    record = {"verb": "bench", "subject": "gemm", "problem": "8x8x8 nn", "type": "f32", "median_seconds": 1e-3, "gflops": 1.0}
    a, g = program.save("in_a", f32(4, 4)), program.save("in_g", f32(4, 4))
    results = write("p.jsonl", (json.dumps(record) + "\n").encode())
    latents = write("lat.txt", b"1\n" + b"0.5 " * 100)
    suite = write("suite.txt", b"subject: gemm\nabout: one\n--size 8x8x8\n")
    calls = program.file("calls.jsonl")
    program.call("run", "gemm", "--a", a, "--b", a, "--backend", "cpu", "--out", program.file("o.npy"), COSMATI_RECORD=calls)
    card = write("card.txt", program.call("info", "--describe", "h200").stdout.encode())
    weights = program.file("w.safetensors")
    shipped = program.call("generate", "dcgan", "--save-weights", weights, "--json")
    program.check(shipped.returncode == 0, "the weights are there")
    images = os.path.join(data, "train-images-idx3-ubyte")
    draw = ["generate", "dcgan", "--backend", "cpu"]
    cases = [
        (results, ["plot", results, "--out"]), (results, ["plot", a, results, "--out"]),
        (a, ["run", "add", "--a", a, "--b", g, "--backend", "cpu", "--out"]), (a, ["run", "gemm", "--a", g, "--b", g, "--c", a, "--backend", "cpu", "--out"]),
        (g, ["run", "gemm", "--a", a, "--b", a, "--operand", "r=" + g, "--epilogue", "acc + r[m,n]", "--backend", "cpu", "--out"]),
        (g, ["run", "sgd", "--parameter", a, "--gradient", g, "--out"]),
        (latents, [*draw, "--input", latents, "--output"]), (weights, [*draw, "--weights", weights, "--count", 1, "--output"]),
        (weights, [*draw, "--weights", weights, "--save-weights"]),
        (suite, ["find", "gemm", "--shapes", suite, "--backend", "cpu", "--seconds", "0.001", "--out"]),
        (suite, ["tune", "gemm", "--shapes", suite, "--out"]), (suite, ["compile", "gemm", "--shapes", suite, "--out"]),
        (card, ["compile", "gemm", "--size", "8x8x8", "--device-description", card, "--out"]),
        (suite, ["bench", "gemm", "--shapes", suite, "--backend", "cpu", "--slices", 1, "--slice-seconds", "0.001", "--json"]),
        (calls, ["replay", calls, "--bench", "--slices", 1, "--slice-seconds", "0.001", "--json"]),
        (images, ["train", "lenet5", "--data", data, "--epochs", 1, "--threads", 1, "--save"]),
        (images, ["train", "dcgan", "--data", images, "--width", 1, "--batch", 4, "--steps", 1, "--save"]),
        (images, ["train", "dcgan", "--data", images, "--width", 1, "--batch", 4, "--steps", 1, "--save", program.file("d.safetensors"), "--generator"]),
    ]
    for path, words in cases:
        before = read(path)
        for name in ways_to(path):
            says(program.call(*words, name, expect=2), name, path, "would overwrite an input")
            program.check(read(path) == before, f"{words} {name} leaves its input alone")
    # The second output of a training, and pictures in a folder of training data.
    model = program.file("m.safetensors")
    program.call("train", "lenet5", "--data", data, "--epochs", 1, "--threads", 1, "--save", model)
    before = read(model)
    picture = program.file("m.png")
    os.symlink(model, picture)
    says(program.call("train", "lenet5", "--data", data, "--resume", model, "--picture", picture, expect=2), "--picture", "--resume", picture, "different files")
    program.check(read(model) == before, "the checkpoint is whole")
    photos = program.file("photos")
    os.makedirs(photos)
    for i in range(4):
        write(f"photos/{i}.png", png(np.full((64, 64, 3), 40 * i), 2))
    says(program.call("train", "dcgan", "--data", photos, "--width", 1, "--batch", 2, "--steps", 1, "--samples", os.path.join(photos, "s.png"), "--save", program.file("d.safetensors"), expect=2), "--samples", "data")
    # A file that is updated, and a file that is not regular, may be given twice.
    p, v = program.save("p", f32(4)), program.save("v", f32(4))
    program.call("run", "sgd", "--parameter", p, "--gradient", program.save("g4", f32(4)), "--velocity", v, "--momentum", 0.5, "--rate", 0.5, "--out", p, "--out-velocity", v)
    program.equal("sgd updates its files", np.load(p), np.float32([0.25] * 4))
    says(program.call("run", "sgd", "--parameter", p, "--gradient", p, "--velocity", v, "--momentum", 0.5, "--out", v, expect=2), "--velocity")
    program.call("run", "add", "--a", a, "--b", a, "--backend", "cpu", "--out", "/dev/null")
    program.call("generate", "dcgan", "--backend", "cpu", "--count", 1, "--output", "/dev/null")
    program.call("train", "lenet5", "--resume", model, "--data", data, "--save", model, "--threads", 1)


machine = {"--backend", "--device", "--device-description", "--kernel", "--policy", "--threads", "--max-workspace", "--max-error", "--tuning", "--cache", "--seed", "--deterministic", "--batch-invariant"}
types = {"--type", "--a-type", "--b-type", "--c-type", "--d-type", "--accumulator", "--compute"}
operations = ["gemm", "conv", "pool", "activation", "batchnorm", "layernorm", "rmsnorm", "groupnorm", "softmax", "lrn", "cross-entropy", "rbf", "dropout", "transform", "reduce", "add", "elementwise", "sgd", "adam"]
sums = {"gemm", "conv"}  # they have policies, tuning files, and sums of products


def shared_options(verb, operation):
    """Combinations that have an effect, written down independently of the table of cli/options/shared_options.cpp."""
    if verb == "replay":
        return machine
    if verb == "train":
        return {"--backend", "--device", "--threads", "--cache", "--seed", "--type", "--compute"} | ({"--device-description"} if operation == "lenet5" else set())
    if verb == "predict":
        return {"--backend", "--device", "--threads", "--cache"}
    if verb == "generate":
        return (machine - {"--batch-invariant"}) | {"--type"}
    taken = machine | types
    taken -= {"run": set(), "verify": set(), "bench": set(), "explain": {"--seed"}, "compile": {"--device"}, "find": {"--seed", "--tuning", "--batch-invariant"},
              "tune": {"--device-description", "--policy", "--tuning", "--batch-invariant"}}[verb]
    if verb == "run" and operation != "dropout":
        taken -= {"--seed"}
    if operation not in sums:
        taken -= {"--policy", "--tuning", "--accumulator", "--compute"}
    if operation not in {"gemm", "conv", "add", "rbf", "sgd", "adam"}:
        taken -= {"--b-type"}
    if operation != "gemm":
        taken -= {"--c-type"}
    if operation in {"sgd", "adam"}:
        taken -= {"--d-type"}
    return taken


def every_verb_and_operation():
    commands = [(verb, operation) for verb in ("run", "verify", "bench", "explain", "compile", "find") for operation in operations]
    commands += [("tune", "gemm"), ("replay", None), ("train", "lenet5"), ("train", "dcgan"), ("predict", "lenet5"), ("generate", "dcgan")]
    listed = re.findall(r"^  ([a-z-]+)[ ,]", program.call("run", "--help").stdout.split("SUBCOMMANDS:" if "SUBCOMMANDS:" in program.call("run", "--help").stdout else "Subcommands:")[1], re.M)
    program.check(set(listed) == set(operations), f"operations of run: {listed}")
    for verb, operation in commands:
        path = [verb] + ([operation] if operation else [])
        text = program.call(*path, "--help").stdout
        shown = [option for line in re.findall(r"^ +((?:-{1,2}[\w-]+,?)+)", text, re.M) for option in line.split(",")]
        program.check(len(shown) == len(set(shown)), f"{path}: each option once: {shown}")
        wanted = shared_options(verb, operation)
        program.check(set(shown) & (machine | types) == wanted, f"{path}: too many {sorted(set(shown) & (machine | types) - wanted)}, missing {sorted(wanted - set(shown))}")
        # A command's own options come first.
        first_shared = min(shown.index(option) for option in wanted | {"--json"})
        program.check(not set(shown[first_shared:]) - machine - types - {"--json"}, f"{path}: own options stand before shared ones: {shown}")
        for option in (machine | types) - wanted:
            says(program.call(*path, option, "1", expect=2), f"unknown option {option}; ", f"see cosmati {' '.join(path)} --help")
    for verb, json_file in (("bench", True), ("verify", False)):
        program.check(("--json [FILE]" in program.call(verb, "gemm", "--help").stdout) == json_file, verb + " --json")
    for verb in ("info", "list", "plot"):
        text = program.call(verb, "--help").stdout
        program.check(not any(re.search(f"^ +{option}\\b", text, re.M) for option in machine | types), verb)


def options_that_mean_nothing(data):
    train = ["train", "lenet5", "--data", data]
    says(program.call("predict", "lenet5", "--kernel", "zzz", "--accumulator", "nonsense", expect=2), "predict lenet5: unknown option --kernel", "run, verify")
    says(program.call(*train, "--kernel", "zzz", "--a-type", "f16", "--policy", "x", expect=2), "train lenet5: unknown option --kernel")
    says(program.call(*train, "--optimizer", "adam", "--momentum", "0.5", expect=2), "--momentum 0.5", "sgd", "--optimizer adam")
    says(program.call(*train, "--variant", "chapter", "--momentum", "0.5", expect=2), "--momentum 0.5", "--variant chapter")
    says(program.call("train", "lenet5", "--explain", "--save", "x", expect=2), "--explain")
    says(program.call("generate", "dcgan", "--input", program.file("lat.txt"), "--seed", 5, "--output", program.file("n.txt"), expect=2), "--seed 5")
    a = program.save("in_a", f32(4, 4))
    says(program.call("run", "gemm", "--a", a, "--b", a, "--c-type", "f16", "--out", program.file("n.npy"), expect=2), "--c-type f16", "beta=1")
    says(program.call("bench", "gemm", "--size", "8x8x8", "--c-type", "f16", expect=2), "--c-type f16", "beta=1")
    program.call("verify", "gemm", "--count", 4, "--c-type", "f64")
    folder = program.file("kernels")
    program.call(*train, "--epochs", 1, "--threads", 1, "--cache", folder, "--momentum", "0.5", "--save", program.file("n.safetensors"))


def transparent_pictures(data):
    """Ink on a transparent page equals ink on a white page, in every file format."""
    model = trained(data)
    rng = np.random.default_rng(1)
    ink = np.zeros((40, 36), np.uint8)  # opacity
    ink[6:34, 14:20] = 255
    ink[10:14, 8:28] = rng.integers(1, 255, (4, 20))
    gray_png = lambda page: png((page.astype(int))[..., None], 0)
    over = lambda color, page: (color * ink.astype(int) + page * (255 - ink.astype(int)) + 127) // 255
    two, four = np.zeros((40, 36, 2), np.uint8), np.zeros((40, 36, 4), np.uint8)
    two[..., 1] = four[..., 3] = ink
    kinds = {"gray with alpha": png(two, 4), "color with alpha": png(four, 6),
             "BMP with alpha": bmp(four),
             "palette with tRNS": png(ink[..., None], 3, chunk(b"PLTE", bytes(768)) + chunk(b"tRNS", bytes(range(256))))}
    answer = lambda *words: json.loads(program.call("predict", "lenet5", "--model", model, "--backend", "reference", "--json", *words).stdout)
    same = lambda x, y: (x["class"], x["probability"]) == (y["class"], y["probability"])
    page = lambda name, pixels: answer("--image", write(name, gray_png(pixels)))
    white, black, gray = page("white.png", over(0, 255)), page("black.png", over(0, 0)), page("gray.png", over(0, 100))
    program.check(not same(white, black), f"the two pages differ: {white} {black}")
    for name, file in kinds.items():
        path = write("clear.bmp" if name.startswith("BMP") else "clear.png", file)
        for words, wanted in (((), white), (("--background", "white"), white), (("--background", "255"), white), (("--background", "black"), black), (("--background", "100"), gray)):
            got = answer("--image", path, *words)
            program.check(same(got, wanted), f"{name} {words}: {got}, not {wanted}")
    for bad in ("256", "-1", "red", "1e2", "99999999999999999999"):
        says(program.call("predict", "lenet5", "--model", model, "--image", path, "--background", bad, expect=2), bad, "white, black, 0 to 255")
    says(program.call("predict", "lenet5", "--model", model, "--data", data, "--background", "white", expect=2), "--background", "--image")


def trained(data):
    model = program.file("trained.safetensors")
    if not os.path.exists(model):
        program.call("train", "lenet5", "--data", data, "--epochs", 2, "--threads", 1, "--save", model)
    return model


def with_metadata(model, name, **entries):
    """Writes a copy of a safetensors file with other metadata."""
    file = read(model)
    length = struct.unpack("<Q", file[:8])[0]
    header = json.loads(file[8:8 + length])
    header["__metadata__"].update(entries)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return write(name, struct.pack("<Q", len(text)) + text + file[8 + length:])


raw_controls = lambda text: [c for c in text if (ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160 or ord(c) in range(0x202A, 0x202F)]


def control_characters(data):
    names = ["\x1b[31mred", "line\nend", "\x9b2J", "\u202eesrever", "\x7f", "tab\there", "plain", "\u00fcml\u00e4ut", "\r", "\x00"]
    model = with_metadata(trained(data), "named.safetensors", classes=",".join(names))
    image = write("one.png", png(np.zeros((28, 28, 1)), 0))
    for words in (["--data", data], ["--image", image], ["--data", data, "--json"], ["--image", image, "--json"]):
        done = program.call("predict", "lenet5", "--model", model, *words)
        program.check(not raw_controls(done.stdout + done.stderr), f"predict {words}: {done.stdout[:300]!r}")
    table = program.call("predict", "lenet5", "--model", model, "--data", data).stdout
    program.check("\\u001b[31mred" in table and "line\\u000aend" in table and "\\u009b2J" in table and "\u00fcml\u00e4ut" in table, f"names are shown: {table!r}")
    program.check(len(table.splitlines()) == 13, f"a name is one line: {table!r}")
    line = json.loads(program.call("predict", "lenet5", "--model", model, "--image", image, "--json").stdout)
    program.check(line["name"] in names, f"JSON keeps the name: {line}")
    hostile = program.file("x\x1b]0;title\x07.npy")
    done = program.call("run", "gemm", "--a", hostile, "--b", hostile, "--out", program.file("o.npy"), expect=2)
    program.check(not raw_controls(done.stderr) and "\\u001b]0;title\\u0007" in done.stderr, f"a path: {done.stderr!r}")
    card = program.call("info", "--describe", "h200").stdout.replace("NVIDIA H200", "card\x1b[2J")
    done = program.call("explain", "gemm", "--size", "8x8x8", "--device-description", write("hostile.txt", card.encode()))
    program.check(not raw_controls(done.stdout) and "card\\u001b[2J" in done.stdout, f"a description: {done.stdout[:200]!r}")
    suite = write("hostile-suite.txt", b"subject: gemm\nabout: one\n--size 8x8x8 --layout n\x1b[2Jn\n")
    done = program.call("explain", "gemm", "--shapes", suite, expect=2)
    program.check(not raw_controls(done.stderr), f"a suite: {done.stderr!r}")
    for bad in ("0", "0x0p+0", "-1", "-0x1p-3", "nan", "inf", ""):
        model = with_metadata(trained(data), "bad.safetensors", pixel_deviation=bad)
        says(program.call("predict", "lenet5", "--model", model, "--image", image, expect=2), "bad.safetensors", "pixel_deviation", "expected a positive number" if bad in ("0", "0x0p+0", "-1", "-0x1p-3") else "expected a number")


def how_to_continue(data):
    folder = program.file("it's $HOME; data")
    os.symlink(data, folder)
    for network, more in (("lenet5", ["--epochs", "1000000", "--picture", program.file("a b.png")]),
                          ("dcgan", ["--steps", "1000000", "--width", "1", "--batch", "4", "--report", "1", "--samples", program.file("s p.png")])):
        save = program.file(f"to {network}.safetensors")
        words = [program.path, "train", network, "--data", folder, "--save", save, "--threads", "1", "--backend", "cpu", *more]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        process.stdout.readline()
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        error = process.communicate(timeout=200)[1]
        found = shlex.split(error.split("to continue: ", 1)[-1])
        kept = {"lenet5": ["--picture", program.file("a b.png")], "dcgan": ["--samples", program.file("s p.png"), "--report", "1"]}[network]
        wanted = ["cosmati", "train", network, "--data", folder, "--resume", save, *kept, "--backend", "cpu", "--threads", "1"]
        program.check(process.returncode == 130 and found == wanted, f"{found}, not {wanted}")


def wrong_requests(data):
    """Requests that must not pass silently or be misunderstood."""
    says(program.call("verify", "gemm", "--size", "8x8x8", "--count", 5, expect=2), "--count 5", "random problems")
    says(program.call("verify", "gemm", "--suite", "squares", "--count", 5, expect=2), "--count 5")
    says(program.call("verify", "conv", "--images", 3, expect=2), "--images 3", "--size")
    for bad in ("f32,,f64", ",", "f32,"):
        for verb in ("verify", "bench", "find"):
            says(program.call(verb, "gemm", "--size", "8x8x8", "--type", bad, expect=2), "--type " + bad, "empty name")
    for bad in ("nan", "-1"):
        says(program.call("verify", "gemm", "--size", "8x8x8", "--most-operations", bad, expect=2), "--most-operations", "out of range")
        says(program.call("bench", "gemm", "--size", "8x8x8", "--verify-below", bad, expect=2), "--verify-below", "out of range")
        says(program.call("bench", "gemm", "--size", "8x8x8", "--peer", "onednn", "--fail-below", bad, expect=2), "--fail-below " + bad, "out of range")
    for verb in (["verify", "gemm", "--size", "8x8x8"], ["bench", "gemm", "--size", "8x8x8"], ["explain", "gemm", "--size", "8x8x8"],
                 ["train", "lenet5", "--data", data], ["generate", "dcgan", "--count", 1, "--output", program.file("n.txt")]):
        says(program.call(*verb, "--device", 2, expect=2), "--device 2", "has none")
        says(program.call(*verb, "--device", 2, "--backend", "cpu", expect=2), "--device 2", "--backend cpu")
    says(program.call("explain", "gemm", "--size", "8x8x8", "--device", 1, "--device-description", "h200", expect=2), "--device 1", "h200")
    weights = program.file("only.safetensors")
    for words in (["--timeline", program.file("t.svg")], ["--count", 3], ["--walk", 3], ["--input", program.file("lat.txt")]):
        says(program.call("generate", "dcgan", "--save-weights", weights, *words, expect=2), words[0], "--output FILE")
    for words in (["--output", "x.txt"], ["--timeline", "t.svg"], ["--measure", "host"]):
        says(program.call("generate", "dcgan", "--explain", *words, expect=2), "--explain")
    program.check(not os.path.exists(weights), "a refused request writes nothing")


data = data_folder()
for part in (outputs_that_are_inputs, lambda data: every_verb_and_operation(), options_that_mean_nothing, transparent_pictures, control_characters, how_to_continue, wrong_requests):
    part(data)
program.finish()
