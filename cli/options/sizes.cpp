// Sizes of generated problems.
#include "cli/options/sizes.h"

#include <algorithm>
#include <set>

#include "cli/output/text.h"
#include "src/ops/number_types.h"

namespace cosmati::cli {
namespace {

bool takes_size_as_parameter(Subject const& subject) { return subject.name() == "lrn"; }

bool has_images(Subject const& subject) {
  auto const letters = subject.letters();
  return !letters.empty() && letters.front() == "n";
}

std::string form_of(Subject const& subject) {
  if (subject.letters().empty()) return "a shape such as 8x3x17x17";
  std::vector<std::string> required = subject.letters();
  required.resize(subject.fewest_sizes());
  std::string form = join(required, " x ");
  for (std::size_t i = required.size(); i < subject.letters().size(); ++i)
    form += " [x " + subject.letters()[i] + ']';
  return form;
}

std::vector<std::vector<Index>> sizes_by_letters(Subject const& subject, SizeRequest const& request) {
  auto const letters = subject.letters();
  std::string text;
  bool any = false;
  for (auto const& [letter, value] : request.letters) any = any || !value.empty();
  if (!any) return {};
  std::vector<std::vector<Index>> sizes{{}};
  for (std::size_t i = 0; i < letters.size(); ++i) {
    std::string value = request.letters.at(letters[i]);
    if (value.empty() && i < subject.fewest_sizes())
      throw Error(ErrorCode::bad_request,
                  "--" + letters[i] + " is missing; a size of this operation is " + form_of(subject));
    std::vector<std::vector<Index>> grown;
    auto const range = parse_range(value.empty() ? "1" : value, "--" + letters[i]);
    for (auto const& size : sizes)
      for (Index const extent : range) {
        grown.push_back(size);
        grown.back().push_back(extent);
      }
    if (grown.size() > 100000) throw Error(ErrorCode::bad_request, "more than 100000 sizes");
    sizes = std::move(grown);
  }
  return sizes;
}

}  // namespace

void add_size_options(Options& options, Subject const& subject, SizeRequest& request) {
  options.group("Size: numbers, ranges first:last:step, lists a,b,c; all combinations");
  options.text(takes_size_as_parameter(subject) ? "--shape" : "--size,--shape", request.size, "SIZE",
               form_of(subject));
  for (std::string const& letter : subject.letters())
    options.text("--" + letter, request.letters[letter], "RANGE", "extent " + letter);
  if (has_images(subject))
    options.text("--images", request.images, "RANGE", "overrides the number of images n of a suite").once();
}

std::vector<std::vector<Index>> requested_sizes(Subject const& subject, SizeRequest const& request) {
  auto sizes = sizes_by_letters(subject, request);
  auto own = subject.sizes_of_parameters();
  if (!own.empty() && (!sizes.empty() || !request.size.empty()))
    throw Error(ErrorCode::bad_request,
                "--group and a size are mutually exclusive: the group has its own sizes");
  if (!own.empty()) return own;
  if (!request.size.empty()) {
    if (!sizes.empty())
      throw Error(ErrorCode::bad_request, "--size and extents by letter are mutually exclusive");
    std::size_t const maximum = subject.letters().empty() ? max_rank : subject.letters().size();
    std::string const option = takes_size_as_parameter(subject) ? "--shape" : "--size";
    sizes = parse_sizes(request.size, subject.fewest_sizes(), maximum, form_of(subject), option);
    for (auto& size : sizes) size.resize(std::max(size.size(), subject.letters().size()), 1);
  }
  if (!request.images.empty()) {
    std::vector<std::vector<Index>> others;
    std::set<std::vector<Index>> seen;
    for (Index const images : parse_range(request.images, "--images"))
      for (auto size : sizes) {
        size.front() = images;
        if (seen.insert(size).second) others.push_back(std::move(size));
      }
    sizes = std::move(others);
  }
  for (auto const& size : sizes)
    for (Index const extent : size)
      if (extent < 0 || extent > Index{1} << 40)
        throw Error(ErrorCode::bad_request,
                    "extent " + std::to_string(extent) + " of a size is invalid; valid values: 0 to 2^40");
  return sizes;
}

std::vector<std::string> requested_types(Subject const& subject, std::string const& text) {
  if (text == "all") {
    std::vector<std::string> names;
    auto const add = [&names](TypeUse use) {
      for (NumberType const& row : number_types)
        if (row.use == use) names.emplace_back(name_of(row.type));
    };
    add(TypeUse::every_operation);
    if (subject.sums_products()) add(TypeUse::factors);
    return names;
  }
  auto types = split(text, ',');
  if (!text.empty())
    for (std::string const& type : types)
      if (type.empty())
        throw Error(ErrorCode::bad_request,
                    "--type " + text + " has an empty name; expected a list such as f32,bf16, or all");
  return types;
}

Job made_job(Subject const& subject, std::vector<Index> const& size, Common const& common) {
  return subject.job(subject.inputs_of_size(size, common.types), common);
}

}  // namespace cosmati::cli
