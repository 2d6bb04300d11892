// Output of images: text, .npy, .raw or a picture; each chunk has a fixed position, so that threads and
// processes write concurrently, and an interrupted run can be continued.
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
  std::string output;                    // .npy, .raw (only the numbers), otherwise text; empty: none
  std::string image;                     // .bmp or .png; empty: none
  std::string animation;                 // an animated PNG of all images; empty: none
  Index columns = 0;                     // images per row of `image`; 0: a square
  int frames_per_second = 20;            // of the animation
  DataType output_type = DataType::f32;  // of .npy and .raw: f32, f16 or u8
};

// Whether the numbers of `output` are written as bytes, not as text.
bool is_array(std::string const& output);

// A grid of more images would exceed the maximum size of a picture.
inline constexpr Index max_images_of_a_picture = 65536;

// Returns the narrowest type from which all requested outputs can be computed exactly.
DataType image_type_for(OutputRequest const& request);

// The files are written under their names with ".partial" appended, and FILE.progress records their valid
// parts. A run with the same `key` continues them; finish() renames them. One process creates and finishes
// the files; others may join to write parts of them. write() is thread-safe unless in_order().
class Output {
 public:
  // Throws Error(system), and Error(unavailable) if another process is writing the same files.
  Output(OutputRequest request, Index count, DataType image_type, std::string key, int threads);
  // Opens the files that another process has marked with `seal`. Null if they cannot be written from here, or
  // if the files with these names are different ones.
  static std::unique_ptr<Output> join(OutputRequest request, Index count, DataType image_type, int threads,
                                      std::string const& seal);
  ~Output();
  Output(Output const&) = delete;
  Output& operator=(Output const&) = delete;

  // Images written by an earlier run, counted from the first, and the end of their text.
  Index images() const { return written_.images; }
  Index text_at() const { return written_.text_at; }
  // Marks the files for processes that want to join, at the position of the next chunk.
  std::string seal();
  bool text() const { return output_ && !is_array(request_.output); }
  bool in_order() const { return output_ && output_->in_order(); }  // a pipe or device

  // Measures the length of each image's text.
  Part part(Chunk const& chunk, Images images) const;
  void write(Part const& part);
  void flush();  // flushes this process's writes to disk
  // Records the new valid part; ignored if it has fewer images than before.
  void note(Dealer::Written const& written);
  void finish();
  void discard();  // the alternative: removes everything

 private:
  struct Unit;
  Output(OutputRequest request, Index count, DataType image_type, int threads);
  std::string const& picture_path() const {
    return request_.image.empty() ? request_.animation : request_.image;
  }
  // Whether a picture is made from the complete bytes: any but a BMP file, whose bytes have fixed positions.
  bool has_tiles() const;
  bool has_bitmap() const;
  std::string tiles_path() const { return picture_path() + ".tiles"; }
  std::string head() const;  // of output
  Index columns() const;
  Index rows() const;
  Index bitmap_end(Index images) const;  // the bytes of a bitmap that has the first images
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
  std::mutex mutex_;  // protects written_ and the progress
  Dealer::Written written_;
  std::unique_ptr<io::ProgressFile> progress_;
  std::unique_ptr<io::PartialFile> output_, bitmap_, tiles_;
};

}  // namespace cosmati::dcgan
