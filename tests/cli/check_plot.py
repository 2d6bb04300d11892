#!/usr/bin/env python3
"""cosmati plot: structure, escaping, odd and damaged input; with --browser in a headless Chromium, at two widths and in
both color schemes. usage: check_plot.py PROGRAM [--browser [PICTURES]]     exit status 77: no Chromium is here"""
import html.parser, json, math, os, re, sys
import browser
from program import Program

program = Program(sys.argv[1], "cpu")
RESULTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "results")
VOID = {"meta", "link", "input"}
NASTY = """8x8x8 nn <script>alert("1")</script> & 'a' {{rows}} \u0001 \u00e9"""


def record(**changes):
    """Returns records as bench writes them for a GPU."""
    line = {"verb": "bench", "suite": "squares", "subject": "gemm", "problem": "256x256x256 tn", "type": "bf16", "accumulator": "f32",
            "backend": "cuda", "kernel": "multistage", "policy": "large 128x128x32, warp 64x64", "machine": "Processor", "gpu": "NVIDIA H200",
            "commit": "0123456789ab", "time": 1795178231, "verified": True, "settled": True, "steady": True, "throttled": False,
            "clock_share": 0.99, "median_seconds": 1e-5, "operations": 33554432.0, "bytes": 393216, "gflops": 3355.4, "peak": "bf16 mma",
            "peak_gflops": 700000.0, "share_of_peak": 0.0048, "copy_bytes_per_second": 4.2e12, "share_of_copy": 0.009, "workspace_bytes": 0,
            "peer": "cublaslt", "peer_version": "cuBLASLt 13.1.0", "peer_seconds": 9e-6, "ratio": 0.9, "ratio_low": 0.88, "ratio_high": 0.92,
            "peer_refusal": None, "peer_verified": True}
    line.update(changes)
    return {key: value for key, value in line.items() if value != "absent"}


class Page(html.parser.HTMLParser):
    """Collects elements in order with their attributes and text; reports tags that do not match."""

    def __init__(self, text):
        super().__init__()
        self.text, self.elements, self.stack, self.complaints = text, [], [], []
        self.feed(text)
        self.close()
        if self.stack:
            self.complaints.append(f"open at the end: {[e['tag'] for e in self.stack]}")

    def handle_starttag(self, tag, attributes):
        element = {"tag": tag, "text": "", "inside": [e["tag"] for e in self.stack], **dict(attributes)}
        self.elements.append(element)
        if tag not in VOID:
            self.stack.append(element)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.stack.pop()

    def handle_endtag(self, tag):
        if not self.stack or self.stack[-1]["tag"] != tag:
            self.complaints.append(f"</{tag}> at {self.getpos()}")
        else:
            self.stack.pop()

    def handle_data(self, data):
        for element in self.stack:
            element["text"] += data

    def all(self, tag, **attributes):
        return [e for e in self.elements if e["tag"] == tag and all(e.get(k) == v for k, v in attributes.items())]

    def rows(self):
        table = self.text.index('id="runs"')
        return len(re.findall(r"<tr", self.text[table:])) - 1


def write(name, *lines):
    path = program.file(name)
    with open(path, "w", encoding="utf-8") as file:
        for line in lines:
            file.write((line if isinstance(line, str) else json.dumps(line)) + "\n")
    return path


def plot(*files, expect=0, out="report.html"):
    """Returns the process and, if it succeeded or found wrong results, the page."""
    path = program.file(out)
    if os.path.exists(path):
        os.remove(path)
    done = program.call("plot", *files, "--out", path, expect=expect)
    if done.returncode not in (0, 1):
        program.check(not os.path.exists(path), "after a failure there is no report")
        return done, None
    with open(path, encoding="utf-8") as file:
        return done, Page(file.read())


def check_whole(page, what):
    """Checks that apply to every report."""
    program.check(not page.complaints, f"{what}: {page.complaints[:3]}")
    ids = [e["id"] for e in page.elements if "id" in e]
    program.check(len(ids) == len(set(ids)), f"{what}: an id is used twice")
    targets = [e.get("href") or e.get("src") for e in page.elements if "href" in e or "src" in e]
    program.check(all(t == "data:," or t[0] == "#" and t[1:] in ids for t in targets), f"{what}: links to {targets}")
    program.check(not re.search(r"https?:|@import|url\(", page.text), f"{what}: needs the network")
    program.check(page.all("html", lang="en") and page.all("meta", name="viewport"), f"{what}: language and viewport")
    program.check(len(page.all("script")) == 1, f"{what}: {len(page.all('script'))} scripts")
    for svg in page.all("svg"):
        names = svg.get("aria-labelledby", "").split()
        program.check(svg.get("role") == "img" and len(names) == 2 and set(names) <= set(ids), f"{what}: a picture without a title")
    width = 0
    for element in page.elements:
        if element["tag"] == "svg":
            width, height = map(float, element["viewbox"].split()[2:])
        for key in ("x", "y", "x1", "y1", "x2", "y2", "width", "height"):
            if "svg" in element["inside"] and key in element:
                value = float(element[key])
                program.check(math.isfinite(value) and 0 <= value <= max(width, height), f"{what}: {element['tag']} has {key} = {element[key]}")


def groups():
    lines = [record(problem=f"{n}x{n}x{n} tn", ratio=ratio, ratio_low=ratio * 0.98, ratio_high=ratio * 1.02)
             for n, ratio in ((256, 0.5), (512, 1.0), (1024, 2.0))]
    lines += [record(type="f16", accumulator="f16"), record(suite="deep"), record(peer="other"), record(gpu=None),
              record(subject="conv", problem="4x3x224x224x64x7x7")]
    done, page = plot(write("groups.jsonl", *lines))
    check_whole(page, "groups")
    ratios = [e for e in page.all("figure") if e["id"].startswith("ratio-")]
    program.check(len(ratios) == 6 and len(page.all("figure")) == 8, f"charts for each suite, subject, type, device and peer; rooflines for each device: {len(ratios)}")
    program.check([e["text"] for e in page.all("h3")] == ["squares", "deep"], "a heading for each suite")
    program.check("Geometric mean 1.000, min 0.500, max 2.000" in ratios[0]["text"], ratios[0]["text"])
    _, long = plot(write("long.jsonl", *(record(problem=str(n)) for n in range(49))))
    check_whole(long, "long")
    program.check(len(long.all("svg")) == 4 and len(long.all("figure", **{"class": "long"})) == 1, "a long chart in parts")
    program.check(len(page.all("rect")) == len(lines) and page.rows() == len(lines), "a bar and a row for each measurement")
    program.check([len(page.all("rect", **{"class": c})) for c in ("faster", "slower")] == [2, 6], "bars say which side of 1 they are")
    program.check("f16, sums in f16" in page.text and "bf16, sums" not in page.text, "sums are told where they are unusual")
    _, page = plot(write("burst.jsonl", record(peak="bf16 wgmma", peak_burst_gflops=850000.0), record(problem="1x1x1 nn", peak="bf16 mma")))
    program.check("bf16 mma 700 Top/s, bf16 wgmma 700 Top/s (burst: 850 T), copies" in page.all("figcaption")[-1]["text"], page.all("figcaption")[-1]["text"])
    high, fine = record(problem="9x9x9 nn", gflops=800000.0), record(problem="8x8x8 nn", gflops=720000.0, peak_burst_gflops=690000.0)
    path = write("high.jsonl", high, fine, record(subject="conv", problem="1x1", gflops=800000.0))
    told, page = plot(path, expect=1)
    program.check("1, the first gemm 9x9x9 nn on" in told.stderr and "measure again" in told.stderr, told.stderr)
    program.check(page.text.count("ABOVE ITS CEILING") == 3, "a figure above its ceiling is an error: its bar, point and row say so")
    program.check("8 measurements" in done.stdout and not done.stderr, done.stdout + done.stderr)


def escaping():
    keys = ("suite", "subject", "problem", "type", "accumulator", "kernel", "policy", "gpu", "commit", "peer", "peer_version", "peak")
    _, page = plot(write("a<b>&c.jsonl", record(**{key: NASTY for key in keys}), record(**{key: NASTY for key in keys}, ratio=None, peer_refusal=NASTY)))
    check_whole(page, "escaping")
    shown = NASTY.replace("\u0001", "\ufffd")
    program.check(page.all("h3")[0]["text"] == shown, page.all("h3")[0]["text"])
    program.check(any(e["text"].startswith(shown) for e in page.all("title")), "the title of a bar")
    program.check(page.all("small", title=shown), "a policy in an attribute")
    program.check("a<b>&c.jsonl" in page.all("header")[0]["text"], page.all("header")[0]["text"])
    program.check("\u0001" not in page.text, "control characters are replaced")
    program.check("alert" not in page.all("script")[0]["text"], "nothing of the records is in the script")


def odd_records():
    lines = [record(), record(ratio=0.95, time=1795178232), record(ratio=0.7, time=1), "", {"verb": "verify", "subject": "gemm"}, {"event": "epoch"}, 5, [], None,
             record(median_seconds=0), record(gflops="fast"), record(type=None), record(problem="absent")]
    done, page = plot(write("odd.jsonl", *lines))
    check_whole(page, "odd")
    counted = ("1 line of other" in page.text, "2 lines of verbs other than bench", "3 lines that are not records", "2 lines without a time or a rate",
               "2 lines without subject, problem or type", "2 earlier measurements omitted")
    for words in counted[1:]:
        program.check(words in page.text, f"the report says: {words}")
    program.check(all(words in done.stderr for words in counted[1:5]) and "warning" in done.stderr, done.stderr)
    program.check(page.rows() == 1 and "0.950" in page.text and "0.700 [" not in page.text, "of equals the last in time")
    # Fields of another JSON type, or absent ones, count as missing; nothing else changes.
    few = {key: record()[key] for key in ("verb", "subject", "problem", "type", "median_seconds", "gflops")}
    _, page = plot(write("few.jsonl", few))
    check_whole(page, "few")
    program.check(len(page.all("figure")) == 0 and page.rows() == 1, "a record without peer and bytes is in the table alone")
    program.check(sum("hidden" in e for e in page.all("section")) == 2, "sections without charts are hidden")
    program.check("few" in page.text, "without a suite's name, its file's")
    _, page = plot(write("kinds.jsonl", {**{key: [] for key in record()}, **few}, record(ratio=-1, ratio_low="x", time=1e300, bytes=0, clock_share={}, throttled=True)))
    check_whole(page, "kinds")
    # Only the peer's time, as `make figures` writes it.
    _, page = plot(write("figures.jsonl", record(ratio="absent", ratio_low="absent", ratio_high="absent", peer_seconds=2e-5)))
    program.check("2.000" in page.text and len(page.all("rect")) == 1, "a ratio from the times")
    _, page = plot(write("wrong.jsonl", record(verified=False, ratio=7), record(problem="1x1x1 nn", ratio=0.5)))
    program.check("Geometric mean 0.500, min 0.500" in page.all("figure")[0]["text"] and "FAILED" in page.text and page.all("rect", **{"class": "wrong"}), "a wrong result is in no mean")
    _, page = plot(write("states.jsonl", record(settled=False, steady=False, throttled=True, clock_share=0.871, verified=None, peer_verified=False)))
    program.check("not verified, unsettled, slowing, throttled to 87%, the peer&#39;s result differs" in page.text, "states")


def extremes():
    lines = [record(problem=str(i), ratio=ratio, ratio_low=ratio, ratio_high=ratio, gflops=rate, median_seconds=1 / rate, operations=operations, bytes=1 + i)
             for i, (ratio, rate, operations) in enumerate(((1e-9, 1e-9, 1.0), (1e9, 1e12, 1e30), (1, 1, 1e-9), (1e59, 1e59, 1e59)))] + [record(ratio=1e300, gflops=1e300)]
    for some, expect in ((lines, 1), (lines[:1], 0), (lines[1:2], 1), (lines[3:4], 1)):  # 1e12 GFLOP/s is above any peak
        _, page = plot(write("extremes.jsonl", *some), expect=expect)
        check_whole(page, "extremes")
        program.check(len(page.text) < 100000, "no axis has endless marks")


def refusals():
    def says(done, *words):
        program.check(done.stderr.startswith("cosmati: ") and done.stderr.count("\n") == 1 and all(word in done.stderr for word in words), f"{words}: {done.stderr!r}")

    good = write("good.jsonl", record())
    says(plot(write("cut.jsonl", record(), "", json.dumps(record())[:100]), expect=2)[0], "cut.jsonl, line 3", "not valid JSON")
    says(plot(good, program.file("none.jsonl"), expect=2)[0], "none.jsonl")
    with open(program.file("bytes.jsonl"), "wb") as file:
        file.write(b'{"verb": "\xff"}\n')
    says(plot(program.file("bytes.jsonl"), expect=2)[0], "bytes.jsonl, line 1")
    says(plot(write("empty.jsonl"), expect=2)[0], "empty.jsonl", "contains no measurements", "bench")
    says(plot(write("others.jsonl", {"verb": "verify"}, {"verb": "info"}), expect=2)[0], "others.jsonl", "2 lines of verbs other than bench")
    says(program.call("plot", "--out", program.file("x.html"), expect=2), "results.jsonl")
    says(program.call("plot", good, expect=2), "--out")
    says(program.call("plot", good, "--out", good, expect=2), "--out", "good.jsonl")
    says(program.call("plot", good, "--ot", "x", expect=2), "did you mean --out?")
    says(program.call("plot", good, "--out", "/nowhere/x.html", expect=2), "/nowhere/x.html")
    program.check(os.path.getsize(good) > 100, "results are as they were")
    program.check("Example: cosmati plot" in program.call("plot", "--help").stdout, "help")
    line = json.loads(program.call("plot", good, write("two.jsonl", record(type="f16"), 1), "--out", program.file("x.html"), "--json").stdout)
    program.check(line["verb"] == "plot" and line["measurements"] == 2 and line["skipped"] == 1 and line["bytes"] == os.path.getsize(program.file("x.html")), str(line))


def from_bench():
    shapes, results = program.file("few-shapes.txt"), program.file("bench.jsonl")
    with open(shapes, "w") as file:
        file.write("subject: gemm\nabout: two\n--size 8,16x8x8\n")
    program.call("bench", "gemm", "--shapes", shapes, "--slices", "1", "--slice-seconds", "0.01", "--json", results)
    program.call("bench", "gemm", "--size", "32x32x32", "--slices", "1", "--slice-seconds", "0.01", "--json", results)
    with open(results) as file:
        program.check([json.loads(line)["suite"] for line in file] == ["few-shapes", "few-shapes", None], "bench tells the suite")
    _, page = plot(results)
    check_whole(page, "bench")
    program.check(page.rows() == 3 and len(page.all("path")) >= 3, "measurements of this program")
    kept = [os.path.join(folder, name) for folder, _, names in os.walk(RESULTS) for name in names if name.endswith(".jsonl")]
    _, page = plot(*kept)
    check_whole(page, "kept results")
    return program.file("report.html")


# Text whose contrast with its background is less than 4.5 (WCAG 2.1, 1.4.3).
CONTRAST = """(() => {
  const parse = text => { const n = text.match(/[\\d.]+/g).map(Number); return n.length < 4 ? [...n, 1] : n; };
  const light = c => [0.2126, 0.7152, 0.0722].reduce((sum, w, i) => sum + w * ((v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)(c[i] / 255)), 0);
  const behind = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c[3] > 0) return c; } return [255, 255, 255, 1]; };
  const poor = [];
  for (const e of document.body.querySelectorAll("*")) {
    if (!e.checkVisibility() || ["SCRIPT", "title", "desc", "g", "svg"].includes(e.tagName)) continue;
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())) continue;
    if (e.classList.contains("beyond")) continue;
    const style = getComputedStyle(e), a = light(parse(e.ownerSVGElement ? style.fill : style.color)), b = light(behind(e.closest("figure") ?? e));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (!(ratio >= 4.5)) poor.push(`${e.tagName} ${e.textContent.slice(0, 30)} ${ratio.toFixed(2)}`);
  }
  return poor.slice(0, 5);
})()"""
OUTSIDE = """[...document.querySelectorAll("svg text")].filter(t => { const box = t.getBoundingClientRect(), all = t.ownerSVGElement.getBoundingClientRect();
  return box.width > 0 && (box.left < all.left - 1 || box.right > all.right + 1); }).map(t => t.textContent).slice(0, 5)"""
SHOWN = "[...document.querySelectorAll('#runs tbody tr')].filter(row => row.checkVisibility()).map(row => row.cells[0].textContent)"


def many_records():
    """A suite of 110 problems, like `llm`, and some more types."""
    lines = []
    for i, tokens in enumerate((1, 2, 4, 8, 16, 32, 64, 128, 512, 4096)):
        for n, k in ((12288, 4096), (4096, 4096), (22016, 4096), (4096, 11008), (6144, 4096), (28672, 4096), (4096, 14336), (10240, 8192), (8192, 8192), (57344, 8192), (8192, 28672)):
            operations, size = 2.0 * tokens * n * k, 2 * (tokens * k + n * k + tokens * n)
            seconds = max(operations / 5.5e14, size / 3.6e12) + 3e-6
            ratio = 0.55 + 0.11 * i * (1 + k % 7) / 4
            lines.append(record(suite="llm", problem=f"{tokens}x{n}x{k} tn", operations=operations, bytes=size, median_seconds=seconds, gflops=operations / seconds * 1e-9,
                                share_of_peak=operations / seconds / 7e14, ratio=ratio, ratio_low=ratio * 0.97, ratio_high=ratio * 1.02))
    for type, peak in (("f64", "f64 fma"), ("f32", "f32 fma"), ("f16", "f16 mma"), ("s8", "s8 mma"), ("e4m3", "e4m3 mma"), ("tf32", "tf32 mma")):
        lines.append(record(type=type, accumulator="s32" if type == "s8" else "f32", peak=peak, peak_gflops=60000.0 * (1 + len(lines) % 9), problem=f"{type}: " + NASTY, ratio=9.0 if type == "s8" else 0.9))
    return lines


def in_browser(path, pictures):
    pages = {"kept": from_bench(), "many": plot(write("many.jsonl", *many_records()), out="many.html")[1] and program.file("many.html")}
    view = browser.Browser(path)
    try:
        for name, page in pages.items():
            colors = set()
            for width in (390, 1120, 1280):
                for scheme in ("light", "dark"):
                    what = f"{name} at {width}, {scheme}"
                    found = view.open(page, width, scheme=scheme)
                    program.check(not found, f"{what}: {found}")
                    wide = view.value("document.documentElement.scrollWidth")
                    program.check(wide <= width, f"{what}: the page is {wide} wide")
                    poor = view.value(CONTRAST)
                    program.check(not poor, f"{what}: poor contrast: {poor}")
                    outside = view.value(OUTSIDE)
                    program.check(not outside, f"{what}: text outside its picture: {outside}")
                    colors.add(view.value("getComputedStyle(document.body).backgroundColor"))
                    if pictures:
                        view.picture(os.path.join(pictures, f"{name}-{width}-{scheme}.png"))
            program.check(len(colors) == 2, f"{name}: two color schemes: {colors}")
        view.open(pages["many"], 1280)
        program.check(len(view.value(SHOWN)) == 116 and view.value("document.getElementById('shown').textContent") == "116 of 116", "all rows")
        view.value("box = document.getElementById('filter'), box.value = ' 512X12288 BF16 ', box.dispatchEvent(new Event('input'))")
        program.check(view.value(SHOWN) == ["gemm 512x12288x4096 tn"] and view.value("document.getElementById('shown').textContent") == "1 of 116", f"filtered: {view.value(SHOWN)[:5]}")
        view.value("box.value = '', box.dispatchEvent(new Event('input'))")
        for sign in (1, -1):
            view.value("[...document.querySelectorAll('#runs thead button')].find(b => b.textContent === 'ratio').click()")
            ratios = view.value("[...document.querySelectorAll('#runs tbody tr')].map(row => Number(row.cells[9].dataset.value))")
            program.check(ratios == sorted(ratios, reverse=sign < 0) and len(ratios) == 116, "sorted by ratio")
        view.open(pages["many"], 794, media="print", scheme="dark")
        program.check(view.value("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)", "paper is white")
        program.check(not view.value("document.getElementById('controls').checkVisibility()"), "no filter on paper")
        view.pdf(program.file("many.pdf"))
        with open(program.file("many.pdf"), "rb") as file:
            program.check(file.read(5) == b"%PDF-", "printed")
        if pictures:
            os.replace(program.file("many.pdf"), os.path.join(pictures, "many.pdf"))
    finally:
        view.close()


if "--browser" in sys.argv:
    chromium = browser.find()
    if chromium is None:
        print("skipped: no Chromium is here (apt-get install chromium); $CHROMIUM names one")
        sys.exit(77)
    in_browser(chromium, sys.argv[3] if len(sys.argv) > 3 else None)
else:
    for part in (groups, escaping, odd_records, extremes, refusals, from_bench):
        part()
program.finish()
