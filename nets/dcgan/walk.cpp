// Walks through latent space, computed in f64 so that all steps stay equally long.
#include "nets/dcgan/walk.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "nets/dcgan/architecture.h"

namespace cosmati::dcgan {
namespace {

double dot(float const* a, float const* b) { return std::inner_product(a, a + latent_size, b, 0.0); }

// The point at fraction `t` of the way from a to b.
void between(float const* a, float const* b, double t, float* point) {
  double const lengths = std::sqrt(dot(a, a) * dot(b, b));
  double const angle = lengths > 0 ? std::acos(std::clamp(dot(a, b) / lengths, -1.0, 1.0)) : 0;
  double const sine = std::sin(angle);
  bool const arc = sine > 1e-6;
  double const of_a = arc ? std::sin((1 - t) * angle) / sine : 1 - t,
               of_b = arc ? std::sin(t * angle) / sine : t;
  std::transform(a, a + latent_size, b, point, [=](float x, float y) {
    return static_cast<float>(of_a * static_cast<double>(x) + of_b * static_cast<double>(y));
  });
}

}  // namespace

std::vector<float> walk(std::vector<float> const& stops, Index frames) {
  Index const count = static_cast<Index>(stops.size()) / latent_size;
  std::vector<float> result(static_cast<std::size_t>(frames * latent_size));
  for (Index i = 0; i < frames; ++i) {
    Index const stop = i * count / frames;
    double const t = static_cast<double>(i * count % frames) / static_cast<double>(frames);
    between(&stops[static_cast<std::size_t>(stop * latent_size)],
            &stops[static_cast<std::size_t>((stop + 1) % count * latent_size)], t,
            &result[static_cast<std::size_t>(i * latent_size)]);
  }
  return result;
}

}  // namespace cosmati::dcgan
