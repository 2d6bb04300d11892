// Opens OpenBLAS with one thread and the kernels that suit this processor.
#include "src/backend/cpu/gemm/openblas.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string_view>
#include <thread>

#include "cosmati/epilogue/vector_level.h"
#include "cosmati/ops/error.h"
#include "src/backend/cpu/runtime/address_space.h"
#include "src/backend/cpu/runtime/environment_setting.h"

namespace cosmati::cpu {
namespace {

template <class Real>
using Product = void (*)(int order, int transposed_a, int transposed_b, int m, int n, int k, Real alpha,
                         Real const* a, int lda, Real const* b, int ldb, Real beta, Real* c, int ldc);

struct Library {
  Product<double> dgemm = nullptr;
  Product<float> sgemm = nullptr;
  std::string description;
};

// OpenBLAS's own threads would compete with this library's.
void* open_library() {
  EnvironmentSetting const threads("OPENBLAS_NUM_THREADS", "1");
  EnvironmentSetting const core("OPENBLAS_CORETYPE", openblas_core_type(), true);
  return dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
}

// If another part of this process has opened the library, its number of threads must not be changed.
bool used_by_others(std::string& description) {
  void* const handle = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_NOLOAD);
  if (handle == nullptr) return false;
  auto const threads = reinterpret_cast<int (*)()>(dlsym(handle, "openblas_get_num_threads"));
  int const count = threads == nullptr ? 0 : threads();
  dlclose(handle);
  if (count == 1) return false;
  description = "libopenblas.so.0 is used by another part of this process, with " + std::to_string(count) +
                " threads; one is required here";
  return true;
}

// OpenBLAS allocates a buffer for each thread and retries forever if an allocation fails.
bool leaves_too_little(std::string& description) {
  constexpr std::size_t for_each_thread = std::size_t{64} << 20;
  std::size_t const enough = (4 + std::size_t{std::thread::hardware_concurrency()}) * for_each_thread;
  if (address_space_has(enough)) return false;
  description = "a limit of this process (ulimit -v) leaves less than the " + std::to_string(enough >> 20) +
                " MiB of address space that libopenblas.so.0 may need";
  return true;
}

Library load() {
  Library library;
  if (leaves_too_little(library.description)) return library;
  if (used_by_others(library.description)) return library;
  void* const handle = open_library();
  if (handle == nullptr) {
    char const* const reason = dlerror();
    library.description = reason != nullptr ? reason : "libopenblas.so.0 cannot be opened";
    return library;
  }
  library.dgemm = reinterpret_cast<Product<double>>(dlsym(handle, "cblas_dgemm"));
  library.sgemm = reinterpret_cast<Product<float>>(dlsym(handle, "cblas_sgemm"));
  auto const set_threads = reinterpret_cast<void (*)(int)>(dlsym(handle, "openblas_set_num_threads"));
  auto const config = reinterpret_cast<char const* (*)()>(dlsym(handle, "openblas_get_config"));
  auto const core = reinterpret_cast<char const* (*)()>(dlsym(handle, "openblas_get_corename"));
  if (library.dgemm == nullptr || library.sgemm == nullptr || set_threads == nullptr) {
    library.dgemm = nullptr;
    library.description = "libopenblas.so.0 lacks cblas_dgemm, cblas_sgemm or openblas_set_num_threads";
    return library;
  }
  set_threads(1);
  library.description = std::string(config != nullptr ? config() : "OpenBLAS") + ", kernels for " +
                        (core != nullptr ? core() : "an unknown core");
  return library;
}

Library const& library() {
  static Library const one = load();
  return one;
}

template <class Real>
void call(Product<Real> product, bool transposed_a, bool transposed_b, Index m, Index n, Index k, Real alpha,
          Real const* a, Index lda, Real const* b, Index ldb, Real beta, Real* d, Index ldd) {
  if (m == 0 || n == 0) return;
  if (alpha == 0) k = 0;  // a and b must not be read, but OpenBLAS's small kernels would
  constexpr int row_major = 101, as_it_is = 111, transposed = 112;
  product(row_major, transposed_a ? transposed : as_it_is, transposed_b ? transposed : as_it_is,
          static_cast<int>(m), static_cast<int>(n), static_cast<int>(k), alpha, a, static_cast<int>(lda), b,
          static_cast<int>(ldb), beta, d, static_cast<int>(ldd));
}

}  // namespace

char const* openblas_core_type() {
  using epilogue::VectorLevel;
  bool const limited = epilogue::vector_level_limit().has_value();
  VectorLevel const level = epilogue::best_vector_level();
  if (limited && level == VectorLevel::baseline) return "Prescott";  // SSE3, the lowest level it supports
  if (char const* const chosen = std::getenv("OPENBLAS_CORETYPE")) {
    std::string_view const name = chosen;
    bool const avx512 = name == "SkylakeX" || name == "Cooperlake" || name == "SapphireRapids";
    return limited && level == VectorLevel::v3 && avx512 ? "Haswell" : chosen;
  }
  if (limited && level == VectorLevel::v3) return "Haswell";
  // OpenBLAS 0.3.21 treats a Zen 4 as a processor without AVX-512, at half its speed.
  return level == VectorLevel::v4 ? "SkylakeX" : nullptr;
}

bool openblas_available() { return library().dgemm != nullptr; }
std::string const& openblas_description() { return library().description; }

void openblas_product(bool transposed_a, bool transposed_b, Index m, Index n, Index k, double alpha,
                      double const* a, Index lda, double const* b, Index ldb, double beta, double* d,
                      Index ldd) {
  call(library().dgemm, transposed_a, transposed_b, m, n, k, alpha, a, lda, b, ldb, beta, d, ldd);
}
void openblas_product(bool transposed_a, bool transposed_b, Index m, Index n, Index k, double alpha,
                      float const* a, Index lda, float const* b, Index ldb, double beta, float* d,
                      Index ldd) {
  call(library().sgemm, transposed_a, transposed_b, m, n, k, static_cast<float>(alpha), a, lda, b, ldb,
       static_cast<float>(beta), d, ldd);
}

}  // namespace cosmati::cpu
