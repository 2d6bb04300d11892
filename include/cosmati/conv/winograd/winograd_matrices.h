// The matrices of Winograd's short convolutions F(2, 3), F(4, 3) and F(4, 5): with a = tile + taps - 1 values
// d of an image and taps g, y = A ((G g) * (B d)) are `tile` adjacent outputs, where * multiplies element by
// element: a products instead of taps * tile. In two dimensions A ((G g G^T) * (B d B^T)) A^T (Winograd 1980;
// Lavin and Gray 2016, "Fast Algorithms for Convolutional Neural Networks"). For filter gradients, F(3, 2)
// and F(3, 4) interpolate at the same points: `tile` values dy take the place of the taps, the three taps
// that of the outputs, and B is the same.
#pragma once
#include "cosmati/core/config.h"

namespace cosmati {

// Channels that a thread transforms, if they are contiguous: as many as its registers hold.
COSMATI_CONSTEXPR int winograd_channels(int size) { return size == 4 ? 4 : size == 6 ? 2 : 1; }

// The matrices interpolate polynomials at a - 1 points, which are 0 and pairs +-p, and at infinity. All
// points are sums of few powers of two, so that A and B are exact; among all such points with denominators up
// to 8 these have the smallest error (docs/decisions/0015-winograd.md).
template <int tile, int taps_ = 3>
struct WinogradMatrices {
  static constexpr int taps = taps_, size = tile + taps - 1;
  static_assert(size == 4 || size == 6 || size == 8, "a tile must have 2x2 or 4x4 outputs");

  COSMATI_CONSTEXPR static double point(int i) {  // of size - 1
    constexpr double pairs[3][3] = {{1}, {0.625, 1.5}, {0.5, 1, 2}};
    double const positive = i == 0 ? 0 : pairs[size / 2 - 2][(i - 1) / 2];
    return i % 2 == 1 ? positive : -positive;
  }

  COSMATI_CONSTEXPR static float input(int row, int column) {  // B, size x size
    constexpr Inputs all;
    return all.value[row][column];
  }
  COSMATI_CONSTEXPR static double filter(int row, int column) {  // G, size x taps
    constexpr Factors<taps> all;
    return all.value[row][column];
  }
  COSMATI_CONSTEXPR static float output(int row, int column) {  // A, tile x size
    constexpr Sums<tile> all;
    return all.value[row][column];
  }
  COSMATI_CONSTEXPR static double gradient(int row, int column) {  // G of the filter gradient, size x tile
    constexpr Factors<tile> all;
    return all.value[row][column];
  }
  COSMATI_CONSTEXPR static float tap(int row, int column) {  // A of the filter gradient, taps x size
    constexpr Sums<taps> all;
    return all.value[row][column];
  }

 private:
  // Row i: the coefficients of the product of x - point(l) over the other points l; the last row: over all.
  struct Inputs {
    float value[size][size] = {};
    COSMATI_CONSTEXPR Inputs() {
      for (int row = 0; row < size; ++row) {
        double of[size + 1] = {1};
        for (int l = 0; l < size - 1; ++l) {
          if (l == row) continue;
          for (int power = size; power > 0; --power) of[power] = of[power - 1] - point(l) * of[power];
          of[0] *= -point(l);
        }
        for (int power = 0; power < size; ++power) value[row][power] = static_cast<float>(of[power]);
      }
    }
  };
  // Powers of the points, divided by the product of their distances to the others.
  template <int count>
  struct Factors {
    double value[size][count] = {};
    COSMATI_CONSTEXPR Factors() {
      for (int row = 0; row < size - 1; ++row) {
        double distances = 1, power = 1;
        for (int l = 0; l < size - 1; ++l)
          if (l != row) distances *= point(row) - point(l);
        for (int column = 0; column < count; ++column, power *= point(row))
          value[row][column] = power / distances;
      }
      value[size - 1][count - 1] = 1;
    }
  };
  template <int count>
  struct Sums {
    float value[count][size] = {};
    COSMATI_CONSTEXPR Sums() {
      for (int column = 0; column < size - 1; ++column) {
        double power = 1;
        for (int row = 0; row < count; ++row, power *= point(column))
          value[row][column] = static_cast<float>(power);
      }
      value[count - 1][size - 1] = 1;
    }
  };
};

}  // namespace cosmati
