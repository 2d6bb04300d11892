// Provenance of a figure: kernels and command.
#include "cli/bench/provenance.h"

#include "cli/output/text.h"
#include "src/io/file.h"
#include "src/jit/digest.h"

namespace cosmati::cli {
namespace {

std::vector<std::string>& command_words() {
  static std::vector<std::string> words;
  return words;
}

}  // namespace

std::string kernel_digest(Task const& task, Device const& device, PlanOptions const& options) {
  std::optional<Composition> composition = task.compose(device, options);
  if (!composition) return {};
  std::vector<jit::Source>& sources = composition->passes;
  sources.push_back(std::move(composition->source));
  return jit::digest_of(sources, composition->kernel + ", " + composition->recipe);
}

void set_command(std::vector<std::string> words) { command_words() = std::move(words); }

std::string command_text() {
  std::vector<std::string> words = command_words();
  if (words.empty()) {
    words = split(io::read_file("/proc/self/cmdline"), '\0');
    words.erase(words.begin());
    words.pop_back();  // the last word also ends with a zero
  }
  std::string text = "cosmati";
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string const name = words[i].substr(0, words[i].find('='));
    if (name == "--digest") continue;
    bool const is_dropped = name == "--json" || name == "--cache" || name == "--device-description";
    if (!is_dropped)
      text += ' ' + shell_word(words[i]);
    else if (name == words[i] && i + 1 < words.size() && !words[i + 1].starts_with("--"))
      ++i;  // skips its value
  }
  return text;
}

}  // namespace cosmati::cli
