// The chwn16 candidates against the reference: random shapes, both instruction sets, one and several threads.
// Sums of small integers are exact in f32, so convolutions must agree bit for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "cosmati/epilogue/parse.h"
#include "reference/reference.h"
#include "src/backend/cpu/chwn/kernels.h"
#include "tests/support/promise.h"
#include "tests/support/random.h"

namespace cosmati {
namespace {

using testing::Random;

constexpr float poison = -7.0e30f;
constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

// Elements between two guard bands, at an address aligned only to the element size.
template <class Element>
class Guarded {
 public:
  Guarded(Index size, Element value) : size_(static_cast<std::size_t>(size)), all_(size_ + 2 * band, guard) {
    std::fill_n(data(), size_, value);
  }
  Element* data() { return all_.data() + band; }
  Element* begin() { return data(); }
  Element* end() { return data() + size_; }
  Index size() const { return static_cast<Index>(size_); }
  bool intact() const {
    for (std::size_t i = 0; i < band; ++i)
      if (all_[i] != guard || all_[band + size_ + i] != guard) return false;
    return true;
  }
  bool same_bits(Guarded& other) {
    return size_ == other.size_ && std::memcmp(data(), other.data(), size_ * sizeof(Element)) == 0;
  }

 private:
  static constexpr std::size_t band = 37;
  static constexpr Element guard = static_cast<Element>(113);
  std::size_t size_;
  std::vector<Element> all_;
};
using Floats = Guarded<float>;

Floats small_integers(Random& random, Index size) {
  Floats values(size, 0);
  for (float& value : values) value = static_cast<float>(random.between(-3, 3));
  return values;
}

TensorDescription chwn16(Index c, Index h, Index w, DataType type = DataType::f32) {
  return describe(type, image_layout(TensorFormat::chwn, 16, c, h, w));
}

std::vector<Device> devices() {
  Device const here = this_device(Backend::cpu);
  std::vector<Device> list;
  for (int threads : {1, 3}) {
    Device device = here;
    device.threads = threads;
    if (device.avx512) list.push_back(device);
    device.avx512 = false;
    if (device.avx2) list.push_back(device);
  }
  return list;
}

std::string name_of(Device const& device) {
  return std::string(device.avx512 ? "v4" : "v3") + ", threads " + std::to_string(device.threads);
}

// Runs by chwn16, with an uninitialized workspace no larger than the plan says.
template <class Problem>
void run_chwn16(Problem const& problem, Device const& device, typename Problem::Arguments const& arguments) {
  auto const prepared = prepare(make_plan(testing::unaligned(problem), device, {.kernel = "chwn16"}));
  std::size_t const bytes = prepared.workspace_bytes();
  std::unique_ptr<std::byte[]> const memory(new std::byte[bytes + 128]);
  std::memset(memory.get(), 0xff, bytes + 128);
  void* aligned = memory.get();
  std::size_t room = bytes + 128;
  std::align(64, bytes + 1, aligned, room);
  prepared.run(arguments, aligned);
  for (std::size_t i = bytes; i < room; ++i)
    ASSERT_EQ(static_cast<std::byte*>(aligned)[i], std::byte{0xff})
        << "past the workspace of " << bytes << " bytes";
}

std::string text_of(ConvolutionProblem const& p) {
  return "x " + to_string(p.x) + ", w " + to_string(p.w) + ", y " + to_string(p.y) + ", stride " +
         std::to_string(p.stride[0]) + " " + std::to_string(p.stride[1]) + ", dilation " +
         std::to_string(p.dilation[0]) + " " + std::to_string(p.dilation[1]) + ", padding " +
         std::to_string(p.pad_begin[0]) + " " + std::to_string(p.pad_begin[1]) + ", groups " +
         std::to_string(p.groups);
}

// `maximum` bounds the channels of a group, and the extents.
ConvolutionProblem random_convolution(Random& random, Index maximum) {
  ConvolutionProblem p;
  while (true) {
    p.groups = random.between(1, 2);
    Index const in = random.between(1, maximum), out = random.between(1, maximum);
    Index image[2], taps[2], output[2];
    for (int i = 0; i < 2; ++i) {
      image[i] = random.between(1, maximum + 4);
      taps[i] = random.between(1, 6);
      p.stride[i] = random.between(1, 3);
      p.dilation[i] = random.between(1, 3);
      p.pad_begin[i] = random.between(0, 4);
      p.pad_end[i] = random.between(0, 4);
      output[i] =
          convolution_extent(image[i], taps[i], p.stride[i], p.pad_begin[i], p.pad_end[i], p.dilation[i]);
    }
    if (output[0] == 0 || output[1] == 0) continue;
    p.x = chwn16(in * p.groups, image[0], image[1]);
    p.w = describe(DataType::f32, {out * p.groups, in, taps[0], taps[1]});
    p.y = chwn16(out * p.groups, output[0], output[1]);
    return p;
  }
}

// LeNet-5's convolutions, whose work is divided among threads, then random ones.
std::vector<ConvolutionProblem> convolution_cases() {
  std::vector<ConvolutionProblem> cases(2);
  ConvolutionProblem& c1 = cases[0];
  c1.x = chwn16(1, 28, 28);
  c1.w = describe(DataType::f32, {6, 1, 5, 5});
  c1.y = chwn16(6, 28, 28);
  for (Index* pad : {c1.pad_begin, c1.pad_end}) pad[0] = pad[1] = 2;
  ConvolutionProblem& c3 = cases[1];
  c3.x = chwn16(6, 14, 14);
  c3.w = describe(DataType::f32, {16, 6, 5, 5});
  c3.y = chwn16(16, 10, 10);
  Random random(1);
  for (int i = 0; i < 50; ++i) cases.push_back(random_convolution(random, i % 10 == 0 ? 9 : 4));
  return cases;
}

void expect_equal(Floats& result, Floats& expected) {
  ASSERT_EQ(result.size(), expected.size());
  EXPECT_TRUE(result.intact()) << "written outside the output";
  for (Index i = 0; i < result.size(); ++i)
    if (!(result.data()[i] == expected.data()[i]))
      FAIL() << "element " << i << " is " << result.data()[i] << ", expected " << expected.data()[i];
}

TEST(Chwn16Convolution, Forward) {
  Random random(2);
  char const* const epilogues[] = {"acc", "acc + bias[k]", "relu(bias[k] + acc)", "relu(acc)"};
  int number = 0;
  for (ConvolutionProblem& p : convolution_cases()) {
    p.epilogue.expression = epilogue::parse(epilogues[number++ % 4], epilogue::convolution_indices);
    if (!p.epilogue.expression.operands().empty())
      p.epilogue.operands = {describe(DataType::f32, {p.y.extent(1)})};
    Floats x = small_integers(random, p.x.layout.size()), w = small_integers(random, p.w.layout.size());
    Floats bias = small_integers(random, p.y.extent(1));
    void const* const operands[] = {bias.data()};
    Floats expected(p.y.layout.size(), poison);
    reference::run(p, {.x = x.data(), .w = w.data(), .y = expected.data(), .operands = operands});
    for (Device const& device : devices()) {
      SCOPED_TRACE(text_of(p) + ", " + name_of(device));
      Floats y(expected.size(), poison);
      run_chwn16(p, device, {.x = x.data(), .w = w.data(), .y = y.data(), .operands = operands});
      expect_equal(y, expected);
    }
  }
}

TEST(Chwn16Convolution, DataGradient) {
  Random random(3);
  for (ConvolutionProblem& p : convolution_cases()) {
    p.direction = ConvolutionDirection::data;
    Floats dy = small_integers(random, p.y.layout.size()), w = small_integers(random, p.w.layout.size());
    Floats expected(p.x.layout.size(), poison);
    reference::run(p, {.w = w.data(), .dy = dy.data(), .dx = expected.data()});
    for (Device const& device : devices()) {
      SCOPED_TRACE(text_of(p) + ", " + name_of(device));
      Floats dx(expected.size(), poison);
      run_chwn16(p, device, {.w = w.data(), .dy = dy.data(), .dx = dx.data()});
      expect_equal(dx, expected);
    }
  }
}

TEST(Chwn16Convolution, FilterAndBiasGradient) {
  Random random(4);
  for (ConvolutionProblem& p : convolution_cases()) {
    p.direction = ConvolutionDirection::filter;
    bool const with_bias = random.coin();
    if (with_bias) p.db = describe(DataType::f32, {p.y.extent(1)});
    Floats x = small_integers(random, p.x.layout.size()), dy = small_integers(random, p.y.layout.size());
    Floats expected(p.w.layout.size(), poison), expected_bias(p.y.extent(1), poison);
    reference::run(p, {.x = x.data(), .dy = dy.data(), .dw = expected.data(), .db = expected_bias.data()});
    for (Device const& device : devices()) {
      SCOPED_TRACE(text_of(p) + ", " + name_of(device));
      Floats dw(expected.size(), poison), db(expected_bias.size(), poison);
      run_chwn16(p, device, {.x = x.data(), .dy = dy.data(), .dw = dw.data(), .db = db.data()});
      expect_equal(dw, expected);
      expect_equal(db, expected_bias);
    }
  }
}

// Weights with the batch innermost, as CRSK, and with gaps: every direction, without a repacking step.
TEST(Chwn16Convolution, WeightsInAnyOrder) {
  Random random(7);
  for (ConvolutionProblem& p : convolution_cases()) {
    Shape const shape = p.w.shape();
    p.w.layout =
        image_layout(TensorFormat::chwn, shape.extent[0], shape.extent[1], shape.extent[2], shape.extent[3]);
    if (random.coin())
      for (int d = 0; d < 4; ++d) p.w.layout.stride[d] *= 2;
    Floats x = small_integers(random, p.x.layout.size()), dy = small_integers(random, p.y.layout.size());
    Floats w = small_integers(random, p.w.layout.span());
    Floats y(p.y.layout.size(), poison), dx(p.x.layout.size(), poison), dw(p.w.layout.span(), poison);
    ConvolutionProblem data = p, filter = p;
    data.direction = ConvolutionDirection::data;
    filter.direction = ConvolutionDirection::filter;
    reference::run(p, {.x = x.data(), .w = w.data(), .y = y.data()});
    reference::run(data, {.w = w.data(), .dy = dy.data(), .dx = dx.data()});
    reference::run(filter, {.x = x.data(), .dy = dy.data(), .dw = dw.data()});
    for (Device const& device : devices()) {
      SCOPED_TRACE(text_of(p) + ", " + name_of(device));
      Floats own_y(y.size(), poison), own_dx(dx.size(), poison), own_dw(dw.size(), poison);
      run_chwn16(p, device, {.x = x.data(), .w = w.data(), .y = own_y.data()});
      run_chwn16(data, device, {.w = w.data(), .dy = dy.data(), .dx = own_dx.data()});
      run_chwn16(filter, device, {.x = x.data(), .dy = dy.data(), .dw = own_dw.data()});
      expect_equal(own_y, y);
      expect_equal(own_dx, dx);
      expect_equal(own_dw, dw);
    }
  }
}

TEST(Chwn16Convolution, SameBitsForTheSameThreads) {
  Random random(5);
  ConvolutionProblem p = convolution_cases()[1];
  p.direction = ConvolutionDirection::filter;
  p.db = describe(DataType::f32, {p.y.extent(1)});
  Floats x(p.x.layout.size(), 0), dy(p.y.layout.size(), 0);
  for (float& value : x) value = static_cast<float>(random.uniform(-1, 1));
  for (float& value : dy) value = static_cast<float>(random.uniform(-1, 1));
  for (Device const& device : devices()) {
    SCOPED_TRACE(name_of(device));
    EXPECT_EQ(make_plan(p, device).workspace_bytes > 0, device.threads > 1);
    Floats first(p.w.layout.size(), poison), first_bias(p.db.extent(0), poison);
    run_chwn16(p, device, {.x = x.data(), .dy = dy.data(), .dw = first.data(), .db = first_bias.data()});
    for (int repeat = 0; repeat < 5; ++repeat) {
      Floats dw(first.size(), poison), db(first_bias.size(), poison);
      run_chwn16(p, device, {.x = x.data(), .dy = dy.data(), .dw = dw.data(), .db = db.data()});
      EXPECT_TRUE(dw.same_bits(first) && db.same_bits(first_bias));
    }
  }
}

// Calls the kernels directly with any number of shares; more shares than rows are allowed.
TEST(Chwn16Convolution, AnyNumberOfShares) {
  Random random(6);
  Device const here = this_device(Backend::cpu);
  for (cpu::chwn::Kernels const* kernels : {&cpu::chwn::kernels_v3, &cpu::chwn::kernels_v4}) {
    if (kernels == &cpu::chwn::kernels_v4 ? !here.avx512 : !here.avx2) continue;
    for (int i = 0; i < 20; ++i) {
      ConvolutionProblem const p = random_convolution(random, 4);
      SCOPED_TRACE(text_of(p));
      auto const axis = [&](int d) -> cpu::chwn::Axis {
        return {p.x.extent(2 + d), p.y.extent(2 + d), p.w.extent(2 + d), p.stride[d],
                p.dilation[d],     p.pad_begin[d],    p.pad_end[d]};
      };
      cpu::chwn::Convolution const shape{p.x.extent(1), p.y.extent(1), p.groups, axis(0), axis(1)};
      Floats x = small_integers(random, p.x.layout.size()), w = small_integers(random, p.w.layout.size());
      Floats dy = small_integers(random, p.y.layout.size());
      std::vector<Floats> y, dx, dw;
      for (Index count : {1, 5, 40}) {
        y.emplace_back(dy.size(), poison);
        dx.emplace_back(x.size(), poison);
        dw.emplace_back(w.size(), 0.0f);
        for (Index number = count - 1; number >= 0; --number) {
          kernels->convolve(shape, x.data(), w.data(), nullptr, false, y.back().data(), {number, count});
          kernels->convolve_data(shape, dy.data(), w.data(), dx.back().data(), {number, count});
          Floats part(w.size(), poison);
          kernels->convolve_filter(shape, x.data(), dy.data(), part.data(), nullptr, {number, count});
          for (Index e = 0; e < w.size(); ++e) dw.back().data()[e] += part.data()[e];
        }
        expect_equal(y.back(), y.front());
        expect_equal(dx.back(), dx.front());
        expect_equal(dw.back(), dw.front());
      }
    }
  }
}

// Windows that tile, overlap, or leave gaps; the first image has work for several threads.
std::vector<PoolingProblem> pooling_cases(PoolingMode mode) {
  std::vector<PoolingProblem> cases;
  Random random(7);
  while (cases.size() < 60) {
    PoolingProblem p;
    p.mode = mode;
    bool const plain = cases.size() < 6;
    Index const channels = cases.empty() ? 60 : cases.size() == 1 ? 12 : random.between(1, 3);
    Index image[2], output[2];
    for (int i = 0; i < 2; ++i) {
      image[i] = cases.empty() ? 28 : random.between(2, 9);
      if (!plain) {
        p.window[i] = random.between(1, 4);
        p.stride[i] = random.between(1, 3);
        p.dilation[i] = random.between(1, 3);
        p.pad_begin[i] = random.between(0, 3);
        p.pad_end[i] = random.between(0, 3);
      }
      if (cases.size() == 1) {
        image[i] = 20;
        p.window[i] = 3;
      }
      output[i] = pooling_extent(image[i], p.window[i], p.stride[i], p.pad_begin[i], p.pad_end[i],
                                 p.dilation[i], random.coin());
    }
    p.x = chwn16(channels, image[0], image[1]);
    p.y = chwn16(channels, output[0], output[1]);
    try {
      validate(p);  // throws for a window without a tap in the image
      cases.push_back(p);
    } catch (Error const&) {
    }
  }
  return cases;
}

std::string text_of(PoolingProblem const& p) {
  return std::string(name_of(p.mode)) + ", x " + to_string(p.x) + ", y " + to_string(p.y) + ", window " +
         std::to_string(p.window[0]) + " " + std::to_string(p.window[1]) + ", stride " +
         std::to_string(p.stride[0]) + " " + std::to_string(p.stride[1]) + ", dilation " +
         std::to_string(p.dilation[0]) + " " + std::to_string(p.dilation[1]) + ", padding " +
         std::to_string(p.pad_begin[0]) + " " + std::to_string(p.pad_begin[1]);
}

// Equal, or both NaN, or within a relative `tolerance`.
void expect_near(Floats& result, Floats& expected, float tolerance) {
  EXPECT_TRUE(result.intact()) << "written outside the output";
  for (Index i = 0; i < result.size(); ++i) {
    float const a = result.data()[i], b = expected.data()[i];
    bool const equal = a == b || (std::isnan(a) && std::isnan(b)) || std::fabs(a - b) <= tolerance;
    if (!equal) FAIL() << "element " << i << " is " << a << ", expected " << b;
  }
}

// Few distinct values, so that windows have ties; optionally NaN and infinities.
Floats with_ties(Random& random, Index size, bool finite) {
  Floats values = small_integers(random, size);
  for (float& value : values) {
    Index const kind = finite ? 0 : random.between(0, 19);
    if (kind == 19) value = nan;
    if (kind >= 14 && kind < 19) value = -infinity;
  }
  return values;
}

template <class Element>
void expect_maxima(PoolingProblem p, Random& random, DataType type) {
  p.indices = chwn16(p.y.extent(1), p.y.extent(2), p.y.extent(3), type);
  Floats x = with_ties(random, p.x.layout.size(), random.coin());
  Floats dy = small_integers(random, p.y.layout.size());
  Floats y_expected(dy.size(), poison), dx_expected(x.size(), poison);
  Guarded<Element> marks_expected(dy.size(), Element(99));
  PoolingProblem backward = p;
  backward.direction = Direction::backward;
  reference::run(p, {.x = x.data(), .y = y_expected.data(), .indices = marks_expected.data()});
  reference::run(backward,
                 {.dy = dy.data(), .saved_indices = marks_expected.data(), .dx = dx_expected.data()});
  for (Device const& device : devices()) {
    SCOPED_TRACE(text_of(p) + ", " + name_of(type) + ", " + name_of(device));
    Floats y(dy.size(), poison), dx(x.size(), poison);
    Guarded<Element> marks(dy.size(), Element(99));
    run_chwn16(p, device, {.x = x.data(), .y = y.data(), .indices = marks.data()});
    expect_near(y, y_expected, 0);
    EXPECT_TRUE(marks.intact() && marks.same_bits(marks_expected));
    run_chwn16(backward, device, {.dy = dy.data(), .saved_indices = marks.data(), .dx = dx.data()});
    expect_near(dx, dx_expected, 0);

    PoolingProblem bare = p, bare_backward = backward;
    bare.indices = bare_backward.indices = {};
    Floats bare_y(dy.size(), poison), bare_dx(x.size(), poison);
    run_chwn16(bare, device, {.x = x.data(), .y = bare_y.data()});
    EXPECT_TRUE(bare_y.intact() && bare_y.same_bits(y));
    run_chwn16(bare_backward, device, {.x = x.data(), .dy = dy.data(), .dx = bare_dx.data()});
    EXPECT_TRUE(bare_dx.intact() && bare_dx.same_bits(dx));
  }
}

TEST(Chwn16Pooling, MaximaAndTheirPlaces) {
  Random random(8);
  for (PoolingProblem const& p : pooling_cases(PoolingMode::max)) {
    expect_maxima<unsigned char>(p, random, DataType::u8);
    expect_maxima<int>(p, random, DataType::s32);
  }
}

TEST(Chwn16Pooling, Averages) {
  Random random(9);
  for (PoolingMode mode : {PoolingMode::average, PoolingMode::average_with_padding})
    for (PoolingProblem const& p : pooling_cases(mode)) {
      PoolingProblem backward = p;
      backward.direction = Direction::backward;
      Floats x = small_integers(random, p.x.layout.size()), dy = small_integers(random, p.y.layout.size());
      Floats y_expected(dy.size(), poison), dx_expected(x.size(), poison);
      reference::run(p, {.x = x.data(), .y = y_expected.data()});
      reference::run(backward, {.dy = dy.data(), .dx = dx_expected.data()});
      for (Device const& device : devices()) {
        SCOPED_TRACE(text_of(p) + ", " + name_of(device));
        Floats y(dy.size(), poison), dx(x.size(), poison);
        run_chwn16(p, device, {.x = x.data(), .y = y.data()});
        expect_near(y, y_expected, 1e-6f);
        run_chwn16(backward, device, {.dy = dy.data(), .dx = dx.data()});
        expect_near(dx, dx_expected, 4e-6f);  // up to 16 windows of up to 3 elements
      }
    }
}

template <class Problem>
std::string refusal(Problem const& problem, Device const& device) {
  return entry_of(make_plan(problem, device).considered, "chwn16").refusal;
}

TEST(Chwn16, RefusalsNameTheValueAndWhatIsLegal) {
  Device device;
  device.avx2 = true;
  ConvolutionProblem const legal = convolution_cases()[1];
  EXPECT_EQ(refusal(legal, device), "");
  EXPECT_EQ(make_plan(legal, device).kernel, "chwn16");

  if (this_device(Backend::cpu).avx512 == false) {
    Device more = device;
    more.avx512 = true;
    EXPECT_THROW((void)prepare(make_plan(legal, more)), Error);
  }

  Device plain = device;
  plain.avx2 = false;
  EXPECT_EQ(refusal(legal, plain), "the processor has neither AVX2 with FMA nor AVX-512; one is required");

  ConvolutionProblem p = legal;
  p.x.layout = image_layout(TensorFormat::chwn, 8, 6, 14, 14);
  p.y.layout = image_layout(TensorFormat::chwn, 8, 16, 10, 10);
  EXPECT_NE(refusal(p, device).find("N must be 16, not 8"), std::string::npos) << refusal(p, device);

  p = legal;
  p.y = describe(DataType::f32, {16, 16, 10, 10});
  EXPECT_NE(refusal(p, device).find("y is f32 (16, 16, 10, 10)"), std::string::npos) << refusal(p, device);
  EXPECT_NE(refusal(p, device).find("it must be dense CHWN, strides (1, 1600, 160, 16)"), std::string::npos);

  p = legal;
  p.w.type = DataType::bf16;
  EXPECT_EQ(refusal(p, device), "w is bf16 (16, 6, 5, 5); its type must be f32");

  p = legal;
  p.w.layout = image_layout(TensorFormat::chwn, 16, 6, 5, 5);  // as with --layout chwn
  EXPECT_EQ(refusal(p, device), "");

  p = legal;
  for (char const* text : {"2 * acc", "acc + 1", "tanh(acc)", "relu(relu(acc) + bias[k])", "bias[k]",
                           "acc - bias[k]", "acc + bias[q]", "store(raw, acc); relu(acc)", "acc + alpha"}) {
    p.epilogue = {};
    p.epilogue.expression = epilogue::parse(text, epilogue::convolution_indices);
    if (!p.epilogue.expression.operands().empty())
      p.epilogue.operands = {
          describe(DataType::f32, {p.epilogue.expression.operands()[0].indices[0] == "k" ? 16 : 10})};
    if (!p.epilogue.expression.stores().empty()) p.epilogue.stores = {p.y};
    EXPECT_NE(refusal(p, device).find("it must be acc, acc + bias[k], relu(acc) or relu(acc + bias[k])"),
              std::string::npos)
        << text << ": " << refusal(p, device);
  }
  p = legal;
  p.direction = ConvolutionDirection::data;
  p.epilogue.expression = epilogue::parse("relu(acc)", epilogue::convolution_indices);
  EXPECT_EQ(refusal(p, device), "the epilogue is relu(acc); the data gradient's must be acc");

  PoolingProblem wide;
  wide.direction = Direction::backward;
  wide.window[0] = wide.window[1] = 16;
  wide.x = chwn16(1, 16, 16);
  wide.y = chwn16(1, 1, 1);
  EXPECT_EQ(refusal(wide, device), "the window has 16 x 16 taps; at most 255 are supported without indices");
  wide.mode = PoolingMode::average;
  EXPECT_EQ(refusal(wide, device), "");
}

}  // namespace
}  // namespace cosmati
