// Data that expose incorrect kernels that pass with normally distributed numbers.
#include "cli/data/hard_data.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cli/data/random_data.h"
#include "cli/operations/subject.h"

namespace cosmati::cli {
namespace {

struct Exponents {
  int smallest, largest;  // exponents of the magnitudes to generate
  int denormal;           // exponent of a subnormal number
};

// Transforms of f16 data (Winograd) multiply values by up to 100; the largest f16 is 65504.
Exponents exponents_of(DataType type) {
  switch (type) {
    case DataType::f64: return {-40, 40, -1060};
    case DataType::f32:
    case DataType::tf32:
    case DataType::bf16: return {-40, 40, -130};
    case DataType::f16: return {-14, 9, -20};
    case DataType::e4m3: return {-6, 7, -8};
    case DataType::e5m2: return {-14, 9, -16};
    case DataType::s32: return {0, 20, 0};
    default: return {0, 7, 0};
  }
}

class HardFill {
 public:
  HardFill(Tensor& tensor, std::string const& slot, double largest, nets::Random& random)
      : tensor_(tensor),
        random_(random),
        range_(exponents_of(tensor.type())),
        positive_(is_positive(slot) || tensor.type() == DataType::u8) {
    range_.largest = std::min(range_.largest, std::ilogb(largest));
  }

  void magnitudes() {
    each([&](Index) { return signed_magnitude(); });
  }
  void huge() { set(place(), (random_.uniform() < 0.5 ? -1 : 1) * std::ldexp(1.0, range_.largest)); }
  void denormals() {
    double const step = std::ldexp(1.0, range_.denormal);
    for (Index i = draw_between(random_, 0, 1); i < tensor_.size(); i += 2)
      set(i, random_.uniform(-4, 4) * step);
  }
  void nonfinite() {
    if (random_.uniform() < 0.25) {
      int const axis = any_axis();
      Index const first = place(), stride = dense_stride(axis), extent = tensor_.shape()[axis];
      double const value = special();
      Index const start = first - first / stride % extent * stride;
      for (Index i = 0; i < extent; ++i) set(start + i * stride, value);
    } else {
      for (Index count = draw_between(random_, 1, 3); count > 0; --count) set(place(), special());
    }
  }
  void constant() {
    int const axis = any_axis();
    Index const stride = dense_stride(axis), extent = tensor_.shape()[axis];
    for (Index i = 0; i < tensor_.size(); ++i)
      if (i / stride % extent == 0) {
        double const value = random_.normal() * std::ldexp(1.0, std::min(range_.largest, 10));
        for (Index j = 0; j < extent; ++j) set(i + j * stride, value);
      }
  }
  // The sign changes with every index, so that rows, columns and windows of even length sum to zero.
  void cancellation() {
    double const large = std::ldexp(random_.uniform(1, 2), std::min(range_.largest, 16) - 1);
    each([&](Index i) {
      Index rest = i, sum = 0;
      for (int d = tensor_.shape().rank - 1; d >= 0; --d) {
        sum += rest % tensor_.shape()[d];
        rest /= tensor_.shape()[d];
      }
      return (sum % 2 == 0 ? large : -large) + (i % 3 == 0 ? random_.normal() : 0);
    });
  }

 private:
  Index place() { return draw_between(random_, 0, tensor_.size() - 1); }
  int any_axis() { return static_cast<int>(draw_between(random_, 0, tensor_.shape().rank - 1)); }
  Index dense_stride(int axis) const {
    Index stride = 1;
    for (int d = tensor_.shape().rank - 1; d > axis; --d) stride *= tensor_.shape()[d];
    return stride;
  }
  double signed_magnitude() {
    double const value = std::exp2(random_.uniform(range_.smallest, range_.largest));
    return random_.uniform() < 0.5 ? -value : value;
  }
  double special() {
    double const infinity = std::numeric_limits<double>::infinity();
    return draw_from<double>(random_, {infinity, -infinity, std::nan("")});
  }
  void set(Index i, double value) { tensor_.set(i, positive_ ? std::fabs(value) : value); }
  template <class Value>
  void each(Value const& value) {
    for (Index i = 0; i < tensor_.size(); ++i) set(i, value(i));
  }

  Tensor& tensor_;
  nets::Random& random_;
  Exponents range_;
  bool positive_;
};

}  // namespace

char const* name_of(HardData kind) {
  switch (kind) {
    case HardData::none: return "normal";
    case HardData::magnitudes: return "mixed magnitudes";
    case HardData::huge: return "one huge element";
    case HardData::denormals: return "denormals";
    case HardData::nonfinite: return "NaN and infinities";
    case HardData::constant: return "constant rows";
    case HardData::cancellation: break;
  }
  return "exact cancellation";
}

HardData draw_hard_data(nets::Random& random) {
  return static_cast<HardData>(draw_between(random, static_cast<Index>(HardData::magnitudes),
                                            static_cast<Index>(HardData::cancellation)));
}

void fill_hard(Tensor& tensor, std::string const& slot, HardData kind, double largest, nets::Random& random) {
  if (tensor.size() == 0) return;
  HardFill fill(tensor, slot, largest, random);
  switch (kind) {
    case HardData::none: return;
    case HardData::magnitudes: return fill.magnitudes();
    case HardData::huge: return fill.huge();
    case HardData::denormals: return fill.denormals();
    case HardData::nonfinite: return random.uniform() < 0.7 ? fill.nonfinite() : void();
    case HardData::constant: return fill.constant();
    case HardData::cancellation: return fill.cancellation();
  }
}

}  // namespace cosmati::cli
