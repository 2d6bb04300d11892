// A small generator for numbers that must be the same on every machine: initial weights and the order of
// images.
#pragma once
#include <cmath>

namespace cosmati::nets {

// SplitMix64 (Steele, Lea and Flood 2014). Two numbers identify a stream: a seed and a purpose.
class Random {
 public:
  Random(unsigned long long seed, unsigned long long purpose) : state_(seed) {
    state_ = bits() ^ purpose * 0xd1342543de82ef95ULL;
  }
  unsigned long long bits() {
    unsigned long long z = state_ += step;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
    return z ^ z >> 31;
  }
  // Has the same effect as `calls` calls of bits().
  void skip(unsigned long long calls) { state_ += calls * step; }
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }  // [0, 1)
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  double normal() {  // Box and Muller
    double const radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(6.283185307179586 * uniform());
  }

 private:
  static constexpr unsigned long long step = 0x9e3779b97f4a7c15ULL;
  unsigned long long state_;
};

}  // namespace cosmati::nets
