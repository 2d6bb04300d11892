// bench on a GPU, with the fake driver and a fake cuBLASLt: data, verification on a sample, the peer, and the
// figures reported. Times are the fake's.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "cli/bench/gpu_interleaved.h"
#include "cli/bench/peers/cublaslt_peer.h"
#include "cli/bench/peers/gpu_peer.h"
#include "cli/data/sample.h"
#include "cli/operations/notes.h"
#include "cli/options/placement.h"
#include "cli/options/sizes.h"
#include "cosmati/epilogue/parse.h"
#include "cosmati/gemm/arguments.h"
#include "src/jit/cache.h"
#include "src/jit/nvrtc.h"
#include "tests/cuda/fake_libcuda.h"

namespace cosmati::cli {
namespace {

[[maybe_unused]] int const chosen = setenv("COSMATI_LIBCUDA", COSMATI_FAKE_LIBCUDA, 1) +
                                    setenv("COSMATI_CUBLASLT", COSMATI_FAKE_CUBLASLT, 1) +
                                    setenv("COSMATI_CACHE", COSMATI_TEST_CACHE, 1);

Index unwritten_rows = 0;  // the last rows of d

template <class Factor, class Sum>
void multiply(fake::Launch const& launch) {
  auto const& params = launch.as<MatrixGemmParameters<NoEpilogueArguments>>();
  auto const at = []<class Number>(MatrixArguments const& matrix, Index row, Index column, Number) {
    return static_cast<Number*>(matrix.data) + row * matrix.row_stride + column * matrix.column_stride;
  };
  for (Index m = 0; m < params.m - unwritten_rows; ++m)
    for (Index n = 0; n < params.n; ++n) {
      Sum sum = 0;
      for (Index k = 0; k < params.k; ++k)
        sum +=
            static_cast<Sum>(*at(params.a, m, k, Factor{})) * static_cast<Sum>(*at(params.b, n, k, Factor{}));
      *at(params.d, m, n, Sum{}) = sum;
    }
}

void nothing(fake::Launch const&) {}

class InterleavedGpuBenchmark : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!jit::nvrtc_available()) GTEST_SKIP() << jit::nvrtc_description();
    fake::reset();
    unwritten_rows = 0;
    single_calls = true;
    hot = false;
    auto const clock = cuda::peak_source(cuda::Peak::fma_f32, "sm_90a");
    fake::set_kernel(jit::kernel_cache().get(clock).lowered_name, nothing);
  }

  // cuBLASLt's result for the product d of `a` and `b`.
  static PeerResult of_peer(std::string const& layout, DataType a, DataType b, DataType d, double beta = 0) {
    PeerProblem peer{"cublaslt", layout, a, 48, 40, 24};
    peer.result = d;
    peer.type_b = b;
    peer.beta = beta;
    cuda::Current const current(0);
    CublasLtPeer const library(peer, 0);
    PeerResult result;
    result.refusal = library.refusal();
    result.algorithms = library.algorithms();
    if (result.algorithms > 0) result.workspace_bytes = static_cast<long long>(library.workspace_bytes(0));
    return result;
  }

  static InterleavedResult hold(std::string const& type, Placement const& placement = {},
                                PeerMatrix const& of_a = {}, PeerMatrix const& of_b = {},
                                PeerMatrix const& of_d = {}, std::string const& peer_name = "cublaslt") {
    Device const device = this_device(Backend::cuda, 1);
    auto const subject = make_subject("gemm");
    Common common;
    common.types.all = type;
    Job const job = made_job(*subject, {48, 40, 24, 1}, common);
    place(*job.task, placement);
    PlanOptions options;
    if (type == "tf32") options.kernel = "multistage";  // the fake driver has no TMA
    auto const composition = job.task->compose(device, options);
    fake::set_kernel(jit::kernel_cache().get(composition->source).lowered_name,
                     type == "s8" || type == "u8" ? multiply<signed char, int> : multiply<float, float>);
    GpuPeaks gpu_peaks(device.gpu);
    auto const slots = job.task->slots();
    PeerProblem peer{peer_name, "nn", slots[0].description.type, 48, 40, 24};
    peer.python = COSMATI_FAKE_TORCH;
    peer.result = slots.back().description.type;
    peer.sum = job.task->notes.sum;
    peer.place_a = of_a;
    peer.place_b = of_b;
    peer.place_d = of_d;
    InterleavedRules rules{4, 0.005, false, placement.misalignment};
    rules.single_calls = single_calls;
    rules.hot = hot;
    return run_interleaved_on_gpu(*job.task, device, options, rules, {peer}, 1, gpu_peaks);
  }

  // Graphs over all sets of operands would take millions of products by the fake.
  static inline bool single_calls = true, hot = false;
};

TEST_F(InterleavedGpuBenchmark, MeasuresVerifiesAndCompares) {
  int const allocations = fake::allocations(), handles = fake::handles();
  InterleavedResult const result = hold("f32");
  ASSERT_TRUE(result.sample.has_value());
  EXPECT_TRUE(result.sample->correct) << result.sample->complaint;
  EXPECT_GE(result.sample->elements, 512);
  EXPECT_GT(result.buffers, 1) << "a small problem takes several sets of operands";
  EXPECT_GT(result.ours.samples, 4);
  EXPECT_GT(result.ours.typical, 0);
  ASSERT_TRUE(result.gpu.has_value());
  EXPECT_GT(result.host_seconds.value_or(0), 0);
  EXPECT_DOUBLE_EQ(result.gpu->clock_share, 1);
  EXPECT_FALSE(result.gpu->throttled);
  ASSERT_EQ(result.peers.size(), 1U);
  PeerResult const& peer = result.peers[0];
  EXPECT_EQ(peer.version, "cuBLASLt 13.1.2");
  EXPECT_EQ(peer.algorithms, 3);
  EXPECT_GT(peer.ratio.median, 0);
  EXPECT_GT(peer.first_ratio.median, 0);
  ASSERT_TRUE(peer.sample.has_value());
  EXPECT_TRUE(peer.sample->correct) << peer.sample->complaint;
  EXPECT_EQ(fake::allocations(), allocations) << "all memory is given back";
  EXPECT_EQ(fake::handles(), handles) << "all handles are given back";
}

TEST_F(InterleavedGpuBenchmark, TimesBothSidesAsGraphsOrNeither) {
  hot = true;
  single_calls = false;
  InterleavedResult const graphs = hold("f32");
  EXPECT_EQ(graphs.gpu->capture_failure, "");
  EXPECT_GT(graphs.gpu->calls_in_graph, 0);
  EXPECT_GT(graphs.peers.at(0).host_seconds, 0);

  single_calls = true;
  InterleavedResult const single = hold("f32");
  EXPECT_EQ(single.gpu->capture_failure, "");
  EXPECT_EQ(single.gpu->calls_in_graph, 0);

  single_calls = false;
  fake::refuse_captures(true);
  InterleavedResult const refused = hold("f32");
  EXPECT_EQ(refused.gpu->calls_in_graph, 0) << "ours is timed as the peer can be";
  EXPECT_EQ(refused.gpu->capture_failure.substr(0, 10), "cublaslt: ") << refused.gpu->capture_failure;
  EXPECT_TRUE(refused.peers.at(0).sample->correct);

  fake::refuse_captures(false);
  fake::fail_next("cuGraphInstantiateWithFlags", 1);
  InterleavedResult const ours = hold("f32");
  EXPECT_EQ(ours.gpu->calls_in_graph, 0);
  EXPECT_EQ(ours.gpu->capture_failure.substr(0, 6), "ours: ") << ours.gpu->capture_failure;
}

TEST_F(InterleavedGpuBenchmark, MeasuresArraysWithGapsOffTheirAlignment) {
  InterleavedResult const result = hold("f32", {3, 1}, {51, 0, 4}, {27, 0, 4}, {51, 0, 4});
  ASSERT_TRUE(result.sample.has_value());
  EXPECT_TRUE(result.sample->correct) << result.sample->complaint;
  PeerResult const& peer = result.peers.at(0);
  ASSERT_TRUE(peer.sample.has_value());
  EXPECT_TRUE(peer.sample->correct) << peer.sample->complaint;
  // If the placement is not passed to the peer, it reads the gaps or rejects the addresses.
  EXPECT_FALSE(hold("f32", {3, 0}).peers.at(0).sample->correct);
  EXPECT_EQ(
      hold("f32", {0, 4}).peers.at(0).refusal,
      "cublaslt could not run any of its algorithms: cuBLASLt: cublasLtMatmul: CUBLAS_STATUS_NOT_SUPPORTED");
}

// A stand-in for the PyTorch process on the device; it computes the product with numpy from the same numbers.
TEST_F(InterleavedGpuBenchmark, TimesPyTorchInAProcessOfItsOwn) {
  for (bool const refused : {false, true}) {
    hot = true;
    single_calls = false;
    if (refused) fake::fail_next("cuGraphInstantiateWithFlags", 1);
    InterleavedResult const result = hold("f32", {}, {}, {}, {}, "torch");
    PeerResult const& peer = result.peers.at(0);
    EXPECT_EQ(peer.refusal, "");
    EXPECT_EQ(peer.version, "PyTorch of the fake");
    EXPECT_EQ(peer.algorithm.text(), "eager");
    EXPECT_EQ(peer.tried, 2);
    EXPECT_DOUBLE_EQ(peer.seconds, 2e-3) << "the medians that it tells";
    EXPECT_DOUBLE_EQ(peer.ratio.median, 2e-3 / result.ours.typical);
    ASSERT_TRUE(peer.sample.has_value());
    EXPECT_TRUE(peer.sample->correct) << peer.sample->complaint;
    EXPECT_EQ(peer.sample->elements, 48 * 40) << "all, by the reference";
    EXPECT_EQ(result.gpu->calls_in_graph > 0, !refused);
  }
  unwritten_rows = 1;
  EXPECT_TRUE(hold("f32", {}, {}, {}, {}, "torch").peers.at(0).sample->correct)
      << "ours is wrong, not theirs";
}

// The fake's time between two events is 2.5 ms plus the duration of the launches.
TEST_F(InterleavedGpuBenchmark, KnowsABurstFromWhatLasts) {
  Gpu const gpu = this_device(Backend::cuda, 1).gpu;
  fake::set_kernel(jit::kernel_cache().get(cuda::peak_source(cuda::Peak::wgmma_bf16, "sm_90a")).lowered_name,
                   [](fake::Launch const& launch) {
                     EXPECT_EQ(launch.threads, 256U);
                     EXPECT_EQ(launch.as<cuda::PeakParameters>().steps, 1000);
                     fake::take_milliseconds(7.5);
                   });
  GpuPeaks gpu_peaks(gpu);
  cuda::PeakRate const rate = gpu_peaks.peak(cuda::Peak::wgmma_bf16);
  // Two warpgroups per multiprocessor, 16 products of 64 x 256 x 16 per step.
  double const operations = 2.0 * 64 * 256 * 16 * 16 * 2 * 1000 * gpu.multiprocessors;
  EXPECT_DOUBLE_EQ(rate.burst, operations / 10e-3);
  EXPECT_DOUBLE_EQ(rate.sustained, operations * 50 / (50 * 7.5e-3 + 2.5e-3)) << "half a second of launches";
  EXPECT_EQ(fake::launches().size(), 10U + 20 + 25 + 50);
  EXPECT_EQ(cuda::ceiling_of(cuda::Peak::wgmma_bf16, rate), rate.sustained);
  EXPECT_EQ(cuda::ceiling_of(cuda::Peak::fma_f32, rate), rate.burst);
  EXPECT_EQ(gpu_peaks.peak(cuda::Peak::wgmma_bf16), rate);
  EXPECT_EQ(fake::launches().size(), 105U) << "measured once";
}

TEST(Peaks, AreOfTheInstructionThatAKernelIssues) {
  Gpu gpu;
  auto const name = [&gpu](DataType factor, DataType sum, Multiply multiply) -> std::string {
    auto const peak = peak_for(factor, sum, multiply, gpu);
    return peak ? cuda::name_of(*peak) : "";
  };
  gpu.major = 9, gpu.minor = 0;
  EXPECT_EQ(name(DataType::bf16, DataType::f32, Multiply::wgmma), "bf16 wgmma");
  EXPECT_EQ(name(DataType::bf16, DataType::f32, Multiply::mma), "bf16 mma");
  EXPECT_EQ(name(DataType::bf16, DataType::f32, Multiply::fma), "f32 fma");
  EXPECT_EQ(name(DataType::f16, DataType::f16, Multiply::half2), "f16 half2");
  EXPECT_EQ(name(DataType::tf32, DataType::f32, Multiply::wgmma), "tf32 wgmma");
  EXPECT_EQ(name(DataType::e5m2, DataType::f32, Multiply::wgmma), "e4m3 wgmma");
  EXPECT_EQ(name(DataType::u8, DataType::s32, Multiply::wgmma), "s8 wgmma");
  EXPECT_EQ(name(DataType::u8, DataType::s32, Multiply::dp4a), "s8 dp4a");
  EXPECT_EQ(name(DataType::f64, DataType::f64, Multiply::mma), "f64 mma");
  EXPECT_EQ(name(DataType::e4m3, DataType::f32, Multiply::mma), "") << "made of f16 there";
  gpu.major = 8, gpu.minor = 9;
  EXPECT_EQ(name(DataType::e4m3, DataType::f32, Multiply::mma), "e4m3 mma");
  EXPECT_EQ(name(DataType::bf16, DataType::f32, Multiply::wgmma), "");
  gpu.minor = 0;
  EXPECT_EQ(name(DataType::e4m3, DataType::f32, Multiply::mma), "");
}

TEST_F(InterleavedGpuBenchmark, SeesWhatTheKernelDidNotWrite) {
  unwritten_rows = 1;
  InterleavedResult const result = hold("f32");
  ASSERT_TRUE(result.sample.has_value());
  EXPECT_FALSE(result.sample->correct);
  EXPECT_NE(result.sample->complaint.find("nan, not "), std::string::npos) << result.sample->complaint;
}

TEST_F(InterleavedGpuBenchmark, TellsWhatThePeerRefuses) {
  InterleavedResult const result = hold("s8");
  ASSERT_TRUE(result.sample.has_value());
  EXPECT_TRUE(result.sample->correct) << result.sample->complaint;
  EXPECT_EQ(result.peers.at(0).refusal, "cuBLASLt has no algorithm for this: CUBLAS_STATUS_NOT_SUPPORTED");
}

TEST_F(InterleavedGpuBenchmark, TimesProductsOfTf32) {
  InterleavedResult const result = hold("tf32");
  PeerResult const& peer = result.peers.at(0);
  EXPECT_EQ(peer.refusal, "");
  EXPECT_EQ(peer.workspace_bytes, 2048) << "factors are cut to tf32";
  ASSERT_TRUE(peer.sample.has_value());
  EXPECT_TRUE(peer.sample->correct) << peer.sample->complaint;
}

TEST_F(InterleavedGpuBenchmark, SaysWhichProductsOfBytesThePeerHas) {
  constexpr DataType e4m3 = DataType::e4m3, e5m2 = DataType::e5m2, bf16 = DataType::bf16, u8 = DataType::u8;
  for (DataType const result : {bf16, DataType::f16, DataType::f32, e4m3}) {
    PeerResult const peer = of_peer("tn", e4m3, e4m3, result);
    EXPECT_EQ(peer.refusal, "") << name_of(result);
    EXPECT_EQ(peer.algorithms, 3) << name_of(result);
    EXPECT_EQ(peer.workspace_bytes, 1024) << name_of(result);
  }
  EXPECT_EQ(of_peer("tn", e5m2, e4m3, e5m2).refusal, "");
  EXPECT_EQ(of_peer("tn", e4m3, e4m3, bf16, 1).refusal, "");
  EXPECT_EQ(of_peer("nn", e4m3, e4m3, bf16).refusal,
            "cuBLASLt multiplies only K-major fp8 (--layout tn), not nn");
  EXPECT_EQ(of_peer("tn", e5m2, e5m2, bf16).refusal,
            "cuBLASLt multiplies e4m3 and e4m3, or e4m3 and e5m2, not e5m2 and e5m2");
  EXPECT_EQ(
      of_peer("tn", e4m3, e4m3, e5m2).refusal,
      "cuBLASLt stores products of e4m3 and e4m3 as f32, f16, bf16, e4m3, and e5m2 where a factor is e5m2, "
      "not as e5m2");
  EXPECT_EQ(of_peer("tn", e4m3, e4m3, e4m3, 1).refusal,
            "cuBLASLt does not support c of type e4m3; use --d-type bf16 or beta 0");
  EXPECT_EQ(of_peer("tn", u8, u8, DataType::s32).refusal,
            "cuBLASLt does not support u8; its only 8-bit integer type is s8");
  EXPECT_EQ(of_peer("tn", bf16, DataType::f16, bf16).refusal,
            "cuBLASLt requires operands of one type, not bf16 and f16");
  EXPECT_EQ(hold("u8").peers.at(0).refusal,
            "cuBLASLt does not support u8; its only 8-bit integer type is s8");
}

TEST_F(InterleavedGpuBenchmark, MultipliesFp8IntoEveryType) {
  constexpr Index m = 5, n = 3, k = 7;
  cuda::Current const current(0);
  for (DataType const type : {DataType::f32, DataType::bf16, DataType::e4m3}) {
    PeerProblem problem{"cublaslt", "tn", DataType::e4m3, m, n, k};
    problem.result = type;
    CublasLtPeer const peer(problem, 0);
    ASSERT_EQ(peer.refusal(), "");
    Tensor a(DataType::e4m3, Shape(m, k)), b(DataType::e4m3, Shape(n, k)), d(type, Shape(n, m));
    a.fill(0.5);
    b.fill(2);
    cuda::DeviceBuffer const on_device[] = {{0, 256}, {0, 256}, {0, 256}};
    cuda::copy_to_device(0, on_device[0].data(), a.data(), a.bytes(), nullptr);
    cuda::copy_to_device(0, on_device[1].data(), b.data(), b.bytes(), nullptr);
    peer.run(0, on_device[0].data(), on_device[1].data(), nullptr, on_device[2].data());
    cuda::copy_to_host(0, d.data(), on_device[2].data(), d.bytes(), nullptr);
    for (Index i = 0; i < d.size(); ++i) EXPECT_EQ(d.get(i), 7) << name_of(type);
  }
}

TEST_F(InterleavedGpuBenchmark, MultipliesBatchesByPointersAndByStrides) {
  Device const device = this_device(Backend::cuda, 1);
  cuda::Current const current(0);
  nets::Random random(1, 1);
  auto const subject = make_subject("gemm");
  Common common;
  common.types.all = "f32";
  Job const job = made_job(*subject, {12, 10, 8, 3}, common);
  GpuOperands const operands(*job.task, device, 2, 0, random);
  int const allocations = fake::allocations();
  for (bool const by_pointers : {true, false}) {
    PeerProblem problem{"cublaslt", "nn", DataType::f32, 12, 10, 8, 3};
    problem.beta = 0;
    problem.by_pointers = by_pointers;
    auto const peer = make_gpu_peer(problem, operands, 0);
    ASSERT_EQ(peer->refusal(), "");
    for (std::size_t set = 0; set < operands.sets(); ++set) {
      operands.poison_outputs(set);
      peer->run(0, set, nullptr);
      Verdict const verdict = verify_sample(*job.task, operands.download(set), 100, random);
      EXPECT_TRUE(verdict.correct) << by_pointers << ", set " << set << ": " << verdict.complaint;
    }
  }
  EXPECT_EQ(fake::allocations(), allocations);
}

TEST(Notes, KnowBatchesByPointers) {
  BoundEpilogue const epilogue(EpilogueText{}, epilogue::gemm_indices, false);
  GemmProblem problem;
  problem.a = Tensor(DataType::f32, Shape(5, 9, 16)).description();
  problem.b = Tensor(DataType::f32, Shape(5, 16, 8)).description();
  problem.d = Tensor(DataType::f32, Shape(5, 9, 8)).description();
  EXPECT_FALSE(notes_of(problem, epilogue, "nn", "").by_pointers);
  EXPECT_EQ(notes_of(problem, epilogue, "nn", "").label, "9x8x16x5 nn");
  problem.by_pointers = true;
  EXPECT_TRUE(notes_of(problem, epilogue, "nn", "").by_pointers);
  EXPECT_EQ(notes_of(problem, epilogue, "nn", "").label, "9x8x16x5 nn by pointers");
}

TEST(Sample, ComparesRowsAndColumnsOfAnyProblem) {
  auto const subject = make_subject("gemm");
  Common common;
  common.types.all = "f64";
  Job const job = made_job(*subject, {70, 3, 50, 4}, common);
  std::vector<Tensor> tensors;
  nets::Random random(1, 1);
  std::vector<void*> pointers;
  for (Slot const& slot : job.task->slots()) {
    tensors.emplace_back(slot.description);
    fill_random(tensors.back(), slot.name, {}, random);
    pointers.push_back(tensors.back().data());
  }
  job.task->prepare(this_device(Backend::reference), {})->run(pointers, nullptr);
  Verdict const right = verify_sample(*job.task, tensors, 100, random);
  EXPECT_TRUE(right.correct) << right.complaint;
  EXPECT_GE(right.elements, 2 * 100);
  tensors.back().set(tensors.back().size() - 1, 1e3);
  EXPECT_FALSE(verify_sample(*job.task, tensors, 100, random).correct);
}

}  // namespace
}  // namespace cosmati::cli
