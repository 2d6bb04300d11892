// The report of `cosmati plot`: one self-contained HTML file.
#pragma once
#include <map>
#include <string>
#include <string_view>

#include "cli/plot/records.h"

namespace cosmati::cli {

// cli/plot/plot.html, embedded in the program.
std::string_view plot_template();

// `text` with each {{NAME}} replaced by its value; values are not expanded again. Throws std::logic_error for
// a name without a value.
std::string filled(std::string_view text, std::map<std::string, std::string> const& values);

std::string plot_page(PlotInput const& input);

}  // namespace cosmati::cli
