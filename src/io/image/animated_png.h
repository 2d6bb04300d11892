// Animated PNG files: a PNG whose further frames are in separate chunks, which other readers skip (PNG
// specification, third edition, 11.3.6).
#pragma once
#include <functional>
#include <string>

#include "cosmati/core/config.h"
#include "src/io/image/image.h"

namespace cosmati::io {

// Writes frame(i) for 0 <= i < count, all of the size and channels of the first; each is shown for 1 /
// frames_per_second seconds (1 to 1000 frames), and the animation repeats forever. Readers without support
// for animations show frame 0. One frame at a time is in memory. Crash-safe, like write_atomically. Throws
// Error(bad_request), Error(system).
void write_animated_png(std::string const& path, Index count, int frames_per_second,
                        std::function<Image(Index)> const& frame);

}  // namespace cosmati::io
