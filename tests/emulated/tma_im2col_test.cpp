// TMA's im2col mode: the order of pixels, elements outside the image, and rejected arguments.
#include "cosmati/arch/tma_im2col.h"

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "cosmati/arch/cluster.h"
#include "cosmati/arch/thread.h"
#include "cosmati/conv/tma_im2col.h"
#include "cosmati/tile/matrix_descriptor.h"
#include "tests/emulated/testing.h"

namespace cosmati {
namespace {

struct alignas(64) WindowCopy {
  arch::TensorMap map;
  unsigned char* seen;  // shared memory after the copy
  int at[4] = {}, offset[2] = {}, bytes = 0;
  bool by_tiles = false;  // uses the map as if it were for tiles
};
struct WindowStorage {
  alignas(1024) unsigned char box[8192];
  arch::Barrier full;
};

template <class Params>
COSMATI_KERNEL(32, 1)
copy_windows_kernel(COSMATI_PARAMETER Params params) {
  auto& storage = arch::shared_storage<WindowStorage>();
  int const at[4] = {params.at[0], params.at[1], params.at[2], params.at[3]};
  int const offset[2] = {params.offset[0], params.offset[1]};
  if (arch::thread() == 0) {
    arch::init(storage.full, 1);
    arch::publish_barriers();
    arch::arrive_expecting(storage.full, params.bytes);
    if (params.by_tiles)
      arch::copy_tile(storage.box, params.map, storage.full, at);
    else
      arch::copy_windows(storage.box, params.map, storage.full, at, offset);
  }
  arch::block_barrier();
  arch::wait(storage.full, 0);
  for (int i = arch::thread(); i < params.bytes; i += 32) params.seen[i] = storage.box[i];
}

// Images of 32-bit numbers that encode their positions, starting at 1; 8 channels, `channels` of which exist.
struct Images {
  static constexpr int pitch = 8;
  std::vector<unsigned> values;
  emulator::WindowedTensor tensor;
  Images(int images, int height, int width, int channels = 8)
      : values(static_cast<std::size_t>(images * height * width * pitch + 4)) {
    tensor.element_bytes = 4;
    int const extent[4] = {channels, width, height, images};
    for (int i = 0; i < 4; ++i) tensor.extent[i] = extent[i];
    tensor.stride[1] = pitch * 4, tensor.stride[2] = tensor.stride[1] * width;
    tensor.stride[3] = tensor.stride[2] * height;
    auto const begin = reinterpret_cast<std::uintptr_t>(values.data());
    tensor.address = reinterpret_cast<void*>((begin + 15) / 16 * 16);
    auto* const first = static_cast<unsigned*>(tensor.address);
    for (int i = 0; i < images * height * width * pitch; ++i)
      first[i] = i % pitch < channels ? static_cast<unsigned>(i / pitch + 1 + 1000 * (i % pitch)) : 0xdead;
    tensor.channels = 8;
    tensor.swizzle_bytes = 32;
  }
  void corners(int lower_column, int lower_row, int upper_column, int upper_row) {
    tensor.lower[0] = lower_column, tensor.lower[1] = lower_row;
    tensor.upper[0] = upper_column, tensor.upper[1] = upper_row;
  }
  // Channel `channel` of each window.
  std::vector<unsigned> copy(int windows, std::vector<int> const& at, std::vector<int> const& offset,
                             int channel = 0) {
    tensor.windows = windows;
    std::vector<unsigned char> seen(8192);
    WindowCopy copy{emulator::encode_tensor_map(tensor), seen.data(), {}, {}, windows * 32};
    for (std::size_t i = 0; i < 4; ++i) copy.at[i] = at[i];
    for (std::size_t i = 0; i < 2; ++i) copy.offset[i] = offset[i];
    emulator::launch_kernel<copy_windows_kernel<WindowCopy>>({1}, 32, sizeof(WindowStorage), copy);
    std::vector<unsigned> result(static_cast<std::size_t>(windows));
    for (int i = 0; i < windows; ++i)
      std::memcpy(&result[static_cast<std::size_t>(i)],
                  &seen[static_cast<std::size_t>(
                      swizzled(static_cast<unsigned>(i * 32 + channel * 4), Swizzle::bytes32))],
                  4);
    return result;
  }
};
using Values = std::vector<unsigned>;

// As documented for the H100 (PTX ISA 5.5.4): corners from -1 to 2, of two images of 4x4 pixels.
TEST(WindowCopy, GoesOnInTheNextRowAndImage) {
  Images images(2, 4, 4);
  images.corners(-1, -1, -1, -1);
  EXPECT_EQ(images.copy(16, {0, 2, 1, 0}, {0, 0}),
            (Values{7, 0, 9, 10, 11, 0, 0, 0, 0, 0, 17, 18, 19, 0, 21, 22}));
  EXPECT_EQ(images.copy(16, {0, -1, -1, 0}, {1, 1}),
            (Values{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}));
  EXPECT_EQ(images.copy(4, {0, -1, -1, 0}, {2, 1}), (Values{2, 3, 4, 0}));
}

// Each of two blocks copies four windows to both.
template <class Params>
COSMATI_KERNEL(32, 1)
copy_windows_to_both_kernel(COSMATI_PARAMETER Params params) {
  auto& storage = arch::shared_storage<WindowStorage>();
  int const rank = arch::block_of_cluster(), half = params.bytes / 2;
  if (arch::thread() == 0) {
    arch::init(storage.full, 1);
    arch::publish_barriers();
    arch::arrive_expecting(storage.full, params.bytes);
  }
  arch::cluster_arrive();
  arch::cluster_wait();
  if (arch::thread() == 0) {
    int const at[4] = {0, 4 * rank, 0, 0}, offset[2] = {0, 0};
    arch::copy_windows_to_blocks(storage.box + rank * half, params.map, storage.full, at, offset, 3);
  }
  arch::wait(storage.full, 0);
  for (int i = arch::thread(); i < params.bytes; i += 32)
    params.seen[rank * params.bytes + i] = storage.box[i];
  arch::cluster_arrive();
  arch::cluster_wait();
}

TEST(WindowCopy, ReachesAllBlocksOfACluster) {
  Images images(1, 1, 8);
  images.tensor.windows = 4;
  std::vector<unsigned char> seen(2 * 8 * 32);
  WindowCopy const copy{emulator::encode_tensor_map(images.tensor), seen.data(), {}, {}, 8 * 32};
  emulator::launch_kernel_clusters<copy_windows_to_both_kernel<WindowCopy>>({2}, {2}, 32,
                                                                            sizeof(WindowStorage), copy);
  for (unsigned block = 0; block < 2; ++block)
    for (unsigned window = 0; window < 8; ++window) {
      unsigned value = 0;
      std::memcpy(&value,
                  &seen[block * 8 * 32 + static_cast<std::size_t>(swizzled(window * 32, Swizzle::bytes32))],
                  4);
      EXPECT_EQ(value, window + 1) << "block " << block;
    }
}

TEST(WindowCopy, StepsFromWindowToWindow) {
  Images images(2, 5, 6);
  images.corners(-1, 0, -2, 0);  // columns -1, 1, 3; rows 0, 3
  images.tensor.step[0] = 2, images.tensor.step[1] = 3;
  EXPECT_EQ(images.copy(9, {0, 1, 0, 0}, {1, 0}), (Values{3, 5, 19, 21, 23, 31, 33, 35, 49}));
}

TEST(WindowCopy, WhatLiesBeyondTheLastImageOrChannelIsZero) {
  Images images(1, 2, 2, 5);
  EXPECT_EQ(images.copy(8, {0, 1, 0, 0}, {0, 0}), (Values{2, 3, 4, 0, 0, 0, 0, 0}));
  EXPECT_EQ(images.copy(8, {0, 0, 0, 0}, {0, 0}, 4), (Values{4001, 4002, 4003, 4004, 0, 0, 0, 0}));
  EXPECT_EQ(images.copy(8, {0, 0, 0, 0}, {0, 0}, 5), Values(8));
  EXPECT_EQ(images.copy(8, {0, 0, 0, 3}, {0, 0}), Values(8));
}

TEST(WindowCopy, StartsInsideTheCornersAndOffsetsAreSmall) {
  Images images(2, 4, 4);
  images.corners(-1, -1, -1, -1);
  auto const report = [&](std::vector<int> const& at, std::vector<int> const& offset) {
    return testing::report_of([&] { images.copy(4, at, offset); });
  };
  EXPECT_EQ(report({0, 0, 0, 0}, {255, 0}), "");
  EXPECT_SAYS(report({0, 3, 0, 0}, {0, 0}),
              "copies a box whose first corner is at column 3; the map's are at -1 to 2 by 1");
  EXPECT_SAYS(report({0, 0, -2, 0}, {0, 0}),
              "whose first corner is at row -2; the map's are at -1 to 2 by 1");
  EXPECT_SAYS(report({2, 0, 0, 0}, {0, 0}),
              "whose first element is 2, of 4 bytes; expected multiples of 16 bytes");
  EXPECT_SAYS(report({0, 0, 0, 0}, {0, 256}),
              "with an offset of 256 from the corner's row; valid values: 0 to 255");
  images.tensor.step[0] = 3;
  EXPECT_SAYS(report({0, 0, 0, 0}, {0, 0}),
              "whose first corner is at column 0; the map's are at -1 to 2 by 3");
}

template <class Params>
COSMATI_KERNEL(32, 1)
store_windows_kernel(COSMATI_PARAMETER Params params) {
  auto& storage = arch::shared_storage<WindowStorage>();
  int const at[4] = {params.at[0], params.at[1], params.at[2], params.at[3]};
  for (int i = arch::thread(); i < params.bytes; i += 32)
    storage.box[swizzled(static_cast<unsigned>(i), Swizzle::bytes32)] =
        static_cast<unsigned char>(i / 32 + 1);
  arch::publish_to_async();
  arch::warp_barrier();
  if (arch::thread() != 0) return;
  arch::store_windows(params.map, storage.box, at);
  arch::commit_stores();
  arch::wait_stores<0>();
}

// The pixels of a phase: every other one of a row, and of the rows; the last of 16 windows lie beyond the
// last image. Window i is stored as bytes i + 1.
TEST(WindowStore, WritesThePixelsThatExist) {
  Images images(2, 4, 6);
  for (auto const& [stride, extent] : {std::pair<int, int>{1, 3}, {2, 2}}) {
    images.tensor.extent[stride] = extent;
    images.tensor.stride[stride] *= 2;
  }
  images.tensor.windows = 16;
  WindowCopy store{emulator::encode_tensor_map(images.tensor), nullptr, {0, 1, 0, 0}, {}, 16 * 32};
  std::vector<unsigned> const before = images.values;
  emulator::launch_kernel<store_windows_kernel<WindowCopy>>({1}, 32, sizeof(WindowStorage), store);
  auto const* const first = static_cast<unsigned const*>(images.tensor.address);
  auto const* const old = before.data() + (first - images.values.data());
  for (int image = 0; image < 2; ++image)
    for (int row = 0; row < 4; ++row)
      for (int column = 0; column < 6; ++column) {
        int const at = ((image * 4 + row) * 6 + column) * Images::pitch;
        int const window = (image * 2 + row / 2) * 3 + column / 2;
        bool const stored = row % 2 == 0 && column % 2 == 0 && window >= 1;
        for (int channel = 0; channel < 8; ++channel)
          EXPECT_EQ(first[at + channel],
                    stored ? static_cast<unsigned>(window) * 0x01010101u : old[at + channel])
              << image << ' ' << row << ' ' << column << ' ' << channel;
      }
}

struct alignas(64) TapStore {
  TapArguments d;
  int m = 0, n = 0;
};

// A box of 16 filters by 32 channels: element (row, column) is 100 * row + column.
template <class Params>
COSMATI_KERNEL(32, 1)
store_taps_kernel(COSMATI_PARAMETER Params params) {
  auto& storage = arch::shared_storage<WindowStorage>();
  for (int i = arch::thread(); i < 16 * 32; i += 32)
    arch::store(storage.box + tensor_store_offset(i / 32, i % 32, 32, 2),
                static_cast<unsigned short>(i / 32 * 100 + i % 32));
  arch::publish_to_async();
  arch::warp_barrier();
  if (arch::thread() != 0) return;
  store_box<Along::k>(params.d.map, storage.box, params.d.coordinates(0), params.m, params.n);
  arch::commit_stores();
  arch::wait_stores<0>();
}

// dw of 20 filters by 3 taps by 40 channels, each of which the product pads to 64: the second box of the
// second tap has 8 channels that exist, and the second box of filters 4.
TEST(TapStore, WritesTheChannelsOfOneTap) {
  constexpr int filters = 20, taps = 3, channels = 40, none = 9999;
  std::vector<unsigned short> dw(filters * taps * channels + 8, none);
  auto* const first =
      reinterpret_cast<unsigned short*>((reinterpret_cast<std::size_t>(dw.data()) + 15) / 16 * 16);
  TapStore store;
  store.d.map = emulator::encode_tensor_map({.address = first,
                                             .rank = 3,
                                             .element_bytes = 2,
                                             .extent = {channels, filters, taps},
                                             .stride = {0, taps * channels * 2, channels * 2},
                                             .box = {32, 16, 1},
                                             .swizzle_bytes = 64});
  store.d.channels = Divisor(64);
  store.m = 16, store.n = 64 + 32;
  emulator::launch_kernel<store_taps_kernel<TapStore>>({1}, 32, sizeof(WindowStorage), store);
  for (int filter = 0; filter < filters; ++filter)
    for (int tap = 0; tap < taps; ++tap)
      for (int channel = 0; channel < channels; ++channel) {
        bool const stored = filter >= 16 && tap == 1 && channel >= 32;
        EXPECT_EQ(first[(filter * taps + tap) * channels + channel],
                  stored ? (filter - 16) * 100 + channel - 32 : none)
            << filter << ' ' << tap << ' ' << channel;
      }
}

TEST(WindowCopy, MapsAreForOneMode) {
  Images images(1, 4, 4);
  images.tensor.windows = 4;
  std::vector<unsigned char> seen(8192);
  WindowCopy copy{emulator::encode_tensor_map(images.tensor), seen.data(), {}, {}, 128, true};
  auto const report = [&] {
    return testing::report_of([&] {
      emulator::launch_kernel<copy_windows_kernel<WindowCopy>>({1}, 32, sizeof(WindowStorage), copy);
    });
  };
  EXPECT_SAYS(report(), "copies a box of a tensor map for im2col mode");
  emulator::TiledTensor tiles;
  tiles.address = images.tensor.address;
  tiles.rank = 4, tiles.element_bytes = 4;
  int const box[4] = {8, 4, 1, 1};
  for (int i = 0; i < 4; ++i) {
    tiles.extent[i] = images.tensor.extent[i];
    tiles.stride[i] = images.tensor.stride[i];
    tiles.box[i] = box[i];
  }
  copy.map = emulator::encode_tensor_map(tiles);
  EXPECT_EQ(report(), "");
  copy.by_tiles = false;
  EXPECT_SAYS(report(), "copies a box in im2col mode, of a tensor map for tiles");
}

TEST(WindowCopy, TensorMapsThatTheHardwareRefuses) {
  auto const refusal = [](auto change) {
    Images images(2, 4, 4);
    images.tensor.windows = 16;
    change(images.tensor);
    return testing::report_of([&] { emulator::encode_tensor_map(images.tensor); }, ErrorCode::bad_request);
  };
  EXPECT_EQ(refusal([](auto&) {}), "");
  EXPECT_SAYS(refusal([](auto& tensor) { tensor.lower[1] = -129; }),
              "a corner at -129 of rows; valid values: -128 to 127");
  EXPECT_SAYS(refusal([](auto& tensor) { tensor.upper[0] = -4; }),
              "whose corners leave no window of columns");
  EXPECT_SAYS(refusal([](auto& tensor) { tensor.step[0] = 9; }),
              "a step of 9 of columns; valid values: 1 to 8");
  EXPECT_SAYS(refusal([](auto& tensor) { tensor.windows = 1025; }), "a box of 1025 windows; valid values");
  EXPECT_SAYS(refusal([](auto& tensor) { tensor.channels = 16; }),
              "a swizzle of 32 bytes and box rows of 64 bytes");
  EXPECT_SAYS(refusal([](auto& tensor) { tensor.stride[2] = 130; }),
              "a stride of 130 bytes of dimension 2; valid values");
}

}  // namespace
}  // namespace cosmati
