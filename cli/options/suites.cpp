// Reads suites of problems.
#include "cli/options/suites.h"

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <utility>

#include "cli/output/text.h"
#include "cosmati/ops/error.h"
#include "src/io/bad_file.h"
#include "src/io/file.h"

namespace cosmati::cli {
namespace {

namespace files = std::filesystem;

// The folder of the lists of this kind, "suites" or "models".
files::path folder_of(std::string const& kind) {
  std::error_code ignored;
  auto const own = files::read_symlink("/proc/self/exe", ignored).parent_path();
  for (auto folder = own; folder.has_relative_path(); folder = folder.parent_path())
    for (std::string const& candidate : {"bench/" + kind, "share/cosmati/" + kind})
      if (files::is_directory(folder / candidate, ignored)) return folder / candidate;
  return {};
}

std::vector<Suite> all_of(std::string const& kind) {
  std::vector<Suite> suites;
  files::path const folder = folder_of(kind);
  std::error_code error;
  if (!folder.empty())
    for (auto const& entry : files::directory_iterator(folder, error))
      if (entry.path().extension() == ".txt") suites.push_back(read_suite(entry.path().string()));
  std::sort(suites.begin(), suites.end(), [](Suite const& a, Suite const& b) { return a.name < b.name; });
  return suites;
}

void keep_lines(Suite& suite, std::string const& lines) {
  std::vector<ProblemOptions> kept;
  auto const count = static_cast<Index>(suite.problems.size());
  for (Index const line : parse_indices(lines, "--lines")) {
    if (line < 1 || line > count)
      throw Error(ErrorCode::bad_request, "--lines " + lines + ": the suite " + suite.name + " has " +
                                              std::to_string(count) + " problems; valid values: 1 to " +
                                              std::to_string(count));
    kept.push_back(suite.problems[static_cast<std::size_t>(line - 1)]);
  }
  suite.problems = std::move(kept);
}

}  // namespace

Suite read_suite(std::string const& path) {
  Suite suite;
  suite.name = files::path(path).stem().string();
  std::istringstream text(io::read_file(path));
  int number = 0;
  for (std::string line; std::getline(text, line);) {
    ++number;
    line.resize(std::min(line.find('#'), line.size()));
    std::istringstream words(line);
    ProblemOptions problem;
    for (std::string word; words >> word;) problem.push_back(word);
    if (problem.empty()) continue;
    if (problem[0] == "subject:" && problem.size() == 2) {
      suite.subject = problem[1];
    } else if (problem[0] == "about:") {
      suite.about = line.substr(line.find(':') + 2);
    } else if (problem[0].starts_with("--")) {
      suite.problems.push_back(problem);
    } else {
      throw Error(ErrorCode::bad_file,
                  path + ", line " + std::to_string(number) + ": " + io::in_quotes(problem[0]) +
                      " begins neither 'subject: NAME', 'about: TEXT' nor options such as --size 64x64x64");
    }
  }
  if (suite.subject.empty()) throw Error(ErrorCode::bad_file, path + ": the line 'subject: NAME' is missing");
  return suite;
}

std::vector<Suite> all_suites() { return all_of("suites"); }

Suite find_suite(std::string const& name) {
  std::vector<std::string> names;
  for (Suite& suite : all_suites()) {
    if (suite.name == name) return suite;
    names.push_back(suite.name);
  }
  if (names.empty())
    throw Error(ErrorCode::bad_request,
                "--suite " + name + ": this program was installed without suites; use --shapes FILE");
  one_of(name, names, "--suite");
  throw Error(ErrorCode::bad_request, "--suite " + name + " was not found");
}

Suite find_model(std::string const& name) {
  std::vector<std::string> names;
  for (Suite& model : all_of("models")) {
    if (model.name == name) return model;
    names.push_back(model.name);
  }
  std::error_code ignored;
  if (files::exists(name, ignored)) return read_suite(name);
  throw Error(ErrorCode::bad_request,
              "--model " + name + " is neither a file nor a known model; models: " + join(names, ", "));
}

std::vector<Suite> requested_suites(std::string const& subject, std::string const& name,
                                    std::string const& file, std::string const& lines) {
  std::vector<Suite> suites;
  if (!name.empty()) suites.push_back(find_suite(name));
  if (!file.empty()) suites.push_back(read_suite(file));
  for (Suite const& suite : suites)
    if (suite.subject != subject)
      throw Error(ErrorCode::bad_request,
                  "the suite " + suite.name + " is for " + suite.subject + ", not for " + subject);
  if (lines.empty()) return suites;
  if (suites.empty())
    throw Error(ErrorCode::bad_request, "--lines " + lines + " requires --suite or --shapes");
  for (Suite& suite : suites) keep_lines(suite, lines);
  return suites;
}

}  // namespace cosmati::cli
