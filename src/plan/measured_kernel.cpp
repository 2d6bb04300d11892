// Classes of problems whose candidates were measured.
#include "src/plan/measured_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "cosmati/ops/convolution.h"
#include "cosmati/ops/gemm.h"
#include "src/plan/gemm/policies.h"
#include "src/plan/gemm/tuning.h"

namespace cosmati::plan {
namespace {

using Words = std::vector<std::pair<std::string, std::string>>;

constexpr char const* convolution_keys[] = {"direction", "x",   "w",        "y",      "db",
                                            "stride",    "pad", "dilation", "groups", "epilogue"};
constexpr char const* directions[] = {"forward", "data", "filter", "bias"};

char const* name_of_direction(ConvolutionDirection direction) {
  return directions[static_cast<int>(direction)];
}

// True if the layouts have equal strides, ignoring those along extents of 1.
bool lies_as(Layout const& layout, Layout const& other) {
  for (int d = 0; d < layout.rank(); ++d)
    if (layout.extent(d) > 1 && layout.stride[d] != other.stride[d]) return false;
  return true;
}

std::string arrangement_of(Layout const& layout) {
  if (layout.rank() == 1 && lies_as(layout, row_major(layout.shape))) return "dense";
  if (layout.rank() == 4)
    for (TensorFormat const format : {TensorFormat::nchw, TensorFormat::nhwc, TensorFormat::chwn})
      if (lies_as(layout, image_layout(format, layout.extent(0), layout.extent(1), layout.extent(2),
                                       layout.extent(3))))
        return name_of(format);
  std::string strides;
  for (int d = 0; d < layout.rank(); ++d)
    strides += fmt::format("{}{}", d == 0 ? "" : ",", layout.extent(d) > 1 ? layout.stride[d] : 0);
  return strides;
}

// A tensor as text, such as "f16/nhwc/64x64x56x56/16": data type, layout, extents, and alignment in bytes, at
// most 64, since no kernel distinguishes larger ones.
std::string tensor_word(TensorDescription const& tensor) {
  if (!tensor.present()) return "none";
  std::string extents;
  for (int d = 0; d < tensor.layout.rank(); ++d)
    extents += fmt::format("{}{}", d == 0 ? "" : "x", tensor.extent(d));
  return fmt::format("{}/{}/{}/{}", name_of(tensor.type), arrangement_of(tensor.layout), extents,
                     std::min(tensor.alignment, 64));
}

std::string epilogue_word(Epilogue const& epilogue) {
  if (epilogue.expression == epilogue::Expression()) return "none";
  auto const arrays =
      std::count_if(epilogue.operands.begin(), epilogue.operands.end(),
                    [](TensorDescription const& operand) { return operand.layout.rank() > 1; }) +
      static_cast<std::ptrdiff_t>(epilogue.stores.size());
  bool const is_long = epilogue_schedule(epilogue.expression) == EpilogueSchedule::staged;
  return (is_long ? "long" : "light") + (arrays > 0 ? fmt::format("+{}", arrays) : "");
}

bool is_number(std::string const& text) {
  Index number = 0;
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= 0;
}

// The number of non-negative integers between separators; 0 if one is invalid.
int count_of_numbers(std::string text, char separator) {
  for (int count = 1;; ++count) {
    std::size_t const end = std::min(text.find(separator), text.size());
    if (!is_number(text.substr(0, end))) return 0;
    if (end == text.size()) return count;
    text.erase(0, end + 1);
  }
}

void check_tensor(std::string const& key, std::string const& value) {
  std::vector<std::string> parts(1);
  for (char const letter : value)
    if (letter == '/')
      parts.emplace_back();
    else
      parts.back() += letter;
  int const rank = key == "db" ? 1 : 4;
  if (parts.size() != 4 || count_of_numbers(parts[2], 'x') != rank || !is_number(parts[3]))
    refuse_word(key, value, "type, layout, extents and alignment, such as f16/nhwc/64x64x56x56/16");
  check_type_word(key, value, parts[0]);
  bool const named =
      rank == 1 ? parts[1] == "dense" : parts[1] == "nchw" || parts[1] == "nhwc" || parts[1] == "chwn";
  if (!named && count_of_numbers(parts[1], ',') != rank)
    refuse_word(key, value, "a layout of nchw, nhwc or chwn, or the strides as numbers with commas");
}

void check_convolution_word(std::string const& key, std::string const& value) {
  if (key == "direction") {
    for (char const* const known : directions)
      if (value == known) return;
    refuse_word(key, value, "forward, data, filter or bias");
  }
  bool const may_be_absent = key == "db" || key == "x" || key == "w";
  if (key == "x" || key == "w" || key == "y" || key == "db") {
    if (!(may_be_absent && value == "none")) check_tensor(key, value);
    return;
  }
  if (key == "epilogue") {
    std::string const weight = value.substr(0, value.find('+'));
    std::string const more = value.size() > weight.size() ? value.substr(weight.size() + 1) : "1";
    if ((weight != "none" && weight != "light" && weight != "long") || !is_number(more))
      refuse_word(key, value, "none, light or long, and +N for N more arrays");
    return;
  }
  int const numbers = key == "groups" ? 1 : key == "pad" ? 4 : 2;
  if (count_of_numbers(value, ',') != numbers)
    refuse_word(key, value,
                fmt::format("{} integer{}", numbers, numbers == 1 ? "" : "s separated by commas"));
}

std::string taken(Words& words, std::string const& key) {
  auto const found =
      std::find_if(words.begin(), words.end(), [&](auto const& word) { return word.first == key; });
  if (found == words.end()) throw Error(ErrorCode::bad_file, "the key " + key + " is missing");
  std::string value = found->second;
  words.erase(found);
  return value;
}

}  // namespace

std::string measured_class(ConvolutionProblem const& problem, Backend backend) {
  auto const& p = problem;
  if (p.has_depth()) return {};
  return fmt::format(
      "conv backend={} direction={} x={} w={} y={} db={} stride={},{} pad={},{},{},{} dilation={},{} "
      "groups={} "
      "epilogue={}",
      name_of(backend), name_of_direction(p.direction), tensor_word(p.x), tensor_word(p.w), tensor_word(p.y),
      tensor_word(p.db), p.stride[0], p.stride[1], p.pad_begin[0], p.pad_end[0], p.pad_begin[1], p.pad_end[1],
      p.dilation[0], p.dilation[1], p.groups, epilogue_word(p.epilogue));
}

std::string measured_class(GemmProblem const& problem, Backend backend) {
  std::string words = gemm_class(problem, "");
  if (words.empty()) return {};
  return words.insert(words.find(' '), std::string(" backend=") + name_of(backend));
}

TuningLine const* line_with_bias_gradient(ConvolutionProblem const& problem, Device const& device,
                                          PlanOptions const& options) {
  if (problem.direction != ConvolutionDirection::filter || problem.db.present()) return nullptr;
  ConvolutionProblem with_bias = problem;
  with_bias.db = describe(problem.w.type, Shape(problem.y.extent(1)));
  TuningLine const* const line = line_of_class(options, measured_class(with_bias, device.backend), device);
  return line != nullptr && line->recipe.ends_with(bias_gradient_apart) ? line : nullptr;
}

std::string device_name(Device const& device) {
  if (device.backend == Backend::cuda || device.backend == Backend::emulator) return tuning_name(device.gpu);
  std::string name =
      fmt::format("{}, {} thread{}", name_of(device.backend), device.threads, device.threads == 1 ? "" : "s");
  if (device.backend == Backend::reference) return name;
  auto const add = [&name](bool has, char const* what) {
    if (has) name += std::string(", ") + what;
  };
  add(device.avx2, "avx2");
  add(device.avx512, "avx512");
  add(device.avx512_bf16, "avx512_bf16");
  add(device.avx512_vnni, "avx512_vnni");
  add(device.onednn, "onednn");
  add(device.openblas, "openblas");
  return name;
}

std::string measured_note(TuningLine const& line, std::string const& refusal, std::string const& recipe) {
  if (!refusal.empty()) return fmt::format("{} is ignored: the kernel is rejected", line.origin);
  std::string note = fmt::format("measured, {}: {} took {:.4g} us, as planned {:.4g} us", line.origin,
                                 line.measured, line.seconds * 1e6, line.planned_seconds * 1e6);
  if (recipe != line.recipe && !line.recipe.empty()) note += ", with another recipe: " + line.recipe;
  return note;
}

void parse_measured_words(std::string const& subject, Words const& words, TuningLine& line) {
  Words left = words;
  std::string const backend = taken(left, "backend");
  try {
    (void)parse_backend(backend);
  } catch (Error const& error) {
    throw Error(ErrorCode::bad_file, "backend=" + backend + ": " + error.what());
  }
  line.problems = subject + " backend=" + backend;
  if (subject == "gemm") {
    line.problems += take_gemm_class(left, line.measured);
  } else {
    for (std::string const key : convolution_keys) {
      std::string const value = taken(left, key);
      check_convolution_word(key, value);
      line.problems += ' ' + key + '=' + value;
    }
  }
  line.kernel = taken(left, "kernel");
  if (line.kernel.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789") != std::string::npos)
    refuse_word("kernel", line.kernel, "a name as cosmati list kernels prints them");
  line.recipe = taken(left, "recipe");
  if (line.recipe == "none") line.recipe.clear();
  if (!left.empty())
    throw Error(ErrorCode::bad_file,
                "unknown key '" + left.front().first + "' in a line for " + subject + " with a backend");
}

}  // namespace cosmati::plan
