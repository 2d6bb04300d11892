// Epilogues that oneDNN can apply itself, before the accumulator leaves its registers.
#pragma once
#include <optional>
#include <vector>

#include "cosmati/ops/epilogue.h"
#include "dnnl.hpp"

namespace cosmati::cpu::onednn {

// A chain from acc to the result: a bias first, then operations on one value or with an operand along the
// channels.
struct PostOps {
  int bias = -1;  // operand that is added to acc first
  dnnl::post_ops operations;
  std::vector<int> operands;   // for the binary operations, in order
  std::vector<int> positions;  // their positions among the operations
  std::vector<dnnl::memory::desc> memories;
};

// Returns the expression as such a chain, or nothing if it has another form, uses c or scalars (whose values
// are known only at run time), has stores, or reads an operand that is not one dense f32 value per channel.
// `channel` is the letter of the channel's index, `extent` the number of channels, `rank` the rank of the
// result.
std::optional<PostOps> match_post_ops(Epilogue const& epilogue, char const* channel, Index extent, int rank,
                                      int channel_dimension);

}  // namespace cosmati::cpu::onednn
