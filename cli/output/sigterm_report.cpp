// A signal handler that only writes a message and exits.
#include "cli/output/sigterm_report.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstddef>
#include <ctime>

namespace cosmati::cli {
namespace {

std::atomic<long long> images_done{0};
char before[64] = "cosmati: terminated (was a rank lost?): ";
char after[512];

std::size_t length_of(char const* text) {
  std::size_t length = 0;
  while (text[length] != '\0') ++length;
  return length;
}

void put(char const* text, std::size_t length) {
  if (::write(STDERR_FILENO, text, length) < 0) return;
}

extern "C" void end_with_words(int) {
  char digits[24];
  std::size_t at = sizeof digits;
  long long rest = images_done.load();
  do digits[--at] = static_cast<char>('0' + rest % 10);
  while ((rest /= 10) > 0);
  put(before, length_of(before));
  put(digits + at, sizeof digits - at);
  put(after, length_of(after));
  linger();
  _exit(128 + SIGTERM);
}

}  // namespace

void report_on_sigterm(std::string const& files, long long count) {
  std::string text = " of " + std::to_string(count) + " images are done";
  text += files.empty() ? "\n" : ", in " + files + ".partial; the same command resumes\n";
  text.copy(after, sizeof after - 1);
  std::signal(SIGTERM, &end_with_words);
}

void sigterm_report_progress(long long images) { images_done = images; }

void linger() {
  timespec const moment{0, 200'000'000};
  nanosleep(&moment, nullptr);
}

}  // namespace cosmati::cli
