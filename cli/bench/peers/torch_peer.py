"""PyTorch as a peer of `cosmati bench`, which starts this script and talks to it in lines of JSON.

The first line on stdout is {"version", "cuda"}. Each line on stdin is then a request, answered by one line: {"refusal": WHY}
if PyTorch does not support the request, else one of the answers below.
  {"subject", "problem", "slots", ...}  a problem in the format of COSMATI_RECORD, its data in shared memory.
                                        Chooses the fastest mode: {"way", "layout", "ways", "failures"}
  {"time": SECONDS}                     measures for that long: {"median", "least", "samples"}
  {"forget_graphs": true}               single calls from now on
  {"result": true}                      computes the first set's outputs into the shared memory
"""
import json, math, mmap, os, re, statistics, sys, time

answers = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)  # keeps text that a library prints out of the answers
memory_file = 3  # as the program starts this script

try:
    import torch
    import torch.nn.functional as F
except Exception as error:  # covers a missing library as well as a missing package
    print(json.dumps({"refusal": (str(error).splitlines() or [type(error).__name__])[0]}), file=answers)
    sys.exit()

aten = torch.ops.aten
TYPES = {"f64": torch.float64, "f32": torch.float32, "tf32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
         "s8": torch.int8, "u8": torch.uint8, "s32": torch.int32}


class Refusal(Exception):
    pass


def at_slot(memory, slot):
    """The slot's elements in the shared memory, as a tensor of its extents and strides."""
    if slot["type"] not in TYPES:
        raise Refusal(f"PyTorch does not support arithmetic in {slot['type']}")
    kind = TYPES[slot["type"]]
    span = 1 + sum((n - 1) * s for n, s in zip(slot["extents"], slot["strides"]))
    return torch.frombuffer(memory, dtype=kind, count=span, offset=slot["offset"]).as_strided(slot["extents"], slot["strides"])


def alike(problem, *names):
    for begin, end in names:
        if problem[begin] != problem[end]:
            raise Refusal(f"PyTorch pads both sides equally, not by {problem[begin]} and {problem[end]}")


def in_format(channels_last):
    def order(tensor):
        if not channels_last:
            return torch.contiguous_format
        return torch.channels_last if tensor.dim() == 4 else torch.channels_last_3d
    return lambda tensors: {k: t.contiguous(memory_format=order(t)) if t.dim() in (4, 5) else t for k, t in tensors.items()}


INDICES = {1: ["i"], 2: ["m", "n"], 3: ["batch", "m", "n"], 4: ["n", "c", "h", "w"], 5: ["n", "c", "d", "h", "w"]}  # by rank
OUTPUT_INDICES = {4: ["n", "k", "p", "q"], 5: ["n", "k", "o", "p", "q"]}  # of a convolution
FUNCTIONS = {"abs": torch.abs, "clamp": torch.clamp, "elu": F.elu, "erf": torch.erf, "exp": torch.exp, "gelu": F.gelu,
             "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "leaky_relu": F.leaky_relu, "log": torch.log, "max": torch.maximum,
             "min": torch.minimum, "normal_cdf": torch.special.ndtr, "pow": torch.pow, "relu": F.relu, "round": torch.round, "rsqrt": torch.rsqrt,
             "select": lambda condition, a, b: torch.where(condition != 0, a, b), "sigmoid": torch.sigmoid, "silu": F.silu, "sqrt": torch.sqrt,
             "tanh": torch.tanh}


def expression(epilogue, letters):
    """The epilogue as a Python function of acc and of views of its operands that broadcast against acc, whose indices are
    `letters`; and a function that makes these views of a set of inputs."""
    if epilogue["stores"]:
        raise Refusal("PyTorch is timed only for expressions with one output")
    views = {}

    def view(found):
        name, indices = found[1], tuple(word.strip() for word in found[2].split(","))
        return views.setdefault((name, indices), f"view{len(views)}")
    text = re.sub(r"([A-Za-z_]\w*)\s*\[([^\]]*)\]", view, epilogue["expression"])
    strange = set(re.findall(r"(?<![\w.])[A-Za-z_]\w*", text)) - set(FUNCTIONS) - set(views.values()) - {"acc"}
    if strange:
        raise Refusal(f"PyTorch is timed only for expressions without {', '.join(sorted(strange))}")
    function = eval(f"lambda acc, {', '.join(views.values())}: {text}", dict(FUNCTIONS))  # the program has already parsed the text

    def broadcast(tensor, indices):
        order = sorted(range(len(indices)), key=lambda i: letters.index(indices[i]))
        return tensor.permute(order)[tuple(slice(None) if letter in indices else None for letter in letters)]
    return function, lambda s: {key: broadcast(s["operand " + name], indices) for (name, indices), key in views.items()}


# Each of these functions returns a function that prepares a set of inputs before timing, and the function that is timed, which
# returns the outputs in the order of their slots, or a dictionary of such functions by mode, of which "eager" is also compiled.
# An optional third function converts outputs that PyTorch stores differently to our format.

def conv(p, inputs):
    alike(p, ("pad_begin", "pad_end"))
    epilogue = p["epilogue"]
    if p["direction"] == "bias" or (epilogue and p["direction"] != "forward"):
        raise Refusal("PyTorch is timed only for convolutions, and for their data and filter gradients with the epilogue acc")
    x, w = p["x"]["extents"], p["w"]["extents"]
    volumes = "depth_stride" in p
    if volumes and p["depth_pad_begin"] != p["depth_pad_end"]:
        raise Refusal("PyTorch pads both ends equally")
    sides = {name: ([p["depth_" + name]] if volumes else []) + p[name] for name in ("stride", "pad_begin", "dilation")}
    window = *sides.values(), False, [0] * len(sides["stride"]), p["groups"]
    if epilogue:
        return conv_with_epilogue(epilogue, OUTPUT_INDICES[len(x)], window, TYPES[p["y"]["type"]], inputs["x"].is_cuda)
    if p["direction"] == "forward":
        return (lambda s: s), lambda s: (aten.convolution(s["x"], s["w"], None, *window),)
    data = p["direction"] == "data"

    def prepare(s):
        other = s["dy"].new_empty(x if data else w)
        order = order_of(s["dy"])
        return {**s, "x" if data else "w": other.contiguous(memory_format=order)}
    return prepare, lambda s: (aten.convolution_backward(s["dy"], s["x"], s["w"], None, *window, [data, not data, False])[0 if data else 1],)


def conv_with_epilogue(epilogue, letters, window, output, on_gpu):
    function, views = expression(epilogue, letters)

    def eager(s):
        acc = aten.convolution(s["x"], s["w"], None, *window)
        return function(acc, **s["views"]).to(output),
    sides = (*window[:3], window[-1])
    fused = {"relu(acc + bias[k])": lambda s: (aten.cudnn_convolution_relu(s["x"], s["w"], s["operand bias"], *sides).to(output),),
             "relu(acc + bias[k] + residual[n, k, p, q])":
                 lambda s: (aten.cudnn_convolution_add_relu(s["x"], s["w"], s["operand residual"], 1, s["operand bias"], *sides).to(output),)}
    modes = {"eager": eager}
    if on_gpu and epilogue["expression"] in fused:
        modes["fused"] = fused[epilogue["expression"]]
    return lambda s: {**s, "views": views(s)}, modes


def pool(p, inputs):
    alike(p, ("pad_begin", "pad_end"))
    window, stride, pad, dilation = p["window"], p["stride"], p["pad_begin"], p["dilation"]
    largest, extents = p["mode"] == "max", p["y"]["extents"]
    if len(extents) == 5:
        raise Refusal("PyTorch is timed only for pooling of images")
    if not largest and dilation != [1, 1]:
        raise Refusal("PyTorch's average pooling does not support dilation")
    if p["indices"] and p["indices"]["type"] != "s32":
        raise Refusal("PyTorch returns indices into the image (s32), not within the window")

    def forward(x, ceil):
        if largest:
            return aten.max_pool2d_with_indices(x, window, stride, pad, dilation, ceil)
        return (aten.avg_pool2d(x, window, stride, pad, ceil, p["mode"] == "average-with-padding"),)
    some = torch.zeros([1, 1] + p["x"]["extents"][2:], dtype=torch.float32)
    fits = [ceil for ceil in (False, True) if list(forward(some, ceil)[0].shape)[2:] == extents[2:]]
    if not fits:
        raise Refusal(f"PyTorch's pooling computes extents that differ from {extents}")
    ceil = fits[0]
    if p["direction"] == "forward":
        if not largest or p["indices"]:
            return (lambda s: s), lambda s: forward(s["x"], ceil)
        return (lambda s: s), lambda s: (F.max_pool2d(s["x"], window, stride, pad, dilation, ceil),)
    if not largest:
        return (lambda s: {**s, "x": s["dy"].new_empty(p["x"]["extents"]).contiguous(memory_format=order_of(s["dy"]))}), \
            lambda s: (aten.avg_pool2d_backward(s["dy"], s["x"], window, stride, pad, ceil, p["mode"] == "average-with-padding", None),)

    def prepare(s):
        x = s.get("x", s["dy"].new_empty(p["x"]["extents"]).contiguous(memory_format=order_of(s["dy"])))
        places = s["indices"].long() if "indices" in s else forward(x, ceil)[1]
        return {**s, "x": x, "places": places.contiguous(memory_format=order_of(s["dy"]))}
    return prepare, lambda s: (aten.max_pool2d_with_indices_backward(s["dy"], s["x"], window, stride, pad, dilation, ceil, s["places"]),)


def order_of(tensor):
    last = torch.channels_last_3d if tensor.dim() == 5 else torch.channels_last
    return last if tensor.is_contiguous(memory_format=last) else torch.contiguous_format


def activation(p, inputs):
    alpha, beta, name = p["alpha"], p["beta"], p["function"]
    forward = {"relu": F.relu, "leaky_relu": lambda x: F.leaky_relu(x, alpha), "elu": lambda x: F.elu(x, alpha), "sigmoid": torch.sigmoid,
               "tanh": torch.tanh, "scaled_tanh": lambda x: alpha * torch.tanh(beta * x), "gelu": F.gelu,
               "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu}[name]
    if p["direction"] == "forward":
        return (lambda s: s), lambda s: (forward(s["x"]),)
    backward = {"relu": lambda s: aten.threshold_backward(s["dy"], s["x"], 0),
                "leaky_relu": lambda s: aten.leaky_relu_backward(s["dy"], s["x"], alpha, False),
                "elu": lambda s: aten.elu_backward(s["dy"], alpha, 1, 1, False, s["x"]),
                "sigmoid": lambda s: aten.sigmoid_backward(s["dy"], s["y"]), "tanh": lambda s: aten.tanh_backward(s["dy"], s["y"]),
                "scaled_tanh": lambda s: s["dy"] * (alpha * beta) * (1 - torch.tanh(beta * s["x"]) ** 2),
                "gelu": lambda s: aten.gelu_backward(s["dy"], s["x"]),
                "gelu_tanh": lambda s: aten.gelu_backward(s["dy"], s["x"], approximate="tanh"),
                "silu": lambda s: aten.silu_backward(s["dy"], s["x"])}[name]
    saves_y = name in ("sigmoid", "tanh")
    return (lambda s: {**s, "y": forward(s["x"])} if saves_y else s), lambda s: (backward(s),)


def batchnorm(p, inputs):
    epsilon = p["epsilon"]
    if p.get("slope", 1) != 1:
        raise Refusal("PyTorch has no batch normalization with an activation")
    if p["mode"] == "inference":
        return (lambda s: s), lambda s: (F.batch_norm(s["x"], s["mean"], s["variance"], s["scale"], s["bias"], False, 0, epsilon),)
    if p["mode"] == "training":
        return (lambda s: s), lambda s: aten.native_batch_norm(s["x"], s["scale"], s["bias"], None, None, True, 0.1, epsilon), \
            lambda y, mean, inverse: (y, mean, inverse.double() ** -2 - epsilon)
    return (lambda s: {**s, "inverse": (s["variance"] + epsilon).rsqrt()}), \
        lambda s: aten.native_batch_norm_backward(s["dy"], s["x"], s["scale"], None, None, s["mean"], s["inverse"], True, epsilon, [True] * 3)


def group_norm(p, inputs):
    extents, groups, epsilon = p["x"]["extents"], p["groups"], p["epsilon"]
    sizes = extents[0], extents[1], math.prod(extents[2:])
    if (p["direction"] == "backward" or p["statistics"]) and inputs["x"].element_size() < 4:
        raise Refusal("PyTorch keeps the statistics of a group normalization in 16 bits")
    if p["direction"] == "backward":
        wanted = [True, bool(p["dweight"]), bool(p["dbias"])]
        return (lambda s: s), lambda s: tuple(d for d in aten.native_group_norm_backward(
            s["dy"], s["x"], s["mean"], s["inverse"], s.get("weight"), *sizes, groups, wanted) if d is not None)
    if p["statistics"]:
        return (lambda s: s), lambda s: aten.native_group_norm(s["x"], s.get("weight"), s.get("bias"), *sizes, groups, epsilon)
    return (lambda s: s), lambda s: (F.group_norm(s["x"], groups, s.get("weight"), s.get("bias"), epsilon),)


def row_norm(p, inputs):
    if p["mode"] == "group":
        return group_norm(p, inputs)
    epsilon, rows = p["epsilon"], p["x"]["extents"][p["axis"]:]
    layer = p["mode"] == "layer"
    if p["direction"] == "forward":
        if not layer and p["statistics"]:
            return (lambda s: s), lambda s: aten._fused_rms_norm(s["x"], rows, s.get("weight"), epsilon)
        if not layer:
            return (lambda s: s), lambda s: (F.rms_norm(s["x"], rows, s.get("weight"), epsilon),)
        return (lambda s: s), lambda s: aten.native_layer_norm(s["x"], rows, s.get("weight"), s.get("bias"), epsilon)[:3 if p["statistics"] else 1]
    if layer:
        wanted = [True, bool(p["dweight"]), bool(p["dbias"])]
        return lambda s: {**s, "bias": s["weight"] if "weight" in s else s["x"].new_zeros(rows)}, \
            lambda s: tuple(d for d in aten.native_layer_norm_backward(s["dy"], s["x"], rows, s["mean"], s["inverse"], s.get("weight"),
                                                                       s["bias"], wanted) if d is not None)

    if not inputs["x"].is_cuda or not hasattr(aten, "_fused_rms_norm_backward"):
        raise Refusal("PyTorch computes the gradient of an RMS normalization from a saved inverse only on GPUs, and only from version 2.9 on")
    wanted = [True, bool(p["dweight"])]
    return (lambda s: s), lambda s: aten._fused_rms_norm_backward(s["dy"], s["x"], rows, s["inverse"], s.get("weight"), wanted)[:sum(wanted)]


def lrn(p, inputs):
    if p["size"] % 2 == 0:
        raise Refusal(f"PyTorch aligns a window of {p['size']} channels differently; odd sizes agree")

    def forward(x):
        return F.local_response_norm(x, p["size"], p["alpha"], p["beta"], p["k"])
    if p["direction"] == "forward":
        return (lambda s: s), lambda s: (forward(s["x"]),)

    def prepare(s):
        x = s["x"].clone().requires_grad_()
        with torch.enable_grad():
            return {"x": x, "y": forward(x), "dy": s["dy"]}
    return prepare, lambda s: torch.autograd.grad(s["y"], s["x"], s["dy"], retain_graph=True)


def softmax(p, inputs):
    axis, log = p["axis"], p["logarithm"]
    if p["direction"] == "forward":
        function = torch.log_softmax if log else torch.softmax
        return (lambda s: s), lambda s: (function(s["x"], axis),)
    function = aten._log_softmax_backward_data if log else aten._softmax_backward_data
    return (lambda s: s), lambda s: (function(s["dy"], s["y"], axis, s["y"].dtype),)


def cross_entropy(p, inputs):
    def gradient(s, logs, weight):
        of_logs = aten.nll_loss_backward(s["one"], logs, s["labels"], None, 1, -100, weight)
        return aten._log_softmax_backward_data(of_logs, logs, 1, logs.dtype)

    def prepare(s):
        logs, labels = torch.log_softmax(s["x"], 1), s["labels"].long()
        return {**s, "labels": labels, "one": s["x"].new_ones(()), "logs": logs, "count": aten.nll_loss_forward(logs, labels, None, 1, -100)[1]}

    def forward(s):
        if not p["dx"]:
            return (F.cross_entropy(s["x"], s["labels"]).reshape(1),)
        logs = torch.log_softmax(s["x"], 1)
        loss, weight = aten.nll_loss_forward(logs, s["labels"], None, 1, -100)
        return loss.reshape(1), gradient(s, logs, weight)
    return prepare, forward if p["direction"] == "forward" else lambda s: (gradient(s, s["logs"], s["count"]),)


def reduce(p, inputs):
    axes = [d for d, (x, y) in enumerate(zip(p["x"]["extents"], p["y"]["extents"])) if y == 1 and x != 1]
    if not axes:
        raise Refusal("nothing is reduced")
    function = {"sum": torch.sum, "mean": torch.mean, "max": torch.amax, "min": torch.amin,
                "sum-of-squares": lambda x, axes, keepdim: (x * x).sum(axes, keepdim=keepdim)}[p["operation"]]
    return (lambda s: s), lambda s: (function(s["x"], axes, keepdim=True),)


def add(p, inputs):
    alpha, beta = p["alpha"], p["beta"]
    if not p["b"]:
        return (lambda s: s), lambda s: (alpha * s["a"],)
    return (lambda s: s), lambda s: (torch.add(s["a"] if alpha == 1 else alpha * s["a"], s["b"], alpha=beta),)


def transform(p, inputs):
    y = p["y"]
    return (lambda s: s), lambda s: (torch.empty_strided(y["extents"], y["strides"], dtype=TYPES[y["type"]], device=s["x"].device).copy_(s["x"]),)


def elementwise(p, inputs):
    function, views = expression(p["epilogue"], INDICES[len(p["x"]["extents"])])
    return lambda s: {"acc": s["x"], **views(s)}, lambda s: (function(**s).to(TYPES[p["y"]["type"]]),)


SUBJECTS = {"conv": conv, "pool": pool, "activation": activation, "batchnorm": batchnorm, "row-norm": row_norm, "lrn": lrn,
            "softmax": softmax, "cross-entropy": cross_entropy, "reduce": reduce, "add": add, "transform": transform, "elementwise": elementwise}


class Way:
    """One PyTorch mode that computes the problem, cycling through sets of operands."""

    def __init__(self, call, sets, on_gpu, as_graph):
        self.call, self.sets, self.on_gpu, self.graph, self.calls = call, sets, on_gpu, None, 1
        self.next, self.kept = 0, [None] * len(sets)
        for _ in range(2):
            self.turn()
        if not on_gpu:
            return
        torch.cuda.synchronize()
        alone = self.seconds_of(self.turn) / len(sets)
        if as_graph:
            turns = max(1, min(round(1e-3 / (alone * len(sets))), max(1, 512 // len(sets))))
            self.next, self.calls, graph = 0, turns * len(sets), torch.cuda.CUDAGraph()
            self.kept = [None] * len(sets)
            with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
                for _ in range(turns):
                    self.turn()
            self.graph = graph
            for _ in range(2):
                graph.replay()
            torch.cuda.synchronize()

    def run(self):
        """Makes one call. Keeps the outputs of as many calls as there are sets, so that each call writes to its own memory."""
        self.kept[self.next] = self.call(self.sets[self.next])
        self.next = (self.next + 1) % len(self.sets)

    def turn(self):
        for _ in self.sets:
            self.run()

    def enqueue(self):
        self.graph.replay() if self.graph else self.run()

    def seconds_of(self, work):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e-3

    def measure(self, seconds):
        return self.measure_on_gpu(seconds) if self.on_gpu else self.measure_on_host(seconds)

    def measure_on_gpu(self, seconds):
        """Samples between events: each a graph of calls, or a group of single calls that takes 50 us."""
        once = max(self.seconds_of(self.enqueue), 1e-6)
        group = max(1, min(100, round(50e-6 / once)))
        samples, elapsed = [], 0
        while elapsed < seconds or not samples:
            count = max(1, min(256 // group, round((seconds - elapsed) / (once * group))))
            events = [torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]
            events[0].record()
            for event in events[1:]:
                for _ in range(group):
                    self.enqueue()
                event.record()
            events[-1].synchronize()
            samples += [a.elapsed_time(b) * 1e-3 / group / self.calls for a, b in zip(events, events[1:])]
            elapsed += events[0].elapsed_time(events[-1]) * 1e-3
        return samples

    def measure_on_host(self, seconds):
        """Samples of one call, or of a group of calls that takes 20 us."""
        clock, samples = time.perf_counter, []
        begin = clock()
        self.run()
        group = max(1, round(20e-6 / max(clock() - begin, 1e-7)))
        end = clock() + seconds
        while not samples or clock() < end:
            begin = clock()
            for _ in range(group):
                self.run()
            samples.append((clock() - begin) / group)
        return samples


class Problem:
    def __init__(self, request):
        self.slots, self.on_gpu = request["slots"], request["device"] != "cpu"
        self.memory = mmap.mmap(memory_file, request["bytes"])
        if request["subject"] not in SUBJECTS:
            raise Refusal(f"PyTorch is timed only for {', '.join(SUBJECTS)}, not for {request['subject']}")
        cut = any(slot["type"] == "tf32" for slot in self.slots)
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = cut
        torch.backends.cudnn.benchmark = True
        torch.set_num_threads(request["threads"])
        inputs = {slot["name"]: at_slot(self.memory, slot).to(request["device"], copy=True) for slot in self.slots if slot["role"] != "output"}
        prepare, call, *rest = SUBJECTS[request["subject"]](request["problem"], inputs)
        self.finish = rest[0] if rest else lambda *outputs: outputs
        sets = [inputs] + [{name: self.another(tensor, i) for name, tensor in inputs.items()} for i in range(1, request["sets"])]
        formats = [("", lambda s: s)]  # in its original layout
        if request["subject"] == "conv":
            formats = [("nhwc", in_format(True)), ("nchw", in_format(False))]
        modes = dict(call) if isinstance(call, dict) else {"eager": call}
        compiles = self.on_gpu and (request["subject"] != "conv" or request["problem"]["epilogue"]) and hasattr(torch, "compile")
        if compiles:
            torch._dynamo.reset()  # torch.compile's recompilation limit is per function, and all problems of a subject share one
            modes["compiled"] = torch.compile(modes["eager"], dynamic=False)
        self.best, failures = None, []
        for layout, to_format in formats:
            prepared = [prepare(to_format(one)) for one in sets]
            for name, one in modes.items():
                try:
                    way = Way(one, prepared, self.on_gpu, request["graphs"])
                    seconds = statistics.median(way.measure(0.02 if self.on_gpu else 0.05))
                except Exception as error:
                    failures.append(f"{name} {layout}: {first_line(error)}")
                    continue
                if self.best is None or seconds < self.best[0]:
                    self.best = seconds, way, {"way": name, "layout": layout}
        if self.best is None:
            raise Refusal("PyTorch: " + "; ".join(failures))
        self.way = self.best[1]
        self.about = {**self.best[2], "ways": len(formats) * len(modes) - len(failures), "failures": failures}

    @staticmethod
    def another(tensor, i):
        """Permutes the values of the inputs; labels and indices are kept."""
        other = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device)
        return other.copy_(tensor.roll(i, -1) if tensor.is_floating_point() and tensor.dim() > 1 else tensor)

    def result(self):
        outputs = self.finish(*self.way.call(self.way.sets[0]))
        for slot, output in zip((slot for slot in self.slots if slot["role"] == "output"), outputs):
            at_slot(self.memory, slot).copy_(output)


def first_line(error):
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def version():
    if not torch.cuda.is_available():
        return f"PyTorch {torch.__version__}"
    number = torch.backends.cudnn.version() or 0
    return f"PyTorch {torch.__version__}, cuDNN {number // 10000}.{number // 100 % 100}.{number % 100}"


def main():
    problem = None
    print(json.dumps({"version": version(), "cuda": torch.cuda.is_available()}), file=answers)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "problem" in request:
                problem = None  # frees the memory of one mode before the next one allocates
                if request["device"] != "cpu":
                    torch.cuda.empty_cache()
                problem = Problem(request)
                answer = problem.about
            elif "time" in request:
                samples = problem.way.measure(request["time"])
                answer = {"median": statistics.median(samples), "least": min(samples), "samples": len(samples)}
            elif "forget_graphs" in request:
                problem.way.graph, problem.way.calls = None, 1
                answer = {}
            else:
                problem.result()
                answer = {}
        except Exception as error:
            answer = {"refusal": first_line(error)}
        print(json.dumps(answer), file=answers)


# Gradients run on the stream of the forward pass, so everything runs on a stream that a graph can capture.
with torch.no_grad():
    if torch.cuda.is_available():
        torch.cuda.set_stream(torch.cuda.Stream())
    main()
