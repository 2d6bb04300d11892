// bench of convolutions on a GPU, with the fake driver and a fake cuDNN: layouts, padding and directions as
// the library requires, and its result against ours. Times are the fake's.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>
#include <string>

#include "cli/bench/bench_report.h"
#include "cli/bench/gpu_interleaved.h"
#include "cli/bench/peers/cudnn_peer.h"
#include "cli/data/result_sample.h"
#include "cosmati/conv/direct.h"
#include "cosmati/conv/phases_arguments.h"
#include "src/jit/cache.h"
#include "src/jit/nvrtc.h"
#include "tests/cuda/fake_libcuda.h"

namespace cosmati::cli {
namespace {

[[maybe_unused]] int const chosen = setenv("COSMATI_LIBCUDA", COSMATI_FAKE_LIBCUDA, 1) +
                                    setenv("COSMATI_CUDNN", COSMATI_FAKE_CUDNN, 1) +
                                    setenv("COSMATI_CACHE", COSMATI_TEST_CACHE, 1);

double error_of_ours = 0;

template <class Element>
constexpr DataType of_type = std::is_same_v<Element, bf16> ? DataType::bf16 : DataType::f32;

using DirectParameters = ConvolutionParameters<NoEpilogueArguments>;

// Computes the kernel `direct` from its parameters.
template <class Element>
void convolve_with(DirectParameters const& params, unsigned groups) {
  auto const offset = [](DigitExtents const& extents, Index const(&stride)[3], int index) {
    Digits const at = extents.digits(index);
    return at.first * stride[0] + at.middle * stride[1] + at.last * stride[2];
  };
  for (unsigned group = 0; group < groups; ++group)
    for (int m = 0; m < params.m; ++m)
      for (int n = 0; n < params.n; ++n) {
        DirectOperand<Element> const a(params.a, group, m), b(params.b, group, n);
        double sum = error_of_ours;
        for (int k = 0; k < params.k; ++k) {
          Digits const depth = params.a.depth.extents.digits(k);
          auto const number = [&depth](auto const& operand, WindowArguments const& arguments) {
            return load(of_type<Element>, operand.data, arguments.depth.offset(depth));
          };
          if (a.has(depth) && b.has(depth)) sum += number(a, params.a) * number(b, params.b);
        }
        auto* const d = static_cast<Element*>(params.d.data) + group * params.d.batch_stride;
        store(of_type<Element>, d,
              offset(params.d.row_extents, params.d.row_stride, m) +
                  offset(params.d.column_extents, params.d.column_stride, n),
              sum);
      }
}

template <class Element>
void convolve(fake::Launch const& launch) {
  convolve_with<Element>(launch.as<DirectParameters>(), launch.grid_z);
}

// Computes all phases of a strided data gradient from their parameters.
template <class Element>
void convolve_phases(fake::Launch const& launch) {
  auto const& params = launch.as<PhasesParameters<DirectParameters, 1>>();
  for (int i = 0; i < params.count; ++i) convolve_with<Element>(params.phase[i], launch.grid_z);
}

void nothing(fake::Launch const&) {}

class CudnnInterleaved : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!jit::nvrtc_available()) GTEST_SKIP() << jit::nvrtc_description();
    fake::reset();
    error_of_ours = 0;
    auto const clock = cuda::peak_source(cuda::Peak::fma_f32, "sm_90a");
    fake::set_kernel(jit::kernel_cache().get(clock).lowered_name, nothing);
  }

  struct Case {
    ConvolutionDirection direction = ConvolutionDirection::forward;
    TensorFormat format = TensorFormat::nchw;
    DataType type = DataType::f32;
    Index groups = 1;
    Index pad_end = 1;  // 1 on the other side
  };

  static ConvolutionProblem problem_of(Case const& of) {
    ConvolutionProblem problem;
    problem.direction = of.direction;
    problem.groups = of.groups;
    constexpr Index n = 2, c = 4, k = 6, h = 9, w = 8, r = 3, s = 2;
    for (int d = 0; d < 2; ++d) problem.pad_begin[d] = 1;
    problem.pad_end[0] = of.pad_end;
    problem.pad_end[1] = 0;
    problem.stride[1] = 2;
    problem.dilation[0] = 2;
    auto const image = [&](Index i, Index j, Index y, Index x) {
      return describe(of.type, image_layout(of.format, i, j, y, x));
    };
    Index const p = convolution_extent(h, r, 1, 1, of.pad_end, 2), q = convolution_extent(w, s, 2, 1, 0, 1);
    problem.x = image(n, c, h, w);
    problem.w = image(k, c / of.groups, r, s);
    problem.y = image(n, k, p, q);
    if (of.type == DataType::tf32) {  // factors are rounded to tf32; sums stay f32
      bool const forward = of.direction == ConvolutionDirection::forward;
      bool const data = of.direction == ConvolutionDirection::data;
      (forward ? problem.y : data ? problem.x : problem.w).type = DataType::f32;
    }
    return problem;
  }

  static std::unique_ptr<Task> task_of(ConvolutionProblem const& problem, Device const& device,
                                       PlanOptions const& options) {
    Notes notes;
    notes.label = "a convolution";
    auto task = make_task(problem, notes);
    auto const composition = task->compose(device, options);
    bool const bf = problem.x.type == DataType::bf16;
    bool const phases = problem.direction == ConvolutionDirection::data;
    fake::set_kernel(jit::kernel_cache().get(composition->source).lowered_name,
                     phases ? (bf ? convolve_phases<bf16> : convolve_phases<float>)
                            : (bf ? convolve<bf16> : convolve<float>));
    return task;
  }

  static PlanOptions options() {
    PlanOptions one;
    one.kernel = "direct";
    return one;
  }

  static PeerResult hold(Case const& of) {
    Device const device = this_device(Backend::cuda, 1);
    ConvolutionProblem const problem = problem_of(of);
    auto const task = task_of(problem, device, options());
    GpuPeaks gpu_peaks(device.gpu);
    PeerProblem peer{"cudnn", "", of.type};
    peer.convolution = problem;
    return run_interleaved_on_gpu(*task, device, options(), {2, 0.005, true, 0}, {peer}, 1, gpu_peaks)
        .peers.at(0);
  }

  template <class Visit>
  static void visit_peer(Case const& of, Visit const& visit) {
    Device const device = this_device(Backend::cuda, 1);
    cuda::Current const current(0);
    nets::Random random(1, 1);
    ConvolutionProblem const problem = problem_of(of);
    auto const task = make_task(problem, Notes{});
    GpuOperands const operands(*task, device, 1, 0, random);
    visit(CudnnPeer(problem, operands, 0));
  }
  static std::set<std::string> engines_of(Case const& of) {
    std::set<std::string> engines;
    visit_peer(of, [&](CudnnPeer const& peer) {
      for (int i = 0; i < peer.algorithms(); ++i)
        if (peer.algorithm(i).interface == "graph") engines.insert(peer.algorithm(i).engine);
    });
    return engines;
  }
  static std::size_t legacy_workspace_of(Case const& of) {
    std::size_t bytes = 0;
    visit_peer(of, [&](CudnnPeer const& peer) {
      for (int i = 0; i < peer.algorithms(); ++i)
        if (peer.algorithm(i).interface == "legacy") bytes = peer.workspace_bytes(i);
    });
    return bytes;
  }
};

// The number of the graph interface's descriptors not yet destroyed.
int objects_of_the_fake() {
  void* const file = dlopen(COSMATI_FAKE_CUDNN, RTLD_NOW | RTLD_NOLOAD);
  auto* const count = reinterpret_cast<int (*)()>(dlsym(file, "fake_cudnn_objects"));
  return count();
}

TEST_F(CudnnInterleaved, ComputesEveryDirectionInEveryLayoutWithAnyPadding) {
  Device const device = this_device(Backend::cuda, 1);
  cuda::Current const current(0);
  nets::Random random(1, 1);
  for (auto const direction :
       {ConvolutionDirection::forward, ConvolutionDirection::data, ConvolutionDirection::filter})
    for (auto const format : {TensorFormat::nchw, TensorFormat::nhwc, TensorFormat::chwn})
      for (Index const groups : {1, 2})
        for (Index const pad_end : {0, 1, 2}) {
          ConvolutionProblem const problem = problem_of({direction, format, DataType::f32, groups, pad_end});
          auto const task = task_of(problem, device, options());
          GpuOperands const operands(*task, device, 2, 0, random);
          task->prepare(device, options())->run(operands.pointers(0), nullptr);
          ResultSample const sample(*task, operands, 0, random);
          CudnnPeer const peer(problem, operands, 0);
          // In each layout four plans for a padded array and four for an unpadded one, and two legacy
          // algorithms.
          EXPECT_EQ(peer.algorithms(), (groups == 1 ? 2 : 1) * (4 + 4 + 2)) << peer.refusal();
          for (int i = 0; i < peer.algorithms(); ++i) {
            operands.poison_outputs(0);
            EXPECT_FALSE(sample.compare(1e-4).correct) << "NaN is another result";
            if (peer.algorithm(i).engine == "engine 16") {
              EXPECT_THROW(peer.run(i, 0, nullptr), Error);
              continue;
            }
            peer.run(i, 0, nullptr);
            peer.copy_result(i, 0);
            Verdict const verdict = sample.compare(1e-4);
            EXPECT_TRUE(verdict.correct)
                << static_cast<int>(direction) << ' ' << name_of(format) << " groups " << groups << " pad "
                << pad_end << ' ' << peer.algorithm(i).text() << ": " << verdict.complaint;
            EXPECT_GE(verdict.elements, 40);
          }
        }
}

TEST_F(CudnnInterleaved, TakesTheFastestOfBothInterfacesAndNamesIt) {
  int const allocations = fake::allocations(), handles = fake::handles();
  PeerResult const peer = hold({});
  EXPECT_EQ(peer.version, "cuDNN 9.19.2");
  EXPECT_EQ(peer.algorithms, 2 * (4 + 4 + 2)) << "the slow ones of the legacy calls are left out";
  EXPECT_EQ(peer.tried, peer.algorithms - 4) << "an engine that fails is left out";
  EXPECT_EQ(peer.algorithm.interface, "graph");
  EXPECT_EQ(peer.algorithm.engine, "engine 11 k2=4") << "the others take longer by the fake";
  EXPECT_EQ(peer.algorithm.layout.substr(0, 2), "nc") << "the problem's own comes first";
  EXPECT_EQ(peer.workspace_bytes, 1100);
  EXPECT_GT(peer.ratio.median, 0);
  EXPECT_GT(peer.first_ratio.median, peer.ratio.median);
  EXPECT_GT(peer.host_seconds, 0);
  EXPECT_TRUE(peer.sample->correct) << peer.sample->complaint;
  EXPECT_EQ(hold({.groups = 2}).algorithms, 4 + 4 + 2) << "the fake has no groups for NHWC";
  EXPECT_EQ(hold({.format = TensorFormat::nhwc, .groups = 2}).algorithms, 4 + 4 + 2);
  EXPECT_EQ(fake::allocations(), allocations) << "all memory is given back";
  EXPECT_EQ(fake::handles(), handles) << "all handles are given back";
  EXPECT_EQ(objects_of_the_fake(), 0) << "all descriptors are given back";
}

TEST_F(CudnnInterleaved, KeepsToTheProblemsLayoutIfAsked) {
  cuda::Current const current(0);
  Device const device = this_device(Backend::cuda, 1);
  nets::Random random(1, 1);
  for (auto const& [format, name] : {std::pair(TensorFormat::nchw, "nchw"), {TensorFormat::nhwc, "nhwc"}}) {
    ConvolutionProblem const problem = problem_of({.format = format});
    auto const task = make_task(problem, Notes{});
    GpuOperands const operands(*task, device, 1, 0, random);
    CudnnPeer const peer(problem, operands, 0, true);
    ASSERT_EQ(peer.algorithms(), 4 + 4 + 2) << "half of those in any layout";
    for (int i = 0; i < peer.algorithms(); ++i)
      EXPECT_EQ(peer.algorithm(i).layout.substr(0, 4), name) << peer.algorithm(i).text();
  }
}

// Tensor cores round f32; an engine that narrows its inputs is never used.
TEST_F(CudnnInterleaved, AllowsNoLessPrecisionThanTheTypeHas) {
  for (auto const direction :
       {ConvolutionDirection::forward, ConvolutionDirection::data, ConvolutionDirection::filter}) {
    auto const of = [direction](DataType type) { return Case{.direction = direction, .type = type}; };
    EXPECT_EQ(engines_of(of(DataType::f32)),
              (std::set<std::string>{"engine 11 k2=1", "engine 11 k2=4", "engine 16", "engine 0"}));
    for (DataType const type : {DataType::tf32, DataType::f16, DataType::bf16})
      EXPECT_TRUE(engines_of(of(type)).contains("engine 12"))
          << name_of(type) << ", direction " << static_cast<int>(direction);
    EXPECT_FALSE(engines_of(of(DataType::f16)).contains("engine 13"));
    // For legacy calls the fake encodes the math mode in the workspace size.
    EXPECT_EQ(legacy_workspace_of(of(DataType::f32)), 1000 + static_cast<int>(cudnn::Math::fma));
    EXPECT_EQ(legacy_workspace_of(of(DataType::tf32)), 1000 + static_cast<int>(cudnn::Math::standard));
    EXPECT_EQ(legacy_workspace_of(of(DataType::bf16)), 1000 + static_cast<int>(cudnn::Math::tensor_op));
  }
  PeerResult const narrow = hold({.type = DataType::bf16});
  EXPECT_TRUE(narrow.sample->correct) << narrow.sample->complaint;
}

// The content of --peer-log.
TEST_F(CudnnInterleaved, TellsEveryAlgorithmThatTheLibraryOffers) {
  PeerResult const peer = hold({});
  std::map<std::string, int> reasons;
  int measured = 0;
  for (PeerTrial const& trial : peer.trials) {
    ++reasons[trial.reason];
    measured += trial.measured_seconds > 0 ? 1 : 0;
    EXPECT_EQ(trial.tried_seconds > 0, trial.reason.empty()) << trial.algorithm.text();
    EXPECT_FALSE(trial.algorithm.layout.empty());
    bool const is_rough = trial.reason == "it rounds more than the type allows";
    std::string const& engine = trial.algorithm.engine;
    EXPECT_EQ(is_rough, engine == "engine 12" || engine == "engine 13") << trial.algorithm.text();
  }
  // For two layouts, each with a padded array and without.
  EXPECT_EQ(reasons[""], peer.tried);
  EXPECT_EQ(reasons["it rounds more than the type allows"], 4 * 2);
  EXPECT_EQ(reasons["cuDNN: cudnnBackendFinalize: CUDNN_STATUS_NOT_SUPPORTED"], 4) << "engine 14";
  EXPECT_EQ(reasons["cuDNN: cudnnBackendExecute: CUDNN_STATUS_OF_THE_FAKE"], 4) << "engine 16";
  int too_large = 0;
  for (auto const& [reason, count] : reasons)
    too_large += reason.starts_with("it needs more than the") ? count : 0;
  EXPECT_EQ(too_large, 4) << "engine 15";
  EXPECT_GE(measured, 1);
  EXPECT_LE(measured, 8);

  Device const device = this_device(Backend::cuda, 1);
  auto const task = task_of(problem_of({}), device, options());
  InterleavedResult const none;
  Measurement const measurement{{"", "conv", "f32", ""}, *task, device, {}, 1, none, {}, {}};
  EXPECT_EQ(
      trial_record(measurement, peer, {{"graph", "engine 7", "nhwc"}, 100, 2e-5, 0, "it is slow"}).json(),
      "{\"verb\":\"peer-log\",\"subject\":\"conv\",\"problem\":\"a "
      "convolution\",\"type\":\"f32\",\"peer\":\"cudnn\","
      "\"peer_version\":\"cuDNN 9.19.2\",\"interface\":\"graph\",\"engine\":\"engine 7\",\"layout\":\"nhwc\","
      "\"workspace_bytes\":100,\"tried_seconds\":2e-05,\"measured_seconds\":null,\"reason\":\"it is "
      "slow\"}\n");
}

TEST_F(CudnnInterleaved, SaysWhyThereIsNoPlan) {
  CudnnConvolution asked;
  asked.x[0] = asked.x[1] = asked.w[0] = asked.w[1] = asked.y[0] = asked.y[1] = 4;
  for (int d = 2; d < 4; ++d) asked.x[d] = asked.y[d] = 8, asked.w[d] = 1;
  cudnn::Context* context = nullptr;
  cudnn::check("cudnnCreate", cudnn::library().cudnnCreate(&context));
  {
    CudnnGraph const graph(context, 0, asked, 64);
    CudnnGraph::Plans const some = graph.plans(1 << 30, 2);
    ASSERT_EQ(some.plans.size(), 2U) << "no more than were asked for";
    EXPECT_EQ(some.plans[1].engine, "engine 11 k2=4");
    CudnnGraph::Plans const one = graph.plans(1 << 30, 1);
    ASSERT_EQ(one.plans.size(), 1U);
    EXPECT_TRUE(one.left_out.empty()) << "what is not needed is not examined";
    CudnnGraph::Plans const all = graph.plans(1 << 30, 48);
    EXPECT_EQ(all.plans.size(), 4U);
    EXPECT_EQ(all.other_numerics, 2);
    EXPECT_EQ(all.refused, 1) << "once, though two modes name it";
    EXPECT_EQ(all.too_large, 1);
    CudnnGraph::Plans const without_memory = graph.plans(1 << 10, 48);
    EXPECT_EQ(without_memory.plans.size(), 1U) << "engine 0 needs none";
    EXPECT_EQ(
        without_memory.reason(),
        "2 plans round more than the type allows, 4 plans need too much workspace, 1 plans are rejected, cuDNN: "
        "cudnnBackendFinalize: CUDNN_STATUS_NOT_SUPPORTED");
  }
  asked.w[1] = 2;  // two groups
  asked.format = cudnn::Format::nhwc;
  EXPECT_EQ(CudnnGraph(context, 0, asked, 64).plans(1 << 30, 48).reason(),
            "cuDNN: cudnnBackendFinalize: CUDNN_STATUS_NOT_SUPPORTED");
  asked.y[2] = 7;
  EXPECT_THROW(CudnnGraph(context, 0, asked, 64), Error) << "the extents do not belong together";
  EXPECT_EQ(objects_of_the_fake(), 0) << "descriptors are given back after failures, too";
}

TEST_F(CudnnInterleaved, SeesAnotherResultThanOurs) {
  error_of_ours = 0.1;
  PeerResult const peer = hold({});
  ASSERT_TRUE(peer.sample.has_value());
  EXPECT_FALSE(peer.sample->correct);
  EXPECT_NE(peer.sample->complaint.find("y, element 0: "), std::string::npos) << peer.sample->complaint;
}

}  // namespace
}  // namespace cosmati::cli
