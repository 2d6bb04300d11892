// Philox4x32-10: random numbers as a function of a counter and a key, independent of evaluation order and
// device. Source: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
#pragma once
#include "cosmati/core/config.h"

namespace cosmati {

// Four words of 32 bits.
struct PhiloxBlock {
  unsigned word[4] = {};
};

// The keys of all rounds for a 64-bit key, low word first. A kernel that has them in its parameters uses them
// directly from constant memory; computing them takes half as many instructions as the rest.
struct PhiloxKeys {
  static constexpr int rounds = 10;
  unsigned word[rounds][2] = {};

  COSMATI_CONSTEXPR explicit PhiloxKeys(unsigned long long key = 0) {
    // Multiples of the fractional part of the golden ratio and of sqrt(3) - 1.
    for (unsigned round = 0; round < rounds; ++round) {
      word[round][0] = static_cast<unsigned>(key) + round * 0x9E3779B9u;
      word[round][1] = static_cast<unsigned>(key >> 32) + round * 0xBB67AE85u;
    }
  }
};

// Returns the block of random words for a 128-bit counter.
COSMATI_CONSTEXPR PhiloxBlock philox(PhiloxBlock counter, PhiloxKeys const& keys) {
  for (auto const& key : keys.word) {
    unsigned long long const product0 = 0xD2511F53ull * counter.word[0];
    unsigned long long const product1 = 0xCD9E8D57ull * counter.word[2];
    counter = {
        {static_cast<unsigned>(product1 >> 32) ^ counter.word[1] ^ key[0], static_cast<unsigned>(product1),
         static_cast<unsigned>(product0 >> 32) ^ counter.word[3] ^ key[1], static_cast<unsigned>(product0)}};
  }
  return counter;
}

// Block `block` of the stream identified by (seed, step): the counter is (block, step), each 64 bits with the
// low word first, and the keys are those of the seed. Element i of a stream is word i % 4 of block i / 4.
COSMATI_CONSTEXPR PhiloxBlock philox_block(PhiloxKeys const& seed, unsigned long long step,
                                           unsigned long long block) {
  return philox({{static_cast<unsigned>(block), static_cast<unsigned>(block >> 32),
                  static_cast<unsigned>(step), static_cast<unsigned>(step >> 32)}},
                seed);
}

// The elements that dropout keeps: element i, in row-major order of its indices, is kept if its random word
// is at least probability * 2^32.
struct DropoutMask {
  PhiloxKeys seed;
  unsigned long long step;
  unsigned long long threshold;

  COSMATI_CONSTEXPR DropoutMask(double probability, unsigned long long seed_, unsigned long long step_)
      : seed(seed_), step(step_), threshold(static_cast<unsigned long long>(probability * 4294967296.0)) {}

  COSMATI_CONSTEXPR bool keeps_word(unsigned word) const { return word >= threshold; }
  COSMATI_CONSTEXPR bool keeps(unsigned long long i) const {
    return keeps_word(philox_block(seed, step, i / 4).word[i % 4]);
  }
};

}  // namespace cosmati
