// Problems of different sizes in one launch of the warp_specialized kernel, with tensor maps that another
// kernel binds to pointers; and the emulator's messages if one of that kernel's fences is missing.
#include "cosmati/gemm/group.h"
#include "cosmati/gemm/bind.h"
#include "tests/emulated/testing.h"
#include "tests/emulated/warp_specialized_case.h"

namespace cosmati {
namespace emulated {
namespace {

constexpr Along depth = Along::k;
constexpr GemmPolicy policy = policy_of<bf16>({});
using Source = TensorSource<bf16, depth, TensorMapOfProblem>;
using Traits = WarpSpecializedTraits<policy, Source, Source, f32, IdentityEpilogue<f32>,
                                     TensorDestination<bf16, depth, TensorMapOfProblem>>;
using Record = Traits::Params;

struct Problem {
  explicit Problem(Size const& its_size)
      : size(its_size),
        a(size.m, size.k, 1, depth, 8, 1, 1),
        b(size.n, size.k, 1, depth, 8, 0, 2),
        d(size.m, size.n, 1, depth, 8, 1, 3) {}

  // Makes tensor maps with the addresses of another problem.
  Record record(Problem& other) {
    Record record;
    record.m = size.m, record.n = size.n, record.k = size.k;
    auto const operand = [&](Matrix<bf16>& place, int outer, TensorBox const& box, TensorMapOfProblem& to) {
      if (size.k == 0) return;
      MatrixArguments matrix = place.arguments();
      matrix.data = other.d.arguments().data;
      to.bound.map = tensor_map<bf16>(matrix, depth, outer, size.k, 1, box.row, box.slice_rows);
    };
    operand(a, size.m, Traits::TileA::box, record.a);
    operand(b, size.n, Traits::TileB::box, record.b);
    MatrixArguments matrix = d.arguments();
    matrix.data = other.a.arguments().data;
    record.d.bound.map =
        tensor_map<bf16>(matrix, depth, size.m, size.n, 1, Traits::ToDestination::columns, tensor_store_rows);
    return record;
  }

  Size size;
  Matrix<bf16> a, b, d;
};

class Group {
 public:
  explicit Group(std::vector<Size> const& sizes) : image_(sizes.size()), records_(sizes.size()) {
    for (Size const& size : sizes) problems_.push_back(std::make_unique<Problem>(size));
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      Problem& problem = *problems_[i];
      image_[i] = problem.record(*problems_[0]);
      first_tile_.push_back(first_tile_.back() +
                            static_cast<int>(ceiling_divide(problem.size.m, policy.block_m) *
                                             ceiling_divide(problem.size.n, policy.block_n)));
      auto const bound = [&](Matrix<bf16>& matrix, bool exists = true) {
        auto const address = reinterpret_cast<unsigned long long>(matrix.arguments().data);
        bind_.value[3 * i + slots_++ % 3] = exists ? address : 0;
      };
      bound(problem.a, problem.size.k > 0);
      bound(problem.b, problem.size.k > 0);
      bound(problem.d);
    }
    Record const& first = image_.front();
    auto const offset = [&](TensorMapOfProblem const& map) {
      return static_cast<unsigned short>(reinterpret_cast<char const*>(&map) -
                                         reinterpret_cast<char const*>(&first));
    };
    bind_.image = image_.data();
    bind_.to = records_.data();
    bind_.record_bytes = static_cast<int>(sizeof(Record));
    bind_.slots = bind_.maps = 3;
    bind_.offset[0] = offset(first.a), bind_.offset[1] = offset(first.b), bind_.offset[2] = offset(first.d);
  }

  void bind() {
    emulator::launch_kernel<&bind_kernel<true>>({static_cast<int>(records_.size())}, bind_threads, 0, bind_,
                                                1);
  }
  void multiply(int blocks) {
    GroupArguments const group{records_.data(), first_tile_.data(), static_cast<int>(records_.size())};
    emulator::launch_kernel_clusters<&warp_specialized_kernel<Traits, GroupScheduler<Traits>>>(
        {blocks}, {1}, Traits::threads, sizeof(Traits::SharedStorage), group, 1);
  }

  void expect() {
    for (auto const& problem : problems_) {
      Size const& size = problem->size;
      std::string const text = text_of(size, {});
      for (int m = 0; m < size.m; ++m)
        for (int n = 0; n < size.n; ++n) {
          double sum = 0;
          for (int k = 0; k < size.k; ++k) sum += problem->a.value(0, m, k) * problem->b.value(0, n, k);
          double const right = static_cast<double>(convert<bf16>(sum));
          ASSERT_EQ(problem->d.value(0, m, n), right) << text << ": d(" << m << ", " << n << ')';
        }
      EXPECT_EQ(problem->d.trespasses(size.m, size.n, 1), 0) << text;
    }
  }
  std::vector<Record>& records() { return records_; }

 private:
  std::vector<std::unique_ptr<Problem>> problems_;
  std::vector<Record> image_, records_;
  std::vector<int> first_tile_{0};
  std::size_t slots_ = 0;
  BindParameters bind_;
};

std::vector<Size> const mixed{{130, 72, 200}, {1, 8, 8}, {64, 32, 0}, {3, 40, 64}, {65, 8, 72}, {1, 136, 72}};

TEST(Group, TilesOfAllProblemsAreSharedAmongTheBlocks) {
  for (int const blocks : {1, 3, 40}) {
    Group group(mixed);
    group.bind();
    group.multiply(blocks);
    group.expect();
  }
}

// Changes tensor maps like bind_kernel, but omits one fence.
struct Change {
  arch::TensorMap* map;
  void* address;
  bool releases;
};
template <int threads>
COSMATI_KERNEL(threads, 1)
change_map(COSMATI_PARAMETER Change change) {
  arch::replace_address(*change.map, change.address);
  if (change.releases) arch::release_maps();
}

TEST(Group, MapsThatAreNotReleased) {
  Group group({{64, 32, 64}});
  group.bind();
  arch::TensorMap& map = group.records().front().b.bound.map;
  void* const address = reinterpret_cast<void*>(map.word[1]);
  emulator::launch_kernel<&change_map<1>>({1}, 1, 0, Change{&map, address, false}, 1);
  EXPECT_SAYS(testing::report_of([&] { group.multiply(1); }),
              "whose tensor map a kernel has changed and not released");
  emulator::launch_kernel<&change_map<1>>({1}, 1, 0, Change{&map, address, true}, 1);
  group.multiply(1);
  group.expect();
}

TEST(Group, MapsThatAreNotAcquired) {
  // The kernel for a single problem takes the map as a launch parameter.
  Group group({{64, 32, 64}});
  group.bind();
  Record const& record = group.records().front();
  using One = WarpSpecializedTraits<policy, TensorSource<bf16, depth>, TensorSource<bf16, depth>, f32,
                                    IdentityEpilogue<f32>, TensorDestination<bf16>>;
  One::Params parameters;
  parameters.m = 64, parameters.n = 32, parameters.k = 64;
  parameters.a.map = record.a.bound.map;
  parameters.b.map = record.b.bound.map;
  parameters.d.map = record.d.bound.map;
  EXPECT_SAYS(testing::report_of([&] {
                emulator::launch_kernel_clusters<&warp_specialized_kernel<One>>(
                    {1}, {1}, One::threads, sizeof(One::SharedStorage), parameters, 1);
              }),
              "whose tensor map a kernel has changed; this thread has not acquired it since");
}

TEST(Group, AddressesThatNoMapHas) {
  Group group({{64, 32, 64}});
  group.bind();
  arch::TensorMap& map = group.records().front().a.bound.map;
  void* const odd = reinterpret_cast<void*>(map.word[1] + 8);
  EXPECT_SAYS(testing::report_of([&] {
                emulator::launch_kernel<&change_map<1>>({1}, 1, 0, Change{&map, odd, true}, 1);
              }),
              "which is null or not a multiple of 16");
}

}  // namespace
}  // namespace emulated
}  // namespace cosmati
