// Finds and opens libcufft.
#include "src/backend/cuda/driver/cufft.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "cosmati/ops/error.h"
#include "src/backend/cuda/driver/resources.h"

namespace cosmati::cuda {
namespace {

constexpr char const* names[] = {"libcufft.so.12", "libcufft.so.11"};

std::string environment(char const* name) {
  char const* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

bool can_be_read(std::string const& path) { return access(path.c_str(), R_OK) == 0; }

std::string file_of_library() {
  if (std::string const chosen = environment("COSMATI_CUFFT"); !chosen.empty())
    return can_be_read(chosen) ? chosen : std::string();
  std::vector<std::string> folders;
  std::istringstream more(environment("LD_LIBRARY_PATH"));
  for (std::string folder; std::getline(more, folder, ':');)
    if (!folder.empty()) folders.push_back(folder);
  for (char const* const folder :
       {"/usr/local/cuda/lib64", "/usr/local/cuda/lib", "/usr/local/cuda/targets/x86_64-linux/lib",
        "/opt/cuda/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib64"})
    folders.emplace_back(folder);
  for (char const* const name : names)
    for (std::string const& folder : folders)
      if (std::string path = folder + '/' + name; can_be_read(path)) return path;
  return {};
}

using namespace cufft;

struct Library {
#define COSMATI_MEMBER(name, result, parameters) result(*name) parameters = nullptr;
  COSMATI_CUFFT(COSMATI_MEMBER)
#undef COSMATI_MEMBER
};

Library load_cufft() {
  if (std::string const failure = cufft_failure(); !failure.empty())
    throw Error(ErrorCode::unavailable, failure);
  std::string const& path = cufft_file();
  void* const handle = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr)
    throw Error(ErrorCode::unavailable, "cuFFT cannot be opened: " + std::string(dlerror()));
  Library library;
#define COSMATI_BIND(name, result, parameters)                                   \
  library.name = reinterpret_cast<decltype(library.name)>(dlsym(handle, #name)); \
  if (library.name == nullptr) throw Error(ErrorCode::unavailable, path + " has no function " #name);
  COSMATI_CUFFT(COSMATI_BIND)
#undef COSMATI_BIND
  return library;
}

Library const& library() {
  static Library const one = load_cufft();
  return one;
}

void check(char const* call, Status status) {
  if (status != Status::success)
    throw Error(ErrorCode::system, fmt::format("cuFFT: {}: error {}", call, static_cast<unsigned>(status)));
}

}  // namespace

std::string const& cufft_file() {
  static std::string const file = file_of_library();
  return file;
}

std::string cufft_failure() {
  if (!cufft_file().empty()) return {};
  std::string const chosen = environment("COSMATI_CUFFT");
  return chosen.empty()
             ? fmt::format(
                   "cuFFT was not found: no {} or {} on the library path; COSMATI_CUFFT may name the file",
                   names[0], names[1])
             : fmt::format("cuFFT was not found: COSMATI_CUFFT names {}, which cannot be read", chosen);
}

CufftPlan::CufftPlan(int ordinal, int rows, int columns, int count, DataType real, bool inverse,
                     std::size_t work_bytes)
    : ordinal_(ordinal), of_f64_(real == DataType::f64), inverse_(inverse) {
  Current const current(ordinal_);
  check("cufftCreate", library().cufftCreate(&handle_));
  try {
    check("cufftSetAutoAllocation", library().cufftSetAutoAllocation(handle_, 0));
    int extents[] = {rows, columns};
    int complex_extents[] = {rows, columns / 2 + 1}, real_extents[] = {rows, 2 * (columns / 2 + 1)};
    int const complex_plane = rows * complex_extents[1], real_plane = rows * real_extents[1];
    Kind const kind = of_f64_ ? (inverse ? Kind::z2d : Kind::d2z) : inverse ? Kind::c2r : Kind::r2c;
    std::size_t bytes = 0;
    check("cufftMakePlanMany",
          library().cufftMakePlanMany(handle_, 2, extents, inverse ? complex_extents : real_extents, 1,
                                      inverse ? complex_plane : real_plane,
                                      inverse ? real_extents : complex_extents, 1,
                                      inverse ? real_plane : complex_plane, kind, count, &bytes));
    if (bytes > work_bytes)
      throw Error(
          ErrorCode::system,
          fmt::format("cuFFT requires a work area of {} bytes for {} transforms of {}x{}; the plan has {}",
                      bytes, count, rows, columns, work_bytes));
    // A trial run loads cuFFT's kernels now, because the first real call may be captured into a graph.
    auto const reals = static_cast<std::size_t>(real_plane) * static_cast<std::size_t>(count);
    DeviceBuffer const planes(ordinal_, reals * static_cast<std::size_t>(size_of(real))),
        work(ordinal_, bytes);
    run(planes.data(), work.data(), nullptr);
    wait(ordinal_, nullptr);
  } catch (...) {
    library().cufftDestroy(handle_);
    throw;
  }
}

CufftPlan::~CufftPlan() { library().cufftDestroy(handle_); }

void CufftPlan::run(void* planes, void* work, Stream stream) const {
  Current const current(ordinal_);
  std::lock_guard const lock(enqueuing_);
  check("cufftSetStream", library().cufftSetStream(handle_, handle_of(stream)));
  check("cufftSetWorkArea", library().cufftSetWorkArea(handle_, work));
  if (of_f64_ && inverse_)
    check("cufftExecZ2D",
          library().cufftExecZ2D(handle_, static_cast<Complex64*>(planes), static_cast<double*>(planes)));
  else if (of_f64_)
    check("cufftExecD2Z",
          library().cufftExecD2Z(handle_, static_cast<double*>(planes), static_cast<Complex64*>(planes)));
  else if (inverse_)
    check("cufftExecC2R",
          library().cufftExecC2R(handle_, static_cast<Complex*>(planes), static_cast<float*>(planes)));
  else
    check("cufftExecR2C",
          library().cufftExecR2C(handle_, static_cast<float*>(planes), static_cast<Complex*>(planes)));
}

}  // namespace cosmati::cuda
