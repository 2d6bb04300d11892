// Parsing of command-line values: lists, ranges, sizes, names.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "cosmati/core/config.h"

namespace cosmati::cli {

std::vector<std::string> split(std::string_view text, char separator);
std::string join(std::vector<std::string> const& words, std::string_view separator);

// `what` names the option in the messages of Error(bad_request): "--stride".
Index parse_index(std::string_view text, std::string const& what);
double parse_number(std::string_view text, std::string const& what);
std::vector<Index> parse_indices(std::string_view text, std::string const& what);  // "2,2"

// `text` made safe for a terminal: control characters, bidirectional controls and bytes that are not UTF-8
// become \u001b or \x9b, so that text from a file can neither move the cursor nor hide a line.
// printable_text() keeps newlines and tabs; printable_name() returns one line.
std::string printable_text(std::string_view text);
std::string printable_name(std::string_view text);

// `word` quoted for a POSIX shell if necessary, with control characters as $'\x1b'.
std::string shell_word(std::string const& word);

// Parses "64", "64,128", "64:256:64" (inclusive) and mixtures of them.
std::vector<Index> parse_range(std::string_view text, std::string const& what);

// Parses "127x65x333" with a range for each extent, or a list "64x64x64,128x128x128" of such sizes; returns
// all combinations, of `fewest` to `maximum` extents each. `form` describes a valid size in messages:
// "MxNxK".
std::vector<std::vector<Index>> parse_sizes(std::string_view text, std::size_t fewest, std::size_t maximum,
                                            std::string const& form, std::string const& what);

// The candidate that `word` names, directly or by an alias. Throws Error(bad_request) otherwise: "unknown
// --layout 'nm' (did you mean nn?); valid values: nn, nt".
std::string one_of(std::string const& word, std::vector<std::string> const& candidates,
                   std::string const& what);

// "1:05", or "2:00:00" from an hour.
std::string clock_time(double seconds);

// Throws Error(bad_request).
[[noreturn]] void refuse(std::string const& sentence);

}  // namespace cosmati::cli
