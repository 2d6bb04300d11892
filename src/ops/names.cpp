// The table of aliases, and suggestions by edit distance.
#include "src/ops/names.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>

#include "src/ops/number_types.h"

namespace cosmati {
namespace {

struct Alias {
  std::string_view name;   // as other libraries spell it
  std::string_view means;  // our name
  bool accepted = true;    // false: only suggested, because it is ambiguous
};

constexpr Alias other_aliases[] = {
    // pooling modes, padding, activation functions, layouts
    {"maximum", "max"},
    {"avg", "average"},
    {"avg", "mean"},
    {"average", "mean"},
    {"minimum", "min"},
    {"same", "same-upper"},
    {"swish", "silu"},
    {"channels_first", "nchw"},
    {"channels_last", "nhwc"},
    // operations and directions
    {"matmul", "gemm"},
    {"convolution", "conv"},
    {"conv2d", "conv"},
    {"pooling", "pool"},
    {"batch_norm", "batchnorm"},
    {"batch_normalization", "batchnorm"},
    {"fprop", "forward"},
    {"dgrad", "data"},
    {"wgrad", "filter"},
    // backends
    {"gpu", "cuda", false},
    {"nvidia", "cuda", false},
    {"host", "cpu", false},
};

constexpr auto aliases = [] {
  std::array<Alias, std::size(type_aliases) + std::size(other_aliases)> all{};
  auto at = all.begin();
  for (TypeAlias const& alias : type_aliases) *at++ = {alias.name, name_of(alias.type)};
  std::ranges::copy(other_aliases, at);
  return all;
}();

char plain(char character) { return character == '-' ? '_' : character; }

bool equal(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return plain(x) == plain(y); });
}

int index_of(std::string_view name, std::vector<std::string> const& names) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (equal(name, names[i])) return static_cast<int>(i);
  return -1;
}

// Returns how many insertions, deletions, substitutions and swaps of adjacent letters turn `a` into `b`.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before, last(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::vector<std::size_t> row(b.size() + 1, i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1), row[j - 1] + 1, last[j] + 1});
      bool const swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = std::move(last);
    last = std::move(row);
  }
  return last.back();
}

}  // namespace

int find_name(std::string_view name, std::vector<std::string> const& names) {
  int index = index_of(name, names);
  for (Alias const& alias : aliases)
    if (index < 0 && alias.accepted && equal(name, alias.name)) index = index_of(alias.means, names);
  return index;
}

std::string nearest_name(std::string_view name, std::vector<std::string> const& names) {
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(name.size() / 3, 1) + 1;
  auto const consider = [&](std::string_view candidate, std::string const& means) {
    std::size_t distance = edit_distance(name, candidate);
    if (name.size() >= 3 && candidate.starts_with(name)) distance = std::min<std::size_t>(distance, 1);
    if (distance >= best_distance) return;
    best = means;
    best_distance = distance;
  };
  for (std::string const& candidate : names) consider(candidate, candidate);
  for (Alias const& alias : aliases) {
    int const index = index_of(alias.means, names);
    if (index >= 0) consider(alias.name, names[static_cast<std::size_t>(index)]);
  }
  return best;
}

std::string did_you_mean(std::string_view name, std::vector<std::string> const& names) {
  std::string const nearest = nearest_name(name, names);
  return nearest.empty() ? "" : " (did you mean " + nearest + "?)";
}

std::string unknown_name(std::string_view kind, std::string_view name, std::vector<std::string> const& names,
                         std::string_view heading) {
  std::string text = "unknown ";
  text.append(kind).append(" '").append(name) += '\'';
  text += did_you_mean(name, names);
  text.append("; ").append(heading).append(": ");
  for (std::size_t i = 0; i < names.size(); ++i) text += (i == 0 ? "" : ", ") + names[i];
  return text;
}

std::vector<std::pair<std::string, std::vector<std::string>>> all_aliases() {
  std::vector<std::pair<std::string, std::vector<std::string>>> list;
  for (Alias const& alias : aliases) {
    if (!alias.accepted) continue;
    auto found =
        std::find_if(list.begin(), list.end(), [&](auto const& one) { return one.first == alias.means; });
    if (found == list.end()) found = list.insert(list.end(), {std::string(alias.means), {}});
    found->second.emplace_back(alias.name);
  }
  return list;
}

std::vector<std::string> aliases_of(std::string_view name) {
  for (auto const& [means, names] : all_aliases())
    if (means == name) return names;
  return {};
}

}  // namespace cosmati
