// Vectors of the widest registers of the instruction set for which this unit is compiled. Everything is in an
// unnamed namespace and nothing comes from the standard library: units compiled with different flags must not
// share a function.
#pragma once

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "src/backend/cpu/chwn/kernels.h"
#include "src/backend/cpu/runtime/vector_clones.h"

namespace cosmati::cpu::chwn {
namespace {

#if defined(__AVX512F__)
constexpr Index width = 16;
constexpr int register_budget = 24;  // sums of one tile, of 32 registers
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
inline Vector broadcast(float value) {  // not Vector{} + value: g++ adds the zero, because of -0
#if defined(__AVX512F__)
  return _mm512_set1_ps(value);
#elif defined(__AVX2__)
  return _mm256_set1_ps(value);
#else
  return Vector{value, value, value, value};
#endif
}
inline Vector relu_of(Vector value) { return value < 0.0f ? Vector{} : value; }  // keeps NaN

inline Integers load(int const* from) { return *reinterpret_cast<UnalignedIntegers const*>(from); }
inline void store(int* to, Integers value) { *reinterpret_cast<UnalignedIntegers*>(to) = value; }

// g++ 12 converts between bytes and integers element by element unless the instruction is named.
inline Integers load(unsigned char const* from) {
#if defined(__AVX512F__)
  return reinterpret_cast<Integers>(
      _mm512_maskz_cvtepu8_epi32(0xffff, _mm_loadu_si128(reinterpret_cast<__m128i const*>(from))));
#elif defined(__AVX2__)
  return reinterpret_cast<Integers>(
      _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<__m128i const*>(from))));
#else
  return __builtin_convertvector(static_cast<Bytes>(*reinterpret_cast<UnalignedBytes const*>(from)),
                                 Integers);
#endif
}
inline void store(unsigned char* to, Integers value) {
#if defined(__AVX2__) && !defined(__AVX512F__)
  auto const eight = reinterpret_cast<__m256i>(value);
  __m128i const shorts = _mm_packus_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packus_epi16(shorts, shorts));
#else
  *reinterpret_cast<UnalignedBytes*>(to) = __builtin_convertvector(value, Bytes);
#endif
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

// Lines of one plane, for the vector of images that begins at `lane`.
struct Run {
  Index plane;
  Range lines;
  Index lane;
};

// for (Run run : Runs(planes, lines, share)) visits one share of all planes, vectors of images and lines.
class Runs {
 public:
  Runs(Index planes, Index lines, Share share)
      : lines_(lines), mine_(range_of(share, planes * vectors_of_images * lines)) {}

  struct Iterator {
    Index lines;
    Index at;
    Index last;
    Run operator*() const {
      Index const vector = at / lines;
      Index const first = at % lines;
      return {vector / vectors_of_images,
              {first, smaller(lines, first + last - at)},
              vector % vectors_of_images * width};
    }
    void operator++() { at += lines - at % lines; }
    bool operator!=(Iterator const& end) const { return at < end.at; }
  };
  Iterator begin() const { return {lines_, mine_.first, mine_.last}; }
  Iterator end() const { return {lines_, mine_.last, mine_.last}; }

 private:
  Index lines_;
  Range mine_;
};

}  // namespace
}  // namespace cosmati::cpu::chwn
