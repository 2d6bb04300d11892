// Numbers in the metadata of a model's file, which contain only text: written so that reading restores the
// same bits.
#pragma once
#include <map>
#include <string>

namespace cosmati::nets {

using Metadata = std::map<std::string, std::string>;

std::string exact(double value);  // hexadecimal floating point

// Returns the value of `key`. Throws Error(bad_file) naming `path` if it is missing or not a number.
double real(Metadata const& metadata, std::string const& key, std::string const& path);
// The same, an integer in [low, high].
long long integer(Metadata const& metadata, std::string const& key, std::string const& path,
                  long long low = 0, long long high = 0x7fffffffffffffff);

}  // namespace cosmati::nets
