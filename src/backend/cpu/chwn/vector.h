// Vectors of the widest register of the instruction set that this unit is compiled for. Everything is in an
// unnamed namespace and nothing comes from the standard library: units compiled with other flags must not
// share a function.
#pragma once

#include "src/backend/cpu/chwn/kernels.h"

namespace cosmati::cpu::chwn {
namespace {

#if defined(__AVX512F__)
constexpr Index width = 16;
constexpr int register_budget = 24;  // sums that one tile holds, of 32 registers
#elif defined(__AVX2__)
constexpr Index width = 8;
constexpr int register_budget = 12;  // of 16 registers
#else
constexpr Index width = 4;
constexpr int register_budget = 12;
#endif

constexpr Index vectors_of_images = images / width;

typedef float Vector __attribute__((vector_size(width * 4)));
typedef float UnalignedVector __attribute__((vector_size(width * 4), aligned(4), may_alias));
typedef int Integers __attribute__((vector_size(width * 4)));
typedef int UnalignedIntegers __attribute__((vector_size(width * 4), aligned(4), may_alias));
typedef unsigned char Bytes __attribute__((vector_size(width)));
typedef unsigned char UnalignedBytes __attribute__((vector_size(width), aligned(1), may_alias));

inline Vector load(float const* from) { return *reinterpret_cast<UnalignedVector const*>(from); }
inline void store(float* to, Vector value) { *reinterpret_cast<UnalignedVector*>(to) = value; }
inline Vector broadcast(float value) { return Vector{} + value; }
inline Vector relu_of(Vector value) { return value < 0.0f ? Vector{} : value; }  // keeps NaN

inline Integers load(int const* from) { return *reinterpret_cast<UnalignedIntegers const*>(from); }
inline void store(int* to, Integers value) { *reinterpret_cast<UnalignedIntegers*>(to) = value; }
inline Integers load(unsigned char const* from) {
  return __builtin_convertvector(static_cast<Bytes>(*reinterpret_cast<UnalignedBytes const*>(from)),
                                 Integers);
}
inline void store(unsigned char* to, Integers value) {
  *reinterpret_cast<UnalignedBytes*>(to) = __builtin_convertvector(value, Bytes);
}

inline float sum_of_lanes(Vector value) {
#if defined(__AVX512F__)
  auto const eight = __builtin_shufflevector(value, value, 0, 1, 2, 3, 4, 5, 6, 7) +
                     __builtin_shufflevector(value, value, 8, 9, 10, 11, 12, 13, 14, 15);
#else
  auto const eight = value;
#endif
#if defined(__AVX2__)
  auto const four =
      __builtin_shufflevector(eight, eight, 0, 1, 2, 3) + __builtin_shufflevector(eight, eight, 4, 5, 6, 7);
#else
  auto const four = eight;
#endif
  auto const two = four + __builtin_shufflevector(four, four, 2, 3, 0, 1);
  return two[0] + two[1];
}

constexpr Index smaller(Index a, Index b) { return a < b ? a : b; }
constexpr Index larger(Index a, Index b) { return a > b ? a : b; }

struct Range {
  Index first;
  Index last;  // past the end
};

constexpr Range range_of(Share share, Index work) {
  return {work * share.number / share.count, work * (share.number + 1) / share.count};
}

// Calls visit(line, lines, lane): the share's part of `planes` times `lines` lines times the vectors of 16
// images, in runs within one plane. `lane` is the first image of the vector.
template <class Visit>
void for_each_run(Index planes, Index lines, Share share, Visit const& visit) {
  Range const mine = range_of(share, planes * vectors_of_images * lines);
  for (Index at = mine.first; at < mine.last;) {
    Index const vector = at / lines;
    Index const first = at % lines;
    Index const last = smaller(lines, first + mine.last - at);
    at += last - first;
    visit(vector / vectors_of_images, Range{first, last}, vector % vectors_of_images * width);
  }
}

}  // namespace
}  // namespace cosmati::cpu::chwn
