// Measures every candidate that accepts a problem.
#include "cosmati/ops/find.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "src/candidates/measure.h"
#include "src/plan/operations.h"

namespace cosmati {
namespace {

// The arguments of a problem, each in separate memory, with the storage they refer to.
template <class Problem>
class OwnArguments {
 public:
  OwnArguments(Problem const& problem, Device const& device) : data_(device) {
    Problem::visit_tensors(problem,
                           [&](char const* name, Role, TensorDescription const& tensor, auto member) {
                             arguments.*member = argument(problem, name, tensor);
                           });
    if constexpr (requires { problem.epilogue; }) bind(problem.epilogue);
  }
  OwnArguments(OwnArguments const&) = delete;
  OwnArguments& operator=(OwnArguments const&) = delete;

  typename Problem::Arguments arguments = {};

 private:
  void* argument(Problem const& problem, char const* name, TensorDescription const& tensor) {
    if constexpr (TakesPointers<Problem>)
      if (problem.by_pointers) {
        TensorDescription matrix = tensor;
        matrix.layout.shape[0] = std::min<Index>(tensor.extent(0), 1);
        return data_.array(name, matrix, tensor.extent(0));
      }
    return data_.tensor(name, tensor);
  }

  void bind(Epilogue const& epilogue) {
    for (auto const& operand : epilogue.operands) operands_.push_back(data_.tensor("operand", operand));
    for (auto const& store : epilogue.stores) stores_.push_back(data_.tensor("store", store));
    scalars_.assign(epilogue.expression.scalars().size(), 0.5);
    arguments.operands = operands_;
    arguments.stores = stores_;
    arguments.scalars = scalars_;
  }

  plan::MeasuredData data_;
  std::vector<void const*> operands_;
  std::vector<void*> stores_;
  std::vector<double> scalars_;
};

// The names of the candidates that are worth measuring, in order of preference.
template <class Problem>
std::vector<std::string> names_to_measure(Plan<Problem> const& plan, FindOptions const& options) {
  constexpr char const* naive = "reference";
  if (!options.plan.kernel.empty()) return {plan.kernel};
  std::vector<std::string> names;
  for (Considered const& entry : plan.considered)
    if (entry.refusal.empty() && (options.reference || entry.kernel != naive)) names.push_back(entry.kernel);
  return names.empty() ? std::vector<std::string>{plan.kernel} : names;
}

}  // namespace

template <class Problem>
std::vector<Found<Problem>> find(Problem const& problem, Device const& device, FindOptions const& options) {
  constexpr double hopeless = 4;  // times the best candidate's time
  if (options.plan.batch_invariant)
    throw Error(
        ErrorCode::bad_request,
        "find selects the fastest kernel it measures, which depends on the number of rows and images; it "
        "does not support batch-invariant plans");
  Plan<Problem> const preferred = make_plan(problem, device, options.plan);
  OwnArguments<Problem> own(problem, device);
  std::vector<Found<Problem>> found;
  double best = std::numeric_limits<double>::infinity();
  for (std::string const& name : names_to_measure(preferred, options)) {
    PlanOptions one = options.plan;
    one.kernel = name;
    Prepared<Problem> prepared =
        prepare(name == preferred.kernel ? preferred : make_plan(problem, device, one));
    plan::MeasuredData scratch(device);
    void* const workspace = scratch.workspace(prepared.workspace_bytes());
    auto const call = [&](Stream stream) { prepared.run(own.arguments, workspace, stream); };
    double const seconds = plan::measure(device, call, options.seconds, hopeless * best);
    best = std::min(best, seconds);
    found.push_back({std::move(prepared), seconds});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](auto const& x, auto const& y) { return x.seconds < y.seconds; });
  return found;
}

#define COSMATI_FIND(Problem, name) \
  template std::vector<Found<Problem>> find(Problem const&, Device const&, FindOptions const&);
COSMATI_EACH_OPERATION(COSMATI_FIND)
#undef COSMATI_FIND
#undef COSMATI_FIND

}  // namespace cosmati
