// What tells the flags of one launch from whatever a workspace held before.
#pragma once

namespace cosmati {

// A number that no call of this process has returned before, drawn from all of 64 bits but zero, so that a
// workspace that holds anything else does not hold it either, but for one chance in 2^64 a flag.
unsigned long long fresh_launch_tag();

}  // namespace cosmati
