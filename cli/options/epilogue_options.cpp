// The epilogue options of the command line.
#include "cli/options/epilogue_options.h"

#include <algorithm>
#include <cmath>

#include "cli/output/text.h"
#include "cosmati/epilogue/check.h"
#include "cosmati/epilogue/parse.h"

namespace cosmati::cli {
namespace {

constexpr char const* default_expression = "alpha*acc + beta*c";
constexpr std::string_view operand_prefix = "operand ";

std::map<std::string, double> read_settings(std::vector<std::string> const& settings) {
  std::map<std::string, double> values;
  for (std::string const& setting : settings) {
    auto const equals = setting.find('=');
    if (equals == std::string::npos || equals == 0)
      throw Error(ErrorCode::bad_request,
                  "--set '" + setting + "' is invalid; valid values: NAME=NUMBER, e.g. alpha=1.5");
    std::string const name = setting.substr(0, equals);
    values[name] = parse_number(setting.substr(equals + 1), "--set " + name);
  }
  return values;
}

// A dense operand with elements in the order of the result's; column-major if the result is.
TensorDescription made_operand(std::vector<std::string> const& letters,
                               std::map<std::string, Index> const& extents,
                               std::span<std::string_view const> indices, TensorDescription const& result) {
  auto const result_stride = [&](std::string const& letter) {
    auto const found = std::find(indices.begin(), indices.end(), letter);
    return found == indices.end() ? Index{0}
                                  : result.layout.stride[static_cast<int>(found - indices.begin())];
  };
  Layout layout;
  std::vector<int> order;  // dimension numbers, fastest last
  for (std::string const& letter : letters) {
    order.push_back(layout.shape.rank);
    layout.shape[layout.shape.rank++] = extents.at(letter);
  }
  std::stable_sort(order.begin(), order.end(), [&](int x, int y) {
    return result_stride(letters[static_cast<std::size_t>(x)]) >
           result_stride(letters[static_cast<std::size_t>(y)]);
  });
  Index stride = 1;
  for (auto dimension = order.rbegin(); dimension != order.rend(); ++dimension) {
    layout.stride[*dimension] = stride;
    stride *= layout.extent(*dimension);
  }
  return {result.type == DataType::f64 ? DataType::f64 : DataType::f32, layout};
}

}  // namespace

void add_epilogue_options(Options& options, EpilogueText& text, bool has_source) {
  options
      .text("--epilogue", text.expression, "EXPRESSION",
            "applied to the sum (default: alpha*acc + beta*c; see: cosmati list epilogue-functions)")
      .texts("--set", text.settings, "NAME=NUMBER",
             has_source ? "a scalar of the epilogue (default: alpha 1; beta 0, or 1 if run has --c and no "
                          "--epilogue)"
                        : "a scalar of the epilogue (default: alpha 1, beta 0)");
}

BoundEpilogue::BoundEpilogue(EpilogueText const& text, std::span<std::string_view const> indices,
                             bool made_here, bool source_given)
    : original_(epilogue::parse(text.expression.empty() ? default_expression : text.expression, indices)),
      values_(read_settings(text.settings)),
      indices_(indices),
      made_here_(made_here) {
  double drawn = 0.75;
  for (auto const& scalar : original_.scalars()) {
    if (values_.contains(scalar.name)) continue;
    if (scalar.name == "alpha")
      values_["alpha"] = 1;
    else if (scalar.name == "beta")
      values_["beta"] = source_given && text.expression.empty() ? 1 : 0;
    else if (made_here_)
      values_[scalar.name] = drawn += 0.5;
  }
  std::map<std::string, double> folded;
  for (auto const& [name, value] : values_)
    if (value == 0 || value == 1) folded[name] = value;
  bound_ = epilogue::bind_scalars(original_, folded);
}

Epilogue BoundEpilogue::complete(Inputs const& inputs, std::map<std::string, Index> const& extents,
                                 TensorDescription const& result) {
  epilogue::Provided provided;
  for (auto const& [name, value] : values_) provided.scalars.insert(name);
  for (auto const& [name, description] : inputs.all())
    if (name.starts_with(operand_prefix))
      provided.operands[name.substr(operand_prefix.size())] = inputs.shape(name);
  provided.extents = extents;

  Epilogue epilogue{bound_, {}, {}};
  for (auto const& operand : bound_.operands()) {
    std::string const key = std::string(operand_prefix) + operand.name;
    if (made_here_ && !inputs.has(key)) {
      epilogue.operands.push_back(made_operand(operand.indices, extents, indices_, result));
      provided.operands[operand.name] = epilogue.operands.back().shape();
    } else if (inputs.has(key)) {
      epilogue.operands.push_back(inputs.at(key));
    }
  }
  provided.source = true;
  warnings_ = epilogue::check(original_, provided);
  if (inputs.has("c") && !original_.uses_source())
    warnings_.push_back("the epilogue '" + original_.text() + "' does not name c: --c is not used");
  if (inputs.has("c") && original_.uses_source() && !bound_.uses_source())
    warnings_.push_back("the epilogue '" + original_.text() +
                        "' multiplies c by 0: --c is not used (--set beta=1 adds it)");
  provided.source = inputs.has("c") || made_here_;
  epilogue::check(bound_, provided);
  epilogue.stores.assign(bound_.stores().size(), result);
  return epilogue;
}

std::vector<double> BoundEpilogue::scalars() const {
  std::vector<double> result;
  for (auto const& scalar : bound_.scalars()) result.push_back(values_.at(scalar.name));
  return result;
}

bool BoundEpilogue::is_plain() const { return original_.text() == default_expression; }

double BoundEpilogue::value_of(std::string const& scalar) const {
  auto const found = values_.find(scalar);
  return found == values_.end() ? 0 : found->second;
}

bool BoundEpilogue::exact() const {
  auto const in_eighths = [](double value) {
    return std::fabs(value) <= 64 && value * 8 == std::floor(value * 8);
  };
  using epilogue::Op;
  for (auto const& node : bound_.nodes()) switch (node.op) {
      case Op::constant:
        if (!in_eighths(node.constant)) return false;
        break;
      case Op::divide:
      case Op::sqrt:
      case Op::rsqrt:
      case Op::exp:
      case Op::log:
      case Op::tanh:
      case Op::sigmoid:
      case Op::elu:
      case Op::gelu:
      case Op::gelu_tanh:
      case Op::silu:
      case Op::erf:
      case Op::normal_cdf:
      case Op::pow: return false;
      default: break;
    }
  auto const values = scalars();
  return std::all_of(values.begin(), values.end(), in_eighths);
}

double BoundEpilogue::slope() const {
  if (bound_ == epilogue::Expression()) return 1;
  double product = 1;
  for (double const scalar : scalars()) product *= std::max(1.0, std::fabs(scalar));
  return product;
}

}  // namespace cosmati::cli
