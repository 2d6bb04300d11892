// A source without its step cursor.
// expect: a source must have Step step(Index first_depth) const
// names: SourceRequirements<Own>
#include "tests/compile_fail/mistake.h"

struct Own {
  using Element = float;
  using Arguments = cosmati::MatrixArguments;
  struct Row {};
  struct Step {};
  static constexpr cosmati::Along along = cosmati::Along::k;
  static constexpr int width = 1;
  COSMATI_DEVICE Own(Arguments const&, cosmati::Index, cosmati::Index, cosmati::Index, cosmati::Index);
  COSMATI_DEVICE Row row(int outer, int depth) const;
  template <bool whole>
  COSMATI_DEVICE cosmati::Run<float> run(Row const& row, Step const& step, int more) const;
};

using Destination = cosmati::StridedDestination<float, 1>;
auto const parameters = mistake::parameters<
    mistake::Gemm<mistake::right, float, float, cosmati::IdentityEpilogue<float>, Destination, Own>>();
