// The generator on the emulator with all methods and types, against the CPU; chunks and their order.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <stdexcept>
#include <thread>

#include "nets/dcgan/narrow.h"
#include "nets/dcgan/picture.h"
#include "nets/dcgan/pipeline.h"
#include "tests/nets/random_generator.h"
#include "tests/nets/random_latents.h"
#include "tests/sanitized.h"

namespace cosmati::dcgan {
namespace {

std::vector<float> drawn(Backend backend, GeneratorOptions const& options, std::vector<float> const& z,
                         FoldedWeights const& weights = random_generator()) {
  Pipeline pipeline(weights, this_device(backend, 2), options, 1);
  auto const count = static_cast<Index>(z.size()) / latent_size;
  pipeline.begin(z.data(), count);
  Images const images = pipeline.front();
  std::vector<float> result(static_cast<std::size_t>(count * image_elements));
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i] = static_cast<float>(load(options.image_type, images.get(), static_cast<Index>(i)));
  return result;
}

double largest_difference(std::vector<float> const& a, std::vector<float> const& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    double const difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (!(difference <= largest)) largest = difference;
  }
  return largest;
}

GeneratorOptions options_for(Method method, DataType type = DataType::f32, DataType images = DataType::f32) {
  GeneratorOptions options;
  options.batch = 1;
  options.type = type;
  options.image_type = images;
  options.method.fill(method);
  return options;
}

TEST(DcganPipeline, EveryMethodDrawsTheSameOnTheProcessor) {
  auto const z = random_latents(1, 3);
  auto const truth = drawn(Backend::cpu, options_for(Method::gradient), z);
  for (Method method : {Method::merged, Method::zeros})
    EXPECT_LE(largest_difference(drawn(Backend::cpu, options_for(method), z), truth), 1e-5)
        << name_of(method);
  EXPECT_THROW(drawn(Backend::cpu, options_for(Method::naive), z), Error);  // the CPU has no such kernel
}

TEST(DcganPipeline, TheEmulatorDrawsWhatTheProcessorDraws) {
  auto const z = random_latents(1, 4);
  auto const truth = drawn(Backend::cpu, options_for(Method::gradient), z);
  struct Case {
    Method method;
    DataType type;
    double bound;
  };
  for (Case const& one :
       {Case{Method::automatic, DataType::f32, 1e-5}, {Method::gradient, DataType::f16, 1e-2}})
    EXPECT_LE(largest_difference(drawn(Backend::emulator, options_for(one.method, one.type), z), truth),
              one.bound)
        << name_of(one.method) << ' ' << name_of(one.type);
}

// Numbers of channels that are not multiples of what kernels process at once, in every type and by every
// method.
TEST(DcganPipeline, DrawsWithAnyHiddenChannelsInEveryType) {
  auto const z = random_latents(1, 7);
  test::Sample sample(5);
  struct Case {
    DataType type;
    double bound;
  };
  for (Architecture const& architecture :
       {architecture_of_width(1), architecture_of_width(5), architecture_of_width(8),
        architecture_of_width(16), Architecture{latent_size, {9, 30, 7, 11, image_channels}}}) {
    FoldedWeights const& weights = random_generator(architecture);
    auto const truth = drawn(Backend::reference, options_for(Method::gradient), z, weights);
    for (Case const& one : {Case{DataType::f32, 1e-5}, Case{DataType::tf32, 1e-2}, Case{DataType::f16, 1e-2},
                            Case{DataType::bf16, 1e-1}})
      for (Backend const backend : {Backend::cpu, Backend::emulator})
        for (Method const method :
             {Method::automatic, Method::gradient, Method::merged, Method::zeros, Method::naive}) {
          if (method == Method::naive && backend == Backend::cpu) continue;  // the CPU has no such kernel
          bool const first = architecture.channel(3) == 5 || method == Method::automatic;
          if (!first && backend == Backend::emulator) continue;  // an image takes a second in the emulator
          if (sample.skips()) continue;
          EXPECT_LE(largest_difference(drawn(backend, options_for(method, one.type), z, weights), truth),
                    one.bound)
              << name_of(backend) << ' ' << name_of(method) << ' ' << name_of(one.type) << ' '
              << architecture.channel(3);
        }
  }
}

TEST(DcganPipeline, BytesAreTheRuleOfPictures) {
  auto const z = random_latents(1, 5);
  auto const truth = drawn(Backend::cpu, options_for(Method::gradient), z);
  auto const bytes = drawn(Backend::cpu, options_for(Method::gradient, DataType::f32, DataType::u8), z);
  std::vector<unsigned char> levels(truth.size());
  to_levels(truth.data(), static_cast<Index>(truth.size()), levels.data());
  std::size_t different = 0;  // by one, where two evaluations of tanh lie on both sides of an integer
  for (std::size_t i = 0; i < levels.size(); ++i) {
    ASSERT_LE(std::abs(bytes[i] - static_cast<float>(levels[i])), 1.0F);
    different += bytes[i] != static_cast<float>(levels[i]);
  }
  EXPECT_LE(different, levels.size() / 1000);
}

TEST(DcganPipeline, TheLastBatchMayBeShort) {
  auto const z = random_latents(5, 6);
  auto const all = generate(random_generator(), this_device(Backend::cpu, 2), z, 5);
  auto const parts = generate(random_generator(), this_device(Backend::cpu, 2), z, 3);
  EXPECT_LE(largest_difference(all, parts), 1e-5);
  EXPECT_EQ(even_batch(1000, 64), 63);
  EXPECT_EQ(even_batch(10, 64), 10);
}

TEST(DcganPipeline, NarrowNumbersAreThoseOfTheLibrary) {
  std::vector<float> values = {0,     1,     -1,       65504,    65519.99F, 65520,
                               1e30F, 6e-8F, 2.98e-8F, 2.99e-8F, 6.1e-5F,   6.104e-5F};
  nets::Random random(2, 0);
  for (int i = 0; i < 200000; ++i)
    values.push_back(std::bit_cast<float>(static_cast<unsigned>(random.bits())));
  for (unsigned i = 0; i < 65536; ++i)  // halfway between two f16 numbers, and next to that
    for (int off : {-1, 0, 1})
      values.push_back(std::bit_cast<float>((i << 13) + (110U << 23) + 4096U + static_cast<unsigned>(off)));
  std::vector<unsigned short> narrowed(values.size()), expected(values.size());
  for (DataType const type : {DataType::f16, DataType::bf16}) {
    narrow(type, values.data(), static_cast<Index>(values.size()), narrowed.data());
    for (std::size_t i = 0; i < values.size(); ++i) {
      store(type, expected.data(), static_cast<Index>(i), static_cast<double>(values[i]));
      auto const at = static_cast<Index>(i);
      bool const is_number = values[i] == values[i];
      double const made = load(type, narrowed.data(), at);
      ASSERT_TRUE(is_number ? narrowed[i] == expected[i] : made != made)
          << values[i] << ' ' << narrowed[i] << ' ' << expected[i] << ' ' << name_of(type);
    }
  }
}

TEST(DcganPipeline, LatentsDoNotDependOnTheDivision) {
  Latents const latents(7, 42);
  std::vector<float> parts(7 * latent_size);
  latents.read(0, 3, parts.data());
  latents.read(3, 4, parts.data() + 3 * latent_size);
  EXPECT_EQ(parts, random_latents(7, 42));
}

Part part_of(Chunk const& chunk, Index text_bytes = 0, int rank = 0) {
  Part part;
  part.chunk = chunk;
  part.text_bytes = text_bytes;
  part.rank = rank;
  return part;
}

TEST(DcganDealer, PutsChunksIntoOrder) {
  Dealer dealer(0, 10, 4, 3);
  auto const a = dealer.take(false), b = dealer.take(false), c = dealer.take(false);
  ASSERT_TRUE(a && b && c);
  EXPECT_EQ(c->count, 2);
  EXPECT_FALSE(dealer.take(false));
  dealer.put(part_of(*b));
  EXPECT_FALSE(dealer.next(false));
  dealer.put(part_of(*a));
  EXPECT_EQ(dealer.next()->chunk, *a);
  EXPECT_EQ(dealer.next()->chunk, *b);
  dealer.put(part_of(*c));
  EXPECT_TRUE(dealer.computed());
  EXPECT_EQ(dealer.next()->chunk, *c);
  EXPECT_FALSE(dealer.next());
}

TEST(DcganDealer, ATextFollowsThoseOfAllEarlierChunks) {
  Dealer dealer(4, 16, 4, 8, 100);  // the first chunk is already in the file
  auto const a = dealer.take(false), b = dealer.take(false), c = dealer.take(false);
  dealer.put(part_of(*c, 7));
  dealer.put(part_of(*b, 30, 2));  // belongs to another process
  EXPECT_FALSE(dealer.next_elsewhere());
  dealer.put(part_of(*a, 11));
  EXPECT_EQ(dealer.next_elsewhere()->text_at, 111);
  EXPECT_FALSE(dealer.next_elsewhere());
  EXPECT_EQ(dealer.next()->text_at, 100);
  auto const last = dealer.next();
  EXPECT_EQ(last->text_at, 141);
  EXPECT_EQ(last->chunk, *c);
  EXPECT_FALSE(dealer.next());
}

TEST(DcganDealer, WhatIsWrittenCountsFromTheFirstChunkOn) {
  Dealer dealer(0, 10, 4, 8);
  for (Index bytes : {5, 6, 7}) dealer.put(part_of(*dealer.take(false), bytes));
  Chunk chunks[3];
  for (Chunk& chunk : chunks) chunk = dealer.next()->chunk;
  auto const last = dealer.written(chunks[2]);
  EXPECT_TRUE(last.images == 0 && last.text_at == 0);
  auto const first = dealer.written(chunks[0]);
  EXPECT_TRUE(first.images == 4 && first.text_at == 5);
  EXPECT_FALSE(dealer.complete());
  auto const all = dealer.written(chunks[1]);
  EXPECT_TRUE(all.images == 10 && all.text_at == 18);
  EXPECT_TRUE(dealer.complete());
}

TEST(DcganDealer, NothingIsLeftOfWhatWasComplete) {
  Dealer dealer(10, 10, 4, 8, 77);  // the last chunk is shorter
  EXPECT_TRUE(dealer.computed() && dealer.complete());
  EXPECT_FALSE(dealer.take(true));
  EXPECT_FALSE(dealer.next());
}

TEST(DcganDealer, WhatOneLeavesAnotherTakes) {
  Dealer dealer(4, 12, 4, 8);  // the first chunk is already in the file
  dealer.join(), dealer.join();
  auto const first = dealer.take(true), second = dealer.take(true);
  EXPECT_EQ(first->first, 4);
  std::thread other([&] {  // waits until there is work again
    while (auto const chunk = dealer.take(true)) dealer.put(part_of(*chunk));
    dealer.leave();
  });
  dealer.give_back(*second);
  dealer.give_back(*first);
  dealer.leave(std::make_exception_ptr(std::runtime_error("broken")));
  EXPECT_EQ(dealer.next()->chunk.number, 1);
  EXPECT_EQ(dealer.next()->chunk.number, 2);
  EXPECT_FALSE(dealer.next());
  other.join();
}

TEST(DcganDealer, TellsWhyNobodyIsLeft) {
  Dealer dealer(0, 8, 4, 8);
  dealer.join();
  dealer.give_back(*dealer.take(true));
  dealer.leave(std::make_exception_ptr(std::runtime_error("broken")));
  EXPECT_THROW(dealer.next(), std::runtime_error);
}

TEST(DcganDealer, AWindowBoundsWhatIsNotWritten) {
  Dealer dealer(0, 100, 1, 2);
  auto const first = dealer.take(false);
  EXPECT_TRUE(dealer.take(false));
  EXPECT_FALSE(dealer.take(false));
  dealer.put(part_of(*first));
  EXPECT_TRUE(dealer.next());
  EXPECT_FALSE(dealer.take(false));  // not yet written
  dealer.written(*first);
  EXPECT_TRUE(dealer.take(false));
}

}  // namespace
}  // namespace cosmati::dcgan
