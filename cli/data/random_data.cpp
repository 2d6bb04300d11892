// Random data for verification and measurement.
#include "cli/data/random_data.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "cli/operations/subject.h"

namespace cosmati::cli {
namespace {

double draw_value(DataType type, bool positive, DataKind const& kind, nets::Random& random) {
  bool const unsigned_type = type == DataType::u8;
  if (kind.small_integers) {
    auto const value = static_cast<double>(draw_between(random, positive ? 1 : -3, positive ? 4 : 3));
    return unsigned_type ? std::fabs(value) : value;
  }
  if (positive) return random.uniform(0.5, 1.5);
  double const value = random.normal() * (is_integer(type) ? 20 : 1);
  return unsigned_type ? std::fabs(value) : value;
}

}  // namespace

bool is_positive(std::string const& slot) {
  return slot == "variance" || slot == "second" || slot == "numbers" || slot == "scaling";
}

void fill_random(Tensor& tensor, std::string const& slot, DataKind const& kind, nets::Random& random) {
  bool const labels = slot == "labels";
  bool const positive = is_positive(slot);
  Index const size = tensor.size();
  for (Index i = 0; i < size; ++i)
    tensor.set(i, labels ? static_cast<double>(draw_between(random, 0, kind.classes - 1))
                         : draw_value(tensor.type(), positive, kind, random));
}

Layout with_gaps(Layout const& layout, std::function<Index()> const& gap) {
  std::array<int, max_rank> order{};
  for (int d = 0; d < max_rank; ++d) order[static_cast<std::size_t>(d)] = d;
  std::stable_sort(order.begin(), order.begin() + layout.rank(),
                   [&](int a, int b) { return layout.stride[a] < layout.stride[b]; });
  Layout result = layout;
  Index step = 1;
  for (int i = 0; i < layout.rank(); ++i) {
    int const d = order[static_cast<std::size_t>(i)];
    if (layout.stride[d] == 0) continue;
    result.stride[d] = step;
    step = step * layout.extent(d) + gap();
  }
  return result;
}

}  // namespace cosmati::cli
