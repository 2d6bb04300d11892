// The launch interface: BLAS orders, rejected arguments, workspaces, callables that see (m, n) in any order.
#include "cosmati/gemm/launch.h"

#include "cosmati/gemm/simple.h"
#include "tests/emulated/gemm_case.h"

namespace cosmati::emulated {
namespace {

// An array with the layout of an order and a leading dimension.
struct Dense {
  Dense(Order at_order, int rows, int columns, int slack, int seed)
      : order(at_order), leading((order == Order::row_major ? columns : rows) + slack) {
    elements.assign(static_cast<std::size_t>(leading * (order == Order::row_major ? rows : columns)) + 16,
                    0.0f);
    for (std::size_t i = 0; i < elements.size(); ++i)
      elements[i] = static_cast<float>(static_cast<int>(i * 7 + static_cast<std::size_t>(seed)) % 5 - 2);
  }
  float* data() {
    auto const address = reinterpret_cast<std::size_t>(elements.data());
    return elements.data() + (16 - address % 16) % 16 / sizeof(float);
  }
  float& at(int i, int j) { return data()[order == Order::row_major ? i * leading + j : i + j * leading]; }

  Order order;
  int leading;
  std::vector<float> elements;
};

// 100 m + n, to detect a swap of m and n.
struct PlaceOfElement {
  float weight = 1;
  COSMATI_DEVICE float operator()(float sum, Index m, Index n) const {
    return sum + weight * static_cast<float>(100 * m + n);
  }
};

template <Orders orders, class Callable = simple::NoCallable, int alignment = 16>
void expect_simple(int m, int n, int k, int slack, Callable const& callable = {}) {
  using Gemm = SimpleGemm<float, orders, small_policy(MainLoop::double_buffered), Callable, alignment>;
  Dense a(orders.a, m, k, slack, 1), b(orders.b, k, n, slack, 2), d(orders.d, m, n, slack, 3);
  ASSERT_EQ(launch_gemm<Gemm>(Gemm::params({.m = m,
                                            .n = n,
                                            .k = k,
                                            .a = {a.data(), a.leading},
                                            .b = {b.data(), b.leading},
                                            .d = {d.data(), d.leading},
                                            .epilogue = callable})),
            LaunchStatus::success);
  int wrong = 0;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int l = 0; l < k; ++l) sum += a.at(i, l) * b.at(l, j);
      if constexpr (!is_same<Callable, simple::NoCallable>) sum = callable(sum, i, j);
      wrong += !(d.at(i, j) == sum);
    }
  EXPECT_EQ(wrong, 0);
}

template <Orders orders>
void expect_order() {
  expect_simple<orders>(36, 44, 20, 0);
  expect_simple<orders>(36, 44, 20, 4, PlaceOfElement{});
  expect_simple<orders, PlaceOfElement, 4>(33, 45, 19, 1);
}

TEST(LaunchGemm, OrdersOfBlas) {
  expect_order<NN>();
  expect_order<NT>();
  expect_order<TN>();
  expect_order<TT>();
}
TEST(LaunchGemm, OrdersOfC) {
  expect_order<all_row_major>();
  expect_order<Orders{Order::column_major, Order::row_major, Order::row_major}>();
}

TEST(LaunchGemm, NamedPoliciesOfEachType) {
  EXPECT_EQ((SimpleGemm<float, NN>::threads), 128);
  EXPECT_EQ((SimpleGemm<s8, TN, PolicyName::small>::policy.multiply), Multiply::dp4a);
  EXPECT_EQ((SimpleGemm<s8, TN, PolicyName::small>::SourceA::width), 16);
  EXPECT_EQ((SimpleGemm<f64, TN, PolicyName::small>::SourceA::width), 2);
  EXPECT_TRUE(
      (is_same<SimpleGemm<f16, NN>::Sum, float> && is_same<SimpleGemm<f16, NN>::Destination::Element, f16>));
}

class Refusals : public ::testing::Test {
 protected:
  using Gemm = SimpleGemm<float, all_row_major, small_policy(MainLoop::double_buffered, Multiply::fma, true)>;
  template <class Change>
  LaunchStatus status_after(Change const& change, Index batch = 1) {
    Gemm::Params params =
        Gemm::params({.m = 8, .n = 8, .k = 8, .a = {a_.data(), 8}, .b = {b_.data(), 8}, .d = {d_.data(), 8}});
    change(params);
    return launch_gemm<Gemm>(params, batch);
  }
  Dense a_{Order::row_major, 8, 8, 0, 1}, b_{Order::row_major, 8, 8, 0, 2}, d_{Order::row_major, 8, 8, 0, 3};
};

TEST_F(Refusals, OfWhatASourcePromises) {
  EXPECT_EQ(status_after([](Gemm::Params&) {}), LaunchStatus::success);
  EXPECT_EQ(status_after([](Gemm::Params& p) { p.a.row_stride = 9; }), LaunchStatus::misaligned);
  EXPECT_EQ(status_after([](Gemm::Params& p) { p.b.column_stride = 10; }), LaunchStatus::misaligned);
  EXPECT_EQ(status_after([](Gemm::Params& p) { p.b.row_stride = 2; }), LaunchStatus::misaligned);
  EXPECT_EQ(status_after([](Gemm::Params& p) { p.d.batch_stride = 1; }), LaunchStatus::misaligned);
  EXPECT_EQ(status_after([](Gemm::Params& p) { p.d.data = static_cast<float*>(p.d.data) + 1; }),
            LaunchStatus::misaligned);
}

TEST_F(Refusals, OfExtentsAndSplits) {
  EXPECT_EQ(status_after([](Gemm::Params& p) { p.m = -1; }), LaunchStatus::invalid);
  EXPECT_EQ(status_after([](Gemm::Params&) {}, -1), LaunchStatus::invalid);
  EXPECT_EQ(status_after([](Gemm::Params& p) { p.schedule.splits = 0; }), LaunchStatus::invalid);
  EXPECT_EQ(status_after([](Gemm::Params& p) { p.schedule.splits = 2; }),
            LaunchStatus::invalid);  // no workspace
  EXPECT_EQ(status_after([](Gemm::Params& p) { p.schedule.blocks = 2; }),
            LaunchStatus::invalid);  // needs partition split_k
  EXPECT_EQ(status_after([](Gemm::Params& p) { p.m = Index{1} << 40; }), LaunchStatus::invalid);
}

TEST_F(Refusals, ButNotOfEmptyProblems) {
  EXPECT_EQ(status_after([](Gemm::Params& p) { p.m = 0; }), LaunchStatus::success);
  EXPECT_EQ(status_after([](Gemm::Params& p) { p.n = 0, p.a.row_stride = 9; }), LaunchStatus::success);
  EXPECT_EQ(status_after([](Gemm::Params&) {}, 0), LaunchStatus::success);
}

// 4 tiles of 2 matrices; schedule_for(workspace) has slots for 64 threads with 16 sums each.
constexpr int of_matrix_m = 40, of_matrix_n = 36, of_batch = 2;
template <class Gemm, class Schedule>
void expect_within(Index bytes, Schedule const& schedule_for) {
  constexpr int m = of_matrix_m, n = of_matrix_n, k = 64, batch = of_batch;
  Dense a(Order::row_major, m * batch, k, 0, 1), b(Order::row_major, k * batch, n, 0, 2);
  Dense d(Order::row_major, m * batch, n, 0, 3);
  std::vector<unsigned char> memory(static_cast<std::size_t>(bytes) + 256 + 64,
                                    0xa5);  // uninitialized, with a guard
  auto const address = reinterpret_cast<std::size_t>(memory.data());
  unsigned char* const workspace = memory.data() + (256 - address % 256) % 256;
  typename Gemm::Params params = Gemm::params({.m = m,
                                               .n = n,
                                               .k = k,
                                               .a = {a.data(), k, m * k},
                                               .b = {b.data(), n, k * n},
                                               .d = {d.data(), n, m * n}});
  params.schedule = schedule_for(workspace);
  ASSERT_EQ(launch_gemm<Gemm>(params, batch), LaunchStatus::success);
  for (unsigned char const* byte = workspace + bytes; byte != memory.data() + memory.size(); ++byte)
    ASSERT_EQ(*byte, 0xa5);
  for (int i = 0; i < m * batch; ++i)
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int l = 0; l < k; ++l) sum += a.at(i, l) * b.at(i / m * k + l, j);
      ASSERT_EQ(d.at(i, j), sum) << i << " " << j;
    }
}

TEST(LaunchGemm, SplitsNeedNoMoreThanTheWorkspaceTheyAskFor) {
  using Gemm = SimpleGemm<float, all_row_major, small_policy(MainLoop::multistage, Multiply::fma, true)>;
  constexpr int m = of_matrix_m, n = of_matrix_n, splits = 3, batch = of_batch;
  EXPECT_EQ(gemm_workspace_bytes<Gemm>(m, n, batch, 1), 0);
  // All partial sums of a tile but one wait to be added: 16 flags in 256 bytes.
  Index const bytes = gemm_workspace_bytes<Gemm>(m, n, batch, splits);
  EXPECT_EQ(bytes, 256 + 8 * (splits - 1) * 64 * 16 * 4);
  expect_within<Gemm>(bytes,
                      [](void* workspace) { return split_schedule<Gemm>(workspace, m, n, batch, splits); });
}

TEST(LaunchGemm, StreamedStepsNeedASlotForEachBlock) {
  constexpr GemmPolicy policy = [] {
    GemmPolicy streamed = small_policy(MainLoop::multistage);
    streamed.partition = Partition::stream_k;
    return streamed;
  }();
  using Gemm = SimpleGemm<float, all_row_major, policy>;
  Index const bytes = stream_workspace_bytes<Gemm>(5);
  EXPECT_EQ(bytes, 256 + 5 * 64 * 16 * 4);
  expect_within<Gemm>(bytes, [](void* workspace) { return stream_schedule<Gemm>(workspace, 5); });
}

TEST(LaunchGemm, ABatchOfMoreThanAGridHolds) {
  constexpr GemmPolicy one_warp = [] {
    GemmPolicy policy = small_policy(MainLoop::double_buffered);
    policy.block_m = policy.warp_m;
    return policy;
  }();
  using Gemm = SimpleGemm<float, all_row_major, one_warp, simple::NoCallable, 4>;
  constexpr int batch = 65535 + 3;
  std::vector<float> a(batch), d(batch);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i);
  float const two = 2;
  Gemm::Params const params =
      Gemm::params({.m = 1, .n = 1, .k = 1, .a = {a.data(), 1, 1}, .b = {&two, 1, 0}, .d = {d.data(), 1, 1}});
  ASSERT_EQ(launch_gemm<Gemm>(params, batch), LaunchStatus::success);
  int wrong = 0;
  for (std::size_t i = 0; i < a.size(); ++i) wrong += !(d[i] == 2 * a[i]);
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace cosmati::emulated
