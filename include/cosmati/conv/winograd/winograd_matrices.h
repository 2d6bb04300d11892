// The matrices of Winograd's short convolutions F(2, 3) and F(4, 3): with a = tile + 2 values d of an image
// and 3 taps g, y = A ((G g) * (B d)) are `tile` adjacent outputs, where * multiplies element by element: a
// products instead of 3 * tile. In two dimensions A ((G g G^T) * (B d B^T)) A^T (Winograd 1980; Lavin and
// Gray 2016, "Fast Algorithms for Convolutional Neural Networks"). For filter gradients, F(3, 2) and F(3, 4)
// interpolate at the same points: `tile` values dy take the place of the taps, the three taps that of the
// outputs, and B is the same.
#pragma once
#include "cosmati/core/config.h"

namespace cosmati {

// They interpolate polynomials at 0, +-p, +-q and infinity. Both points are sums of few powers of two, so
// that A and B are exact; among all such pairs with denominators up to 8 this one has the smallest error
// (docs/decisions/0015-winograd.md).
template <int tile>
struct WinogradMatrices {
  static_assert(tile == 2 || tile == 4, "a tile must have 2x2 or 4x4 outputs");
  static constexpr int size = tile + 2, taps = 3;

  COSMATI_CONSTEXPR static float input(int row, int column) {  // B, size x size
    if constexpr (tile == 2) {
      constexpr float b[4][4] = {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, -1, 0, 1}};
      return b[row][column];
    } else {
      constexpr float p = 0.625f, q = 1.5f, pp = p * p, qq = q * q;
      constexpr float b[6][6] = {{pp * qq, 0, -pp - qq, 0, 1, 0}, {0, -p * qq, -qq, p, 1, 0},
                                 {0, p * qq, -qq, -p, 1, 0},      {0, -q * pp, -pp, q, 1, 0},
                                 {0, q * pp, -pp, -q, 1, 0},      {0, pp * qq, 0, -pp - qq, 0, 1}};
      return b[row][column];
    }
  }
  COSMATI_CONSTEXPR static double filter(int row, int column) {  // G, size x taps
    if constexpr (tile == 2) {
      constexpr double g[4][3] = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};
      return g[row][column];
    } else {
      constexpr double p = 0.625, q = 1.5, pp = p * p, qq = q * q;
      constexpr double of_p = 1 / (2 * pp * (pp - qq)), of_q = 1 / (2 * qq * (qq - pp));
      constexpr double g[6][3] = {{1 / (pp * qq), 0, 0},        {of_p, of_p * p, of_p * pp},
                                  {of_p, -of_p * p, of_p * pp}, {of_q, of_q * q, of_q * qq},
                                  {of_q, -of_q * q, of_q * qq}, {0, 0, 1}};
      return g[row][column];
    }
  }
  COSMATI_CONSTEXPR static double gradient(int row, int column) {  // G of the filter gradient, size x tile
    if (row == size - 1) return column == tile - 1 ? 1 : 0;
    if constexpr (tile == 4) {
      if (column == 3) {  // the next power of the point
        double const point = row < 3 ? 0.625 : 1.5;
        return row == 0 ? 0 : (row % 2 == 1 ? point : -point) * filter(row, 2);
      }
    }
    return filter(row, column);
  }
  COSMATI_CONSTEXPR static float tap(int row, int column) {  // A of the filter gradient, taps x size
    if (column == size - 1) return row == taps - 1 ? 1.0f : 0.0f;
    if constexpr (tile == 2)
      return row == 2 ? (column == 0 ? 0.0f : 1.0f) : output(row, column);
    else
      return output(row, column);
  }
  COSMATI_CONSTEXPR static float output(int row, int column) {  // A, tile x size
    if constexpr (tile == 2) {
      constexpr float a[2][4] = {{1, 1, 1, 0}, {0, 1, -1, 1}};
      return a[row][column];
    } else {
      constexpr float p = 0.625f, q = 1.5f, pp = p * p, qq = q * q;
      constexpr float a[4][6] = {{1, 1, 1, 1, 1, 0},
                                 {0, p, -p, q, -q, 0},
                                 {0, pp, pp, qq, qq, 0},
                                 {0, p * pp, -p * pp, q * qq, -q * qq, 1}};
      return a[row][column];
    }
  }
};

}  // namespace cosmati
