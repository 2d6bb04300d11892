// The emulator's convolutions of f32.
#include "src/backend/emulator/catalogue/conv/convolution_catalogue.h"

namespace cosmati::emulator {
namespace {

template <MainLoop main_loop>
void add(KernelTable& table) {
  constexpr GemmPolicy policy = emulated_policy(main_loop, Multiply::fma);
  constexpr auto stepwise = DepthDigits::stepwise;
  add_all_widths<policy, DataType::f32, f32, f32>(table);
  // Loads single elements of a along m and runs of b along n; each step is one tap.
  add_product<policy, WindowSource<f32, Along::mn, 1, stepwise, true>,
              WindowSource<f32, Along::mn, 4, stepwise, false>, f32>(
      table, {DataType::f32, Along::mn, 1, true, true}, {DataType::f32, Along::mn, 4, true, false});
}

}  // namespace

void add_products_f32(KernelTable& table) {
  add<MainLoop::double_buffered>(table), add<MainLoop::multistage>(table);
}

}  // namespace cosmati::emulator
