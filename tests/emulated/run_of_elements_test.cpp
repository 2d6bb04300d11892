// Runs of any width are moved by accesses of power-of-two size, and nothing next to them is touched.
#include <array>

#include "cosmati/primitive/access.h"
#include "tests/emulated/testing.h"

namespace cosmati::emulated {
namespace {

template <class Element, int width>
COSMATI_KERNEL(1, 1)
copy_run(COSMATI_PARAMETER PrimitiveParameters params) {
  float run[width];
  Elements<Element>::load(params, params.tensor[0], ContiguousRange{0, width}, run);
  Elements<Element>::store(params.tensor[1], ContiguousRange{0, width}, run);
}

// Six 16-bit elements must not be one vector, since no compiler supports its alignment of 12 bytes, nor six
// 32-bit elements two vectors of four.
template <class Element, int width>
void expect_copy() {
  struct alignas(16) Memory {
    std::array<Element, width + 16> element;
  };
  Memory from, to;
  for (std::size_t i = 0; i < from.element.size(); ++i) {
    from.element[i] = convert<Element>(static_cast<double>(i) + 1);
    to.element[i] = convert<Element>(-1.0);
  }
  PrimitiveParameters params;
  params.tensor[0].data = from.element.data();
  params.tensor[1].data = to.element.data();
  emulator::launch_kernel<copy_run<Element, width>>({1}, 1, 0, params);
  for (std::size_t i = 0; i < to.element.size(); ++i)
    EXPECT_EQ(static_cast<double>(to.element[i]), i < width ? static_cast<double>(i) + 1 : -1.0)
        << width << " of " << sizeof(Element) << " bytes, element " << i;
}
template <class Element>
void expect_copies() {
  expect_copy<Element, 1>();
  expect_copy<Element, 3>();
  expect_copy<Element, 6>();
  expect_copy<Element, 8>();
  expect_copy<Element, 10>();
  expect_copy<Element, 12>();
  expect_copy<Element, 20>();
}

TEST(RunOfElements, HasAnyWidth) {
  expect_copies<s8>();
  expect_copies<f16>();
  expect_copies<bf16>();
  expect_copies<f32>();
  expect_copies<f64>();
}

}  // namespace
}  // namespace cosmati::emulated
