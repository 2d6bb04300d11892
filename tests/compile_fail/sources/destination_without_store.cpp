// A destination without a store function.
// expect: a destination's tile must have template <int count> void store(int m, int n, int valid, Real const
// names: DestinationRequirements<Nowhere, float>
#include "tests/compile_fail/mistake.h"

struct Nowhere {
  using Arguments = cosmati::MatrixArguments;
  static constexpr int width = 1;
  struct Tile {
    COSMATI_DEVICE Tile(Arguments const&, cosmati::Index, cosmati::Index, cosmati::Index) {}
  };
};
auto const parameters = mistake::parameters<
    mistake::Gemm<mistake::right, float, float, cosmati::IdentityEpilogue<float>, Nowhere>>();
