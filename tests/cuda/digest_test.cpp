// The digest that bench reports for a problem covers every kernel that the problem runs: the fake driver
// prepares it with only these kernels.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "cli/bench/provenance.h"
#include "cli/options/placement.h"
#include "cli/options/problem_options.h"
#include "cli/options/shared_options.h"
#include "cli/options/sizes.h"
#include "cli/output/text.h"
#include "cli/verbs/run_job.h"
#include "src/jit/cache.h"
#include "src/jit/nvrtc.h"
#include "tests/cuda/fake_libcuda.h"

namespace cosmati::cli {
namespace {

[[maybe_unused]] int const chosen =
    setenv("COSMATI_LIBCUDA", COSMATI_FAKE_LIBCUDA, 1) + setenv("COSMATI_CACHE", COSMATI_TEST_CACHE, 1);

struct Bench {
  std::unique_ptr<Subject> subject;
  Common common;
  Job job;
  PlanOptions options;

  Bench(std::unique_ptr<Subject> of, std::string const& words) : subject(std::move(of)) {
    SizeRequest size;
    Placement placement;
    std::string json;
    parse_problem(split(words, ' '), [&](CLI::App& command) {
      Options declared(command);
      add_size_options(declared, *subject, size);
      add_placement_options(declared, placement);
      subject->add_parameters(declared);
      add_shared_options(declared, common, "bench", subject.get(), &json);
    });
    job = made_job(*subject, requested_sizes(*subject, size).front(), common);
    place(*job.task, placement);
    options = plan_options(*subject, common);
  }
};

class Digest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!jit::nvrtc_available()) GTEST_SKIP() << jit::nvrtc_description();
    fake::reset();
  }
};

void expect_covers(std::unique_ptr<Subject> subject, std::string const& words) {
  SCOPED_TRACE(subject->name() + ' ' + words);
  Bench const bench(std::move(subject), words);
  Device const device = this_device(Backend::cuda, 1);
  auto const composition = bench.job.task->compose(device, bench.options);
  ASSERT_TRUE(composition.has_value());
  fake::reset();
  auto const nothing = [](fake::Launch const&) {};
  fake::set_kernel(jit::kernel_cache().get(composition->source).lowered_name, nothing);
  for (jit::Source const& pass : composition->passes)
    fake::set_kernel(jit::kernel_cache().get(pass).lowered_name, nothing);
  EXPECT_NO_THROW((void)bench.job.task->prepare(device, bench.options));
  EXPECT_EQ(kernel_digest(*bench.job.task, device, bench.options).size(), 24U);
}

TEST_F(Digest, CoversEveryKernelOfAProduct) {
  // multistage, since warp_specialized would request a tensor map, which the fake driver does not support.
  expect_covers(make_subject("gemm"), "--size 256x256x256 --type bf16 --layout tn");
  expect_covers(make_subject("gemm"), "--size 64x64x16384 --type bf16 --layout tn");
  expect_covers(make_subject("gemm"),
                "--size 4097x4096x4098 --type bf16 --layout tn --policy operands=repacked");
  expect_covers(make_subject("gemm"),
                "--size 128x128x128x16 --type bf16 --layout tn --by-pointers --kernel multistage");
  expect_covers(make_subject("gemm"),
                "--group 2x64x64x64,32x32x64 --type bf16 --layout tn --kernel multistage");
}

TEST_F(Digest, CoversEveryKernelOfAConvolution) {
  for (char const* words :
       {"--size 64x3x224x224x64x7x7 --stride 2 --pad 3 --type f16 --layout nhwc",
        "--size 64x64x56x56x64x3x3 --pad 1 --type f16 --layout nhwc --direction filter",
        "--size 64x128x56x56x128x3x3 --stride 2 --pad 1 --type f16 --layout nhwc --direction data",
        "--size 64x64x56x56x64x3x3 --pad 1 --type f32 --layout nchw",
        "--size 64x32x112x112x32x3x3 --pad 1 --groups 32 --type f16 --layout nhwc --direction filter",
        "--size 64x256x14x14x256x1x1 --type f32 --layout nchw --direction filter"})
    expect_covers(make_subject("conv"), words);
  for (char const* algorithm : {"winograd", "unroll_gemm", "direct_tiled", "implicit_gemm"})
    expect_covers(make_subject("conv"),
                  std::string("--size 4x16x28x28x16x3x3 --pad 1 --type f32 --algorithm ") + algorithm);
}

TEST_F(Digest, CoversEveryKernelOfAnotherOperation) {
  expect_covers(make_subject("softmax"), "--size 1024x131072 --type f16");
  expect_covers(make_subject("batchnorm"), "--size 64x256x56x56 --training --type f16 --layout nhwc");
  expect_covers(make_subject("reduce"), "--shape 65536x1024 --axes 0 --type f32");
  expect_covers(make_subject("cross-entropy"), "--size 65536x1000 --type f32");
  expect_covers(make_subject("pool"), "--size 64x256x56x56 --direction backward --type f16");
}

TEST_F(Digest, IsThatOfTheKernelsAndOfThePlan) {
  Device device = this_device(Backend::cuda, 1);
  auto const of = [&](std::string const& words) {
    Bench const bench(make_subject("gemm"), words);
    return kernel_digest(*bench.job.task, device, bench.options);
  };
  std::string const plain = of("--size 256x256x256 --type bf16");
  EXPECT_EQ(of("--size 256x256x256 --type bf16"), plain);
  EXPECT_NE(of("--size 256x256x256 --type f16"), plain);
  EXPECT_NE(of("--size 256x256x256 --type bf16 --kernel multistage"), plain);
  EXPECT_NE(of("--size 256x256x256 --type bf16 --policy partition=split_k"), plain);
  device.backend = Backend::reference;
  EXPECT_EQ(of("--size 256x256x256 --type bf16"), "") << "nothing is compiled";
}

}  // namespace
}  // namespace cosmati::cli
