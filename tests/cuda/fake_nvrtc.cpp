// An NVRTC that compiles nothing: its major version is the number at the end of its file's name, its
// minor version that of COSMATI_FAKE_NVRTC_MINOR, or 3.
#include <dlfcn.h>

#include <cstdlib>
#include <string>

extern "C" {

int nvrtcVersion(int* major, int* minor) {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&nvrtcVersion), &info) == 0) return 1;
  std::string const path = info.dli_fname;
  *major = std::atoi(path.substr(path.rfind('.') + 1).c_str());
  char const* const given = std::getenv("COSMATI_FAKE_NVRTC_MINOR");
  *minor = given != nullptr ? std::atoi(given) : 3;
  return 0;
}

int nvrtcGetErrorString() { return 1; }
int nvrtcGetNumSupportedArchs() { return 1; }
int nvrtcGetSupportedArchs() { return 1; }
int nvrtcCreateProgram() { return 1; }
int nvrtcDestroyProgram() { return 1; }
int nvrtcCompileProgram() { return 1; }
int nvrtcGetProgramLogSize() { return 1; }
int nvrtcGetProgramLog() { return 1; }
int nvrtcGetCUBINSize() { return 1; }
int nvrtcGetCUBIN() { return 1; }
int nvrtcAddNameExpression() { return 1; }
int nvrtcGetLoweredName() { return 1; }

}  // extern "C"
