// The peer's side: one library, loaded in this process, times one product.
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdio>
#include <functional>
#include <iostream>
#include <vector>

#include "cli/bench/peers/peer.h"
#include "cli/bench/timing.h"
#include "cli/data/random_data.h"
#include "cli/machine.h"
#include "cosmati/ops/error.h"

namespace cosmati::cli {
namespace {

class Library {
 public:
  Library(std::string const& name, std::vector<std::string> const& files) {
    std::string const path = find_library(files);
    if (path.empty()) throw Error(ErrorCode::unavailable, name + " is not installed: no " + files.front());
    handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr) throw Error(ErrorCode::unavailable, dlerror());
  }
  template <class Function>
  Function* function(char const* name) const {
    void* const symbol = dlsym(handle_, name);
    if (symbol == nullptr)
      throw Error(ErrorCode::unavailable, std::string("the library has no function ") + name);
    return reinterpret_cast<Function*>(symbol);
  }

 private:
  void* handle_;
};

struct Operands {
  Tensor a, b, d;
};

std::vector<Operands> make_operands(PeerProblem const& problem) {
  nets::Random random(1, 2);
  std::vector<Operands> sets;
  for (long long i = 0; i < problem.buffers; ++i) {
    sets.push_back({Tensor(problem.type, {problem.batch, problem.k, problem.m}),
                    Tensor(problem.type, {problem.batch, problem.n, problem.k}),
                    Tensor(problem.type, {problem.batch, problem.n, problem.m})});
    fill_random(sets.back().a, "a", {}, random);
    fill_random(sets.back().b, "b", {}, random);
    sets.back().d.fill(0);
  }
  return sets;
}

// Calls product(a, b, d) for each matrix of the batch, with the next set of operands each time.
template <class Number, class Product>
std::function<void()> rotating(PeerProblem const& problem, std::vector<Operands>& sets, Product product) {
  return [&problem, &sets, product, next = std::size_t{0}]() mutable {
    Operands& set = sets[next];
    next = (next + 1) % sets.size();
    for (Index i = 0; i < problem.batch; ++i)
      product(set.a.as<Number>() + i * problem.m * problem.k, set.b.as<Number>() + i * problem.k * problem.n,
              set.d.as<Number>() + i * problem.m * problem.n);
  };
}

struct Service {
  std::string version;
  std::function<void()> call;
};

Service open_onednn(PeerProblem const& problem, std::vector<Operands>& sets) {
  if (problem.type != DataType::f32)
    throw Error(ErrorCode::unavailable,
                std::string("peer onednn is timed only for f32, not ") + name_of(problem.type));
  static Library const library("oneDNN", {"libdnnl.so.2", "libdnnl.so.3"});
  using Sgemm = int(char, char, Index, Index, Index, float, float const*, Index, float const*, Index, float,
                    float*, Index);
  struct Version {
    int major, minor, patch;
    char const* hash;
  };
  auto* const sgemm = library.function<Sgemm>("dnnl_sgemm");
  auto const* const version = library.function<Version const*()>("dnnl_version")();
  // oneDNN is row-major, so it computes the transposed product b^T * a^T on the same buffers.
  bool const a_transposed = problem.layout[0] == 't', b_transposed = problem.layout[1] == 't';
  auto const product = [=, m = problem.m, n = problem.n, k = problem.k](float const* a, float const* b,
                                                                        float* d) {
    sgemm(b_transposed ? 'T' : 'N', a_transposed ? 'T' : 'N', n, m, k, 1.0f, b, b_transposed ? n : k, a,
          a_transposed ? k : m, 0.0f, d, m);
  };
  return {fmt::format("oneDNN {}.{}.{}", version->major, version->minor, version->patch),
          rotating<float>(problem, sets, product)};
}

template <class Number>
Service open_openblas_for(PeerProblem const& problem, std::vector<Operands>& sets, Library const& library,
                          char const* name) {
  using Gemm = void(int, int, int, int, int, int, Number, Number const*, int, Number const*, int, Number,
                    Number*, int);
  constexpr int column_major = 102, plain = 111, transposed = 112;
  auto* const gemm = library.function<Gemm>(name);
  bool const a_transposed = problem.layout[0] == 't', b_transposed = problem.layout[1] == 't';
  int const m = static_cast<int>(problem.m), n = static_cast<int>(problem.n), k = static_cast<int>(problem.k);
  auto const product = [=](Number const* a, Number const* b, Number* d) {
    gemm(column_major, a_transposed ? transposed : plain, b_transposed ? transposed : plain, m, n, k,
         Number{1}, a, a_transposed ? k : m, b, b_transposed ? n : k, Number{0}, d, m);
  };
  return {std::string(library.function<char*()>("openblas_get_config")()) + ", " +
              library.function<char*()>("openblas_get_corename")(),
          rotating<Number>(problem, sets, product)};
}

Service open_openblas(PeerProblem const& problem, std::vector<Operands>& sets) {
  static Library const library("OpenBLAS", {"libopenblas.so.0"});
  for (Index const extent : {problem.m, problem.n, problem.k})
    if (extent > 2147483647) throw Error(ErrorCode::unavailable, "OpenBLAS supports extents below 2^31");
  if (problem.type == DataType::f32) return open_openblas_for<float>(problem, sets, library, "cblas_sgemm");
  if (problem.type == DataType::f64) return open_openblas_for<double>(problem, sets, library, "cblas_dgemm");
  throw Error(ErrorCode::unavailable,
              std::string("OpenBLAS supports f32 and f64, not ") + name_of(problem.type));
}

}  // namespace

void serve_peer(PeerProblem const& problem) {
  auto sets = make_operands(problem);
  Service service;
  try {
    if (problem.peer == "onednn")
      service = open_onednn(problem, sets);
    else if (problem.peer == "openblas")
      service = open_openblas(problem, sets);
    else
      throw Error(ErrorCode::unavailable, "it is not available in this build; onednn and openblas are");
  } catch (Error const& error) {
    std::cout << error.what() << std::endl;
    return;
  }
  service.call();
  std::cout << "ready " << service.version << std::endl;
  for (double seconds = 0; std::cin >> seconds;) {
    if (seconds == 0) {
      warm_up(service.call);
      std::cout << "0 0 0" << std::endl;
      continue;
    }
    Slice const slice = time_slice(service.call, seconds);
    std::cout << fmt::format("{} {} {}", slice.minimum, quantile(slice.samples, 0.5), slice.samples.size())
              << std::endl;
  }
}

}  // namespace cosmati::cli
