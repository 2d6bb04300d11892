// The body of `cosmati predict lenet5`, and the confusion matrix.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "cli/networks/lenet5_report.h"
#include "cli/output/record.h"
#include "cli/output/table.h"
#include "cli/output/text.h"
#include "nets/lenet5/model.h"
#include "src/io/image/image.h"

namespace cosmati::cli {
namespace {

// Converts a picture to the form of the training images: light on dark, 28x28, aspect ratio kept.
io::Image as_input(io::Image const& picture) {
  io::Image gray = io::to_gray(picture);
  long long border = 0, count = 0;
  for (int y = 0; y < gray.height; ++y)
    for (int x = 0; x < gray.width; ++x)
      if (x == 0 || y == 0 || x == gray.width - 1 || y == gray.height - 1)
        border += gray.pixels[gray.offset(x, y)], ++count;
  if (border > 127 * count)
    for (unsigned char& pixel : gray.pixels) pixel = static_cast<unsigned char>(255 - pixel);
  int const size = lenet5::image_size;
  int const side = std::max(gray.width, gray.height);
  if (gray.width != gray.height) {
    io::Image square = io::make_image(side, side, 1);
    for (int y = 0; y < gray.height; ++y)
      std::copy_n(&gray.pixels[gray.offset(0, y)], gray.width,
                  &square.pixels[square.offset((side - gray.width) / 2, y + (side - gray.height) / 2)]);
    gray = std::move(square);
  }
  return side == size  ? gray
         : side > size ? io::resize_area(gray, size, size)
                       : io::resize_bilinear(gray, size, size);
}

unsigned char page_of(std::string const& background) {
  if (background.empty() || background == "white") return io::white_page;
  if (background == "black") return 0;
  Index const level = background.find_first_not_of("0123456789") == std::string::npos && background.size() < 4
                          ? parse_index(background, "--background")
                          : -1;
  if (level < 0 || level > 255)
    throw Error(ErrorCode::bad_request,
                "--background " + background + " is not a page color; valid values: white, black, 0 to 255");
  return static_cast<unsigned char>(level);
}

void predict_images(PredictRequest const& request, lenet5::Model& model, Device const& device) {
  nets::Dataset data;
  data.images = Tensor(DataType::u8,
                       {static_cast<Index>(request.images.size()), lenet5::image_size, lenet5::image_size});
  auto* target = data.images.as<unsigned char>();
  unsigned char const page = page_of(request.background);
  for (std::string const& path : request.images) {
    io::Image const input = as_input(io::read_image(path, page));
    target = std::copy(input.pixels.begin(), input.pixels.end(), target);
  }
  auto const scores = nets::make_executor(model.assignment(device))->scores(data);
  for (std::size_t i = 0; i < request.images.size(); ++i) {
    float const* const row = &scores[i * lenet5::class_count];
    auto const best = static_cast<std::size_t>(lenet5::best_class(row));
    double sum = 0;  // probabilities by softmax; for Gaussian units the scores are negative distances
    for (int c = 0; c < lenet5::class_count; ++c) sum += std::exp(static_cast<double>(row[c] - row[best]));
    double const probability = 1 / sum;
    if (request.common.json)
      print_text(Record()
                     .add("image", request.images[i])
                     .add("class", static_cast<long long>(best))
                     .add("name", model.classes[best])
                     .add("probability", probability)
                     .json());
    else
      print_line(fmt::format("{}  {}  {:.1f}%", printable_name(request.images[i]),
                             printable_name(model.classes[best]), probability * 100));
  }
}

void predict_data(PredictRequest const& request, lenet5::Model& model, Device const& device) {
  auto const data =
      nets::read_dataset(request.data, nets::Split::test, lenet5::class_count, lenet5::image_size);
  auto const evaluation = lenet5::evaluate(*nets::make_executor(model.assignment(device)), data);
  if (request.common.json) {
    print_text(Record()
                   .add("images", static_cast<long long>(data.count()))
                   .add("accuracy", evaluation.accuracy)
                   .json());
    return;
  }
  print_text(confusion_text(evaluation.confusion, model.classes));
  print_line(fmt::format("\naccuracy {:.2f}% of {} images", evaluation.accuracy * 100, data.count()));
}

}  // namespace

std::string confusion_text(std::vector<std::vector<long long>> const& confusion,
                           std::vector<std::string> const& names) {
  std::size_t width = 6;
  std::vector<std::string> classes;
  for (std::string const& name : names) classes.push_back(printable_name(name));
  for (std::string const& name : classes) width = std::max(width, name.size() + 2);
  std::string text = fmt::format("{:<{}}", "", width);
  for (std::string const& name : classes) text += fmt::format("{:>{}}", name, width);
  text += fmt::format("{:>{}}\n", "correct", width + 2);
  for (std::size_t label = 0; label < classes.size(); ++label) {
    text += fmt::format("{:<{}}", classes[label], width);
    for (long long count : confusion[label])
      text += fmt::format("{:>{}}", count == 0 ? "." : std::to_string(count), width);
    long long const total = std::accumulate(confusion[label].begin(), confusion[label].end(), 0LL);
    double const right =
        total == 0 ? 0 : static_cast<double>(confusion[label][label]) / static_cast<double>(total);
    text += fmt::format("{:>{}.1f}%\n", right * 100, width + 1);
  }
  return text;
}

void predict_lenet5(PredictRequest const& request) {
  if (request.model.empty())
    throw Error(ErrorCode::bad_request, "missing required option --model FILE (saved by `train lenet5`)");
  if (request.data.empty() == request.images.empty())
    throw Error(ErrorCode::bad_request, "expected either --data FOLDER or --image FILE");
  if (!request.background.empty() && request.images.empty())
    throw Error(ErrorCode::bad_request, "--background " + request.background + " requires --image FILE");
  auto const loaded = lenet5::load(request.model, false);
  Device const device = request.common.device_to_run_on();
  if (request.data.empty())
    predict_images(request, *loaded.model, device);
  else
    predict_data(request, *loaded.model, device);
}

}  // namespace cosmati::cli
