// Finds and opens libnvrtc.
#include "src/jit/nvrtc.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <optional>

#include "cosmati/ops/error.h"

namespace cosmati::jit {
namespace {

// The first version that compiles the headers: older ones lack __builtin_bit_cast.
constexpr int oldest_major = 12, oldest_minor = 3;

constexpr char const* folders[] = {"", "/usr/local/cuda/lib64/", "/usr/local/cuda/lib/",
                                   "/usr/local/cuda/targets/x86_64-linux/lib/", "/opt/cuda/lib64/"};

struct Loaded {
  std::optional<Nvrtc> library;
  std::string description;
};

template <class Function>
bool find(void* handle, char const* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(handle, name));
  return function != nullptr;
}

// The name of the file in the environment variable `name`; null: it is unset or empty.
char const* named_file(char const* name) {
  char const* const value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

// Returns the version of CUDA that the installed driver supports, such as 12040; 0: no driver is installed.
// Does not initialize the driver. cuDriverGetVersion returns an enumeration, of which only the value 0
// matters.
#if defined(__clang__)
__attribute__((no_sanitize("function")))
#endif
int driver_version() {
  char const* const named = named_file("COSMATI_LIBCUDA");
  void* const driver = dlopen(named != nullptr ? named : "libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  int (*get_version)(int*) = nullptr;
  int version = 0;
  if (driver == nullptr || !find(driver, "cuDriverGetVersion", get_version) || get_version(&version) != 0)
    return 0;
  return version;
}

// A driver loads machine code of its own and of earlier major versions of CUDA.
std::array<char const*, 3> names_by_preference() {
  int const version = driver_version();
  if (version != 0 && version < 13000) return {"libnvrtc.so.12", "libnvrtc.so.13", "libnvrtc.so"};
  return {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
}

void* open_any(std::string& error) {
  if (char const* const chosen = named_file("COSMATI_NVRTC")) {
    void* const handle = dlopen(chosen, RTLD_LAZY | RTLD_LOCAL);
    if (handle == nullptr)
      error = fmt::format("COSMATI_NVRTC names {}, which cannot be opened: {}", chosen, dlerror());
    return handle;
  }
  for (char const* const name : names_by_preference())
    for (char const* const folder : folders)
      if (void* const handle = dlopen((std::string(folder) + name).c_str(), RTLD_LAZY | RTLD_LOCAL))
        return handle;
  error = fmt::format(
      "the run-time compiler NVRTC was not found: no libnvrtc.so.13, libnvrtc.so.12 or libnvrtc.so on the "
      "dynamic linker's path or in {}; COSMATI_NVRTC may name the file",
      folders[1]);
  return nullptr;
}

bool find_functions(void* handle, Nvrtc& library) {
  return find(handle, "nvrtcVersion", library.version) &&
         find(handle, "nvrtcGetErrorString", library.error_string) &&
         find(handle, "nvrtcGetNumSupportedArchs", library.count_architectures) &&
         find(handle, "nvrtcGetSupportedArchs", library.architectures) &&
         find(handle, "nvrtcCreateProgram", library.create) &&
         find(handle, "nvrtcDestroyProgram", library.destroy) &&
         find(handle, "nvrtcCompileProgram", library.compile) &&
         find(handle, "nvrtcGetProgramLogSize", library.log_size) &&
         find(handle, "nvrtcGetProgramLog", library.log) &&
         find(handle, "nvrtcGetCUBINSize", library.cubin_size) &&
         find(handle, "nvrtcGetCUBIN", library.cubin) &&
         find(handle, "nvrtcAddNameExpression", library.add_name_expression) &&
         find(handle, "nvrtcGetLoweredName", library.lowered_name);
}

Loaded load() {
  Loaded result;
  void* const handle = open_any(result.description);
  if (handle == nullptr) return result;
  Nvrtc library{};
  bool const complete = find_functions(handle, library);
  Dl_info info{};
  auto const inside =
      complete ? reinterpret_cast<void const*>(library.version) : dlsym(handle, "nvrtcVersion");
  if (inside != nullptr && dladdr(inside, &info) != 0 && info.dli_fname != nullptr)
    library.path = info.dli_fname;
  int major = 0, minor = 0;
  if (!complete || library.version(&major, &minor) != 0) {
    result.description =
        fmt::format("{} lacks functions of NVRTC {}.{}", library.path, oldest_major, oldest_minor);
    return result;
  }
  library.name = fmt::format("NVRTC {}.{}", major, minor);
  result.description = library.name + ", " + library.path;
  if (major < oldest_major || (major == oldest_major && minor < oldest_minor))
    result.description += fmt::format(", is too old; version {}.{} is required", oldest_major, oldest_minor);
  else
    result.library = library;
  return result;
}

Loaded const& loaded() {
  static Loaded const result = load();
  return result;
}

}  // namespace

Nvrtc const& nvrtc() {
  if (!loaded().library) throw Error(ErrorCode::unavailable, loaded().description);
  return *loaded().library;
}

std::vector<int> nvrtc_architectures() {
  int count = 0;
  if (!nvrtc_available() || nvrtc().count_architectures(&count) != 0 || count <= 0) return {};
  std::vector<int> list(static_cast<std::size_t>(count));
  if (nvrtc().architectures(list.data()) != 0) return {};
  return list;
}

bool nvrtc_available() { return loaded().library.has_value(); }
std::string const& nvrtc_description() { return loaded().description; }

}  // namespace cosmati::jit
