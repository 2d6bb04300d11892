// The messages between the processes that generate images together.
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

// The settings that rank 0 sends to the others before they prepare.
struct RankSettings {
  Index count = 0, batch = 0;
  std::string seal;  // of the files
};
// Collective: rank 0 calls the first function, the others the second.
void send_settings(parallel::ProcessGroup& group, RankSettings const& settings);
RankSettings receive_settings(parallel::ProcessGroup& group);
// Collective: returns the weights of rank 0 on all ranks; `mine` is used only on rank 0.
Weights broadcast(parallel::ProcessGroup& group, Weights const* mine);
// Collective: each rank passes whether it can write the files; returns those that cannot.
std::vector<int> ranks_without_files(parallel::ProcessGroup& group, bool here);

// Rank 0: assigns chunks to the other ranks until all are in the files, while its own Workers take part. Each
// rank writes the images that it has generated, and receives the position of their text; images of a rank
// without access to the files are sent and written by `writer`. Chunks have at most 1 GiB. If a rank dies,
// all terminate (parallel/process_group.h).
void deal_to_ranks(parallel::ProcessGroup& group, Dealer& dealer, Latents const& latents, Index image_bytes,
                   Writer& writer, bool text);

// The other ranks: generate the chunks that rank 0 sends until there are no more. output: null if the images
// are to be sent.
void generate_for_rank_0(parallel::ProcessGroup& group, Pipeline& pipeline, Output* output);

}  // namespace cosmati::dcgan
