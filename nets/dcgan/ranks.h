// The messages between the processes that draw together.
#pragma once
#include <string>
#include <vector>

#include "nets/dcgan/chunks.h"
#include "nets/dcgan/latents.h"
#include "nets/dcgan/output.h"
#include "nets/dcgan/pipeline.h"
#include "nets/dcgan/weights.h"
#include "nets/dcgan/writer.h"
#include "src/parallel/process_group.h"

namespace cosmati::dcgan {

// What rank 0 tells the others before they prepare.
struct Told {
  Index count = 0, batch = 0;
  std::string seal;  // of the files
};
// All ranks together, rank 0 the first and the others the second.
void tell_ranks(parallel::ProcessGroup& group, Told const& told);
Told hear_rank_0(parallel::ProcessGroup& group);
// The weights of rank 0 on all ranks, which call it together; `mine` is read on rank 0 alone.
Weights broadcast(parallel::ProcessGroup& group, Weights const* mine);
// All ranks together, each whether it can write the files: those that cannot.
std::vector<int> ranks_without_files(parallel::ProcessGroup& group, bool here);

// Rank 0: deals chunks to the other ranks until all are in the files, while Workers of its own take part.
// Each rank writes what it has drawn, and is told where its text goes; images of a rank that cannot reach the
// files are sent, and `writer` writes them. Chunks of at most 1 GiB. Whoever dies takes the others with it
// (parallel/process_group.h).
void deal_to_ranks(parallel::ProcessGroup& group, Dealer& dealer, Latents const& latents, Index image_bytes,
                   Writer& writer, bool text);

// The other ranks: draw what rank 0 sends until it sends no more. output: null where the images are to be
// sent.
void draw_for_rank_0(parallel::ProcessGroup& group, Pipeline& pipeline, Output* output);

}  // namespace cosmati::dcgan
