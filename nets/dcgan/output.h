// Where images go: text, .npy, .raw, a picture; each chunk to its place, so that threads and processes write
// at once, and a run that was ended can be continued.
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "nets/dcgan/chunks.h"
#include "nets/dcgan/generator.h"
#include "src/io/partial_file.h"

namespace cosmati::dcgan {

struct OutputRequest {
  std::string output;                    // .npy, .raw (the numbers alone), else text; empty: none
  std::string image;                     // .bmp or .png; empty: none
  std::string animation;                 // an animated PNG, image after image; empty: none
  Index columns = 0;                     // images in a row of `image`; 0: a square
  int frames_per_second = 20;            // of the animation
  DataType output_type = DataType::f32;  // of .npy and .raw: f32, f16 or u8
};

// Whether the numbers of `output` are written as bytes, not as text.
bool is_array(std::string const& output);

// A grid of more images would be larger than a picture may be.
inline constexpr Index most_images_of_a_picture = 65536;

// The narrowest type from which all that was asked for can be made exactly.
DataType image_type_for(OutputRequest const& request);

// The files grow beside their names, with ".partial" behind them, and what of them is valid stands in
// FILE.progress. A run with the same `key` continues them; finish() gives them their names. One process
// begins and finishes the files; others may join to write parts of them. write() is for many threads at once,
// unless in_order().
class Output {
 public:
  // Throws Error(system), and Error(unavailable) where another process is writing the same files.
  Output(OutputRequest request, Index count, DataType image_type, std::string key, int threads);
  // The files that another process has sealed: it told the `seal`. Null if they, or files with these names
  // that are others, cannot be written from here.
  static std::unique_ptr<Output> join(OutputRequest request, Index count, DataType image_type, int threads,
                                      std::string const& seal);
  ~Output();
  Output(Output const&) = delete;
  Output& operator=(Output const&) = delete;

  // By an earlier run: images that are in the files, the first of all, and where their text ends.
  Index images() const { return written_.images; }
  Index text_at() const { return written_.text_at; }
  // Marks the files for processes that want to join, where the next chunk will be.
  std::string seal();
  bool text() const { return output_ && !is_array(request_.output); }
  bool in_order() const { return output_ && output_->in_order(); }  // a pipe or device

  // The length of each image's text is measured.
  Part part(Chunk const& chunk, Images images) const;
  void write(Part const& part);
  void flush();  // what this process wrote, to the disk
  // What is valid from now on; fewer images than before are passed over.
  void note(Dealer::Written const& written);
  void finish();
  void discard();  // instead: nothing is left

 private:
  struct Unit;
  Output(OutputRequest request, Index count, DataType image_type, int threads);
  std::string const& picture_path() const {
    return request_.image.empty() ? request_.animation : request_.image;
  }
  // What is made of bytes when all are there: all but a BMP file, whose bytes have their places.
  bool has_tiles() const;
  bool has_bitmap() const;
  std::string tiles_path() const { return picture_path() + ".tiles"; }
  std::string head() const;  // of output
  Index columns() const;
  Index rows() const;
  std::vector<std::pair<io::PartialFile*, unsigned long long>> sealed_places() const;
  std::vector<Unit> units_of(Part const& part) const;
  void write_unit(Part const& part, Unit const& unit, std::vector<char>& buffer);
  void write_text(Part const& part, Index image, std::vector<char>& buffer);
  void write_array(io::PartialFile& file, unsigned long long head_bytes, DataType type, Part const& part,
                   Unit const& unit, std::vector<char>& buffer);
  void write_bitmap(Part const& part, Unit const& unit, std::vector<char>& buffer);
  void write_pictures(unsigned char const* tiles) const;

  OutputRequest request_;
  Index count_;
  DataType image_type_;
  std::string key_, head_;
  int threads_;
  bool finished_ = false, joined_ = false;
  std::mutex mutex_;  // of written_ and the progress
  Dealer::Written written_;
  std::unique_ptr<io::ProgressFile> progress_;
  std::unique_ptr<io::PartialFile> output_, bitmap_, tiles_;
};

}  // namespace cosmati::dcgan
