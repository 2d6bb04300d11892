// libFuzzer target: any text either parses, and then survives printing and both evaluators, or throws one
// Error.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "cosmati/epilogue/check.h"
#include "cosmati/epilogue/cuda_text.h"
#include "cosmati/epilogue/evaluate.h"
#include "cosmati/epilogue/parse.h"
#include "cosmati/epilogue/vector_program.h"
#include "cosmati/ops/error.h"

namespace {

using namespace cosmati::epilogue;

void require(bool condition) {
  if (!condition) std::abort();
}

void exercise(Expression const& expression) {
  std::string const printed = to_string(expression);
  if (printed.size() <= max_text_length) require(parse(printed) == expression);
  require(!to_cuda(expression).empty());
  require(expression.nodes().size() <= max_nodes + 8);

  std::vector<double> const scalars(expression.scalars().size(), 0.75),
      operands(expression.operands().size(), -1.25);
  std::vector<double> stores(expression.stores().size());
  evaluate(expression, {1.5, -0.5, scalars, operands, stores});

  constexpr int count = 19;
  std::vector<double> const acc(count, 1.5), c(count, -0.5);
  std::vector<double> result(count);
  std::vector<std::vector<double>> outputs(stores.size(), std::vector<double>(count));
  std::vector<double*> output_pointers;
  for (auto& output : outputs) output_pointers.push_back(output.data());
  std::vector<Stream<double>> streams;
  for (double const& operand : operands) streams.push_back({&operand, 0});
  VectorProgram<double> const program(expression, VectorLevel::baseline);
  std::vector<std::byte> scratch(program.scratch_bytes());
  program.run(
      count,
      {{acc.data(), 1}, {c.data(), 1}, scalars.data(), streams.data(), result.data(), output_pointers.data()},
      scratch.data());
  for (double got : result) require(got == result[0] || std::isnan(got));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  std::string_view const text(reinterpret_cast<char const*>(data), size);
  try {
    Expression const expression = parse(text);
    exercise(expression);
    check(expression, {});
  } catch (cosmati::Error const& error) {
    std::string_view const message = error.what();
    std::size_t lines = 1;
    for (char const character : message) lines += character == '\n' ? 1 : 0;
    require(error.code() == cosmati::ErrorCode::bad_request && lines == 3 && message.back() == '^');
  }
  return 0;
}
