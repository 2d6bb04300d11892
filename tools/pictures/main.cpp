// Writes the pictures of docs/layouts.md, or lists those in a folder that differ from what the layout
// functions produce.
// usage: cosmati_pictures [--check] FOLDER      exit status 1: some differ; 2: invalid arguments
#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "src/io/file.h"
#include "tools/pictures/pictures.h"

namespace {

using namespace cosmati;

struct Named {
  char const* name;
  std::string (*make)();
};
constexpr Named all[] = {
    {"thread-tile", pictures::thread_tile},
    {"mma-f16", pictures::matrix_fragments_f16},
    {"mma-tf32", pictures::matrix_fragments_tf32},
    {"mma-f64", pictures::matrix_fragments_f64},
    {"swizzled-tiles", pictures::swizzled_tiles},
    {"tensor-swizzles", pictures::tensor_swizzles},
    {"wgmma-descriptors", pictures::matrix_descriptors},
    {"wgmma-sums", pictures::warpgroup_accumulators},
    {"tensor-stores", pictures::tensor_stores},
};

int run(bool check, std::string const& folder) {
  int different = 0;
  for (Named const& picture : all) {
    std::string const file = folder + '/' + picture.name + ".svg", made = picture.make();
    if (!check) {
      io::write_atomically(file, made);
    } else if (io::read_file(file) != made) {
      std::cerr << file << " differs from the output of the layout functions; run cosmati_pictures " << folder
                << '\n';
      ++different;
    }
  }
  return different > 0 ? 1 : 0;
}

}  // namespace

int main(int count, char** words) {
  std::vector<std::string> const given(words + 1, words + count);
  bool const check = !given.empty() && given.front() == "--check";
  if (given.size() != (check ? 2U : 1U)) {
    std::cerr << "usage: cosmati_pictures [--check] FOLDER\n";
    return 2;
  }
  try {
    return run(check, given.back());
  } catch (std::exception const& error) {
    std::cerr << "cosmati_pictures: " << error.what() << '\n';
    return 1;
  }
}
