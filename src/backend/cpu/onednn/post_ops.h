// Epilogues that oneDNN can apply itself, before the accumulator leaves its registers.
#pragma once
#include <optional>
#include <vector>

#include "cosmati/ops/epilogue.h"
#include "dnnl.hpp"

namespace cosmati::cpu::onednn {

// A chain from acc to the result: bias first, then operations of one value or with an operand along the
// channels.
struct PostOps {
  int bias = -1;  // operand that is added to acc before all else
  dnnl::post_ops operations;
  std::vector<int> operands;   // of the binary operations, in order
  std::vector<int> positions;  // their places among the operations
  std::vector<dnnl::memory::desc> memories;
};

// The expression as such a chain, or nothing: where it has another form, uses c or scalars (their values are
// known only when it runs), writes more outputs, or reads an operand that is not one dense f32 value a
// channel. `channel` is the letter of the channel's index, `extent` the number of channels, `rank` of the
// result.
std::optional<PostOps> match_post_ops(Epilogue const& epilogue, char const* channel, Index extent, int rank,
                                      int channel_dimension);

}  // namespace cosmati::cpu::onednn
