// Sizes in text.
#pragma once

namespace cosmati::io {

// Returns the environment variable `name`: bytes, or a number with K, M, G or T (powers of 1024); `otherwise`
// if it is not set. Throws Error(bad_request) for an invalid size.
long long size_from_environment(char const* name, long long otherwise);

}  // namespace cosmati::io
