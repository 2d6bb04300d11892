// Where images go: text, .npy, a picture; chunk by chunk, so that a run that was ended can be continued.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nets/dcgan/chunks.h"
#include "nets/dcgan/generator.h"
#include "src/io/partial_file.h"

namespace cosmati::dcgan {

struct OutputRequest {
  std::string output;                    // .npy, else text; empty: none
  std::string image;                     // .bmp or .png; empty: none
  std::string animation;                 // an animated PNG, image after image; empty: none
  Index columns = 0;                     // images in a row of `image`; 0: a square
  int frames_per_second = 20;            // of the animation
  DataType output_type = DataType::f32;  // of the .npy: f32, f16 or u8
};

// A grid of more images would be larger than a picture may be.
inline constexpr Index most_images_of_a_picture = 65536;

// The narrowest type from which all that was asked for can be made exactly.
DataType image_type_for(OutputRequest const& request);

// The files grow beside their names, with ".partial" behind them, and what of them is valid stands in
// FILE.progress. A run with the same `key` continues them; finish() gives them their names.
class Output {
 public:
  // Throws Error(system), and Error(unavailable) where another process is writing the same files.
  Output(OutputRequest request, Index count, DataType image_type, std::string key, int threads);
  ~Output();
  Output(Output const&) = delete;
  Output& operator=(Output const&) = delete;

  Index images() const { return images_; }  // that are in the files; the next chunk's first
  void take(Chunk const& chunk, void const* images);
  // Told of each piece of take()'s work when it is done, on the thread that called it; seconds of the steady
  // clock.
  enum class Work { conversion, writing };
  using Observe = std::function<void(Work work, double begin, double end)>;
  void observe(Observe observe) { observe_ = std::move(observe); }
  void finish();

 private:
  // Of what is made of bytes when all are there.
  std::string const& picture_path() const {
    return request_.image.empty() ? request_.animation : request_.image;
  }
  std::string tiles_path() const { return picture_path() + ".tiles"; }
  void write_pictures(unsigned char const* tiles) const;
  void take_output(void const* images, Index count);
  void take_tiles(void const* images, Index count);
  std::vector<std::byte> converted(void const* images, Index count, DataType type) const;
  void append(io::PartialFile& file, void const* images, Index count, DataType type) const;
  template <class Body>
  void observed(Work work, Body const& body) const;

  OutputRequest request_;
  Index count_, images_ = 0;
  DataType image_type_;
  std::string key_;
  int threads_;
  bool finished_ = false;
  std::unique_ptr<io::ProgressFile> progress_;
  std::unique_ptr<io::PartialFile> output_, tiles_;
  Observe observe_;
};

}  // namespace cosmati::dcgan
