// race_test NAME runs the kernel of that name under ThreadSanitizer, which exits with status 66 if it detects
// a race. race_test --list prints the names.
#include <cstdio>
#include <cstring>
#include <exception>

#include "tests/race/race.h"

int main(int count, char** arguments) {
  auto const& kernels = cosmati::race::kernels();
  if (count == 2 && std::strcmp(arguments[1], "--list") == 0) {
    for (auto const& kernel : kernels) std::puts(kernel.first.c_str());
    return 0;
  }
  auto const kernel = count == 2 ? kernels.find(arguments[1]) : kernels.end();
  if (kernel == kernels.end()) {
    std::fputs("usage: race_test NAME|--list\n", stderr);
    return 2;
  }
  try {
    kernel->second();
  } catch (std::exception const& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  std::puts("done");
  return 0;
}
