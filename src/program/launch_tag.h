// Distinguishes the flags of one launch from previous contents of a workspace.
#pragma once

namespace cosmati {

// Returns a number that no call of this process has returned before, drawn from all nonzero 64-bit values, so
// that other contents of a workspace equal it with a probability of 2^-64 per flag.
unsigned long long fresh_launch_tag();

}  // namespace cosmati
