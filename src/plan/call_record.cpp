// Writes the lines of COSMATI_RECORD.
#include "src/plan/call_record.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <type_traits>

#include "src/io/file.h"
#include "src/plan/problem_fields.h"

namespace cosmati::plan {
namespace {

using Json = nlohmann::ordered_json;  // keys in the order of problem_fields.h

template <class Problem>
Json fields_of(Problem const& problem);

Json value_of(TensorDescription const& tensor) {
  if (!tensor.present()) return nullptr;
  Json extents = Json::array(), strides = Json::array();
  for (int d = 0; d < tensor.layout.rank(); ++d) {
    extents.push_back(tensor.extent(d));
    strides.push_back(tensor.layout.stride[d]);
  }
  return {{"type", name_of(tensor.type)},
          {"extents", extents},
          {"strides", strides},
          {"alignment", tensor.alignment}};
}
Json values_of(std::vector<TensorDescription> const& tensors) {
  Json list = Json::array();
  for (TensorDescription const& tensor : tensors) list.push_back(value_of(tensor));
  return list;
}
Json value_of(Epilogue const& epilogue) {
  if (epilogue.expression == epilogue::Expression()) return nullptr;
  return {{"expression", to_string(epilogue.expression)},
          {"operands", values_of(epilogue.operands)},
          {"stores", values_of(epilogue.stores)}};
}
Json value_of(std::optional<DataType> const& type) { return type ? Json(name_of(*type)) : Json(nullptr); }
Json value_of(Index const (&pair)[2]) { return {pair[0], pair[1]}; }
Json value_of(std::vector<GemmProblem> const& members) {
  Json list = Json::array();
  for (GemmProblem const& member : members) list.push_back(fields_of(member));
  return list;
}
template <class Value>
requires(std::is_arithmetic_v<Value>) Json value_of(Value value) { return value; }
template <class Value>
requires(std::is_enum_v<Value>) Json value_of(Value value) {
  return names_of(value).at(static_cast<std::size_t>(value));
}

// The fields of a problem; empty for problems that are counted but not replayed.
template <class Problem>
Json fields_of(Problem const& problem) {
  Json object = Json::object();
  if constexpr (requires { visit_fields(problem, [](char const*, auto const&) {}); })
    visit_fields(problem, [&](char const* name, auto const& field) { object[name] = value_of(field); });
  return object;
}

std::string const& path() {
  static std::string const name = [] {
    char const* const given = std::getenv("COSMATI_RECORD");
    std::string const file = given == nullptr ? "" : given;
    if (!file.empty()) io::check_writable(file);
    // Opening a pipe without a reader would block the process at exit.
    std::error_code ignored;
    if (std::filesystem::is_fifo(file, ignored))
      throw Error(ErrorCode::system, "COSMATI_RECORD " + file + " is a pipe; expected a regular file");
    return file;
  }();
  return name;
}

// The calls of this process. Never destroyed, since kernels may run until the process exits.
struct Calls {
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<std::atomic<long long>>> runs;
};

Calls& calls() {
  static Calls* const all = [] {
    std::atexit([] {
      Calls& known = calls();
      std::lock_guard const lock(known.mutex);
      try {
        for (auto const& [call, runs] : known.runs)
          if (*runs > 0)
            io::append_line(path(), call.substr(0, call.size() - 1) +
                                        ",\"runs\":" + std::to_string(runs->load()) + "}\n");
      } catch (std::exception const& error) {
        std::fprintf(stderr, "cosmati: COSMATI_RECORD: %s\n", error.what());
      }
    });
    return new Calls;
  }();
  return *all;
}

}  // namespace

int& Preparation::depth() {
  thread_local int count = 0;
  return count;
}

bool Preparation::is_recorded() const { return depth() == 1 && !path().empty(); }

template <class Problem>
std::string recorded_call(Plan<Problem> const& plan) {
  Json const line = {{"record", 1},
                     {"subject", subject_of(plan.problem)},
                     {"backend", name_of(plan.device.backend)},
                     {"kernel", plan.kernel},
                     {"batch_invariant", plan.batch_invariant},
                     {"problem", fields_of(plan.problem)}};
  return line.dump();
}

std::atomic<long long>& runs_of(std::string const& call) {
  Calls& known = calls();
  std::lock_guard const lock(known.mutex);
  auto& runs = known.runs[call];
  if (!runs) runs = std::make_unique<std::atomic<long long>>(0);
  return *runs;
}

#define COSMATI_RECORDED(Problem, name) template std::string recorded_call(Plan<Problem> const&);
COSMATI_EACH_RECORDED_OPERATION(COSMATI_RECORDED)
#undef COSMATI_RECORDED

}  // namespace cosmati::plan
