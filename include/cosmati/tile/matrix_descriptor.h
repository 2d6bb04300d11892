// The layout of an operand's tile in shared memory as written by TMA and read by wgmma, and its 64-bit
// descriptor (PTX ISA, "Asynchronous warpgroup-level matrix shared memory layout" and "matrix descriptor"). A
// line is a contiguous range of `span` bytes along the depth or the outer extent.
#pragma once
#include "cosmati/core/config.h"

namespace cosmati {

// Lines of 32, 64 or 128 bytes whose 16-byte chunks are permuted so that eight lines at the same chunk are in
// different banks; none: lines of 16 bytes, not permuted.
enum class Swizzle : unsigned char { none, bytes32, bytes64, bytes128 };

COSMATI_CONSTEXPR int span_of(Swizzle swizzle) { return 16 << static_cast<int>(swizzle); }

// Eight lines: the period of the pattern in bytes, and the alignment of a tile.
COSMATI_CONSTEXPR int pattern_bytes(Swizzle swizzle) { return 8 * span_of(swizzle); }

// Returns the swizzled position of the byte at `offset` from the start of a tile: bits 4 to 6, as many as the
// span has, are combined by XOR with bits 7 to 9.
COSMATI_CONSTEXPR unsigned long long swizzled(unsigned long long offset, Swizzle swizzle) {
  unsigned long long const chunks = static_cast<unsigned long long>(span_of(swizzle)) / 16 - 1;
  return offset ^ (offset >> 7 & chunks) << 4;
}

// Returns the offset of byte `byte` of line `line` in a tile of `lines` lines that is copied as consecutive
// boxes of one span each.
COSMATI_CONSTEXPR int tile_offset(int line, int byte, int lines, Swizzle swizzle) {
  int const span = span_of(swizzle);
  unsigned long long const in_box = static_cast<unsigned long long>(line * span + byte % span);
  return byte / span * lines * span + static_cast<int>(swizzled(in_box, swizzle));
}

// The two strides of a descriptor, in bytes, for a tile of `lines` lines in the layout of tile_offset().
//   K-major (lines are rows of A or columns of B): stride is the distance of 8 lines; leading, used only
//   without swizzle, of 16 bytes of depth;
//   MN-major (lines are depths): stride is the distance of 8 depths, and leading of a span of the outer
//   extent; without swizzle they are exchanged.
struct MatrixStrides {
  int leading = 0, stride = 0;
};
COSMATI_CONSTEXPR MatrixStrides strides_of_tile(int lines, bool along_outer, Swizzle swizzle) {
  int const next_lines = pattern_bytes(swizzle), next_span = lines * span_of(swizzle);
  if (along_outer && swizzle == Swizzle::none) return {next_lines, next_span};
  return {next_span, next_lines};
}

// Returns the descriptor of an operand that starts at `address` in the shared-memory address space. Adding
// bytes / 16 to it moves the start: K-major by 32 bytes within a span, MN-major by 2 or more patterns.
COSMATI_CONSTEXPR unsigned long long matrix_descriptor(unsigned address, MatrixStrides strides,
                                                       Swizzle swizzle) {
  auto const field = [](unsigned bytes) { return static_cast<unsigned long long>((bytes & 0x3ffff) >> 4); };
  unsigned long long const mode = swizzle == Swizzle::none ? 0 : 4 - static_cast<unsigned>(swizzle);
  return field(address) | field(static_cast<unsigned>(strides.leading)) << 16 |
         field(static_cast<unsigned>(strides.stride)) << 32 | mode << 62;
}

// The contents of a descriptor.
struct MatrixDescriptor {
  unsigned address = 0;  // modulo 256 KiB
  MatrixStrides strides;
  int base_offset = 0;
  Swizzle swizzle = Swizzle::none;
};
COSMATI_CONSTEXPR MatrixDescriptor decoded(unsigned long long descriptor) {
  MatrixDescriptor result;
  result.address = static_cast<unsigned>(descriptor & 0x3fff) << 4;
  result.strides.leading = static_cast<int>(descriptor >> 16 & 0x3fff) << 4;
  result.strides.stride = static_cast<int>(descriptor >> 32 & 0x3fff) << 4;
  result.base_offset = static_cast<int>(descriptor >> 49 & 7);
  unsigned const mode = static_cast<unsigned>(descriptor >> 62);
  result.swizzle = mode == 0 ? Swizzle::none : static_cast<Swizzle>(4 - mode);
  return result;
}

// Returns where wgmma reads byte `byte` of line `line`, relative to the descriptor's start and before the
// swizzle.
COSMATI_CONSTEXPR int offset_by_strides(int line, int byte, MatrixStrides strides, bool along_outer,
                                        Swizzle swizzle) {
  int const span = span_of(swizzle);
  int const next_lines = along_outer && swizzle == Swizzle::none ? strides.leading : strides.stride;
  int const next_span = along_outer && swizzle == Swizzle::none ? strides.stride : strides.leading;
  return line / 8 * next_lines + line % 8 * span + byte / span * next_span + byte % span;
}

}  // namespace cosmati
