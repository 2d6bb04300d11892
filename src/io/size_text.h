// Sizes that people write.
#pragma once

namespace cosmati::io {

// The environment variable `name`: bytes, or a number with K, M, G or T (of 1024); `otherwise` where it is
// not set. Throws Error(bad_request) for a size that is none.
long long size_from_environment(char const* name, long long otherwise);

}  // namespace cosmati::io
