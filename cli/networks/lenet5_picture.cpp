// Draws the picture of a training run: a grid of predictions above two curves.
#include "cli/networks/lenet5_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/io/draw.h"

namespace cosmati::cli {
namespace {

constexpr io::Color ink{40, 40, 40};
constexpr io::Color pale{222, 222, 222};
constexpr io::Color right_color{20, 120, 50};
constexpr io::Color wrong_color{190, 30, 30};
constexpr io::Color train_color{120, 120, 200};
constexpr io::Color test_color{200, 90, 20};

constexpr int columns = 10, rows = 4, scale = 3;
constexpr int cell_width = 100, cell_height = 28 * scale + 22;
constexpr int margin = 20, grid_top = 34;
constexpr int plot_left = 70, plot_top = grid_top + rows * cell_height + 40, plot_height = 220;
constexpr int picture_width = 2 * margin + columns * cell_width;
constexpr int plot_width = picture_width - plot_left - 120;

io::Image image_of(nets::Dataset const& data, Index number) {
  io::Image image = io::make_image(static_cast<int>(data.width()), static_cast<int>(data.height()), 1);
  std::copy_n(data.image(number), image.pixels.size(), image.pixels.begin());
  return image;
}

void draw_answers(io::Canvas& canvas, nets::Dataset const& data, std::vector<int> const& predictions,
                  std::vector<std::string> const& classes) {
  int const shown = static_cast<int>(std::min<std::size_t>(predictions.size(), columns * rows));
  for (int i = 0; i < shown; ++i) {
    int const x = margin + i % columns * cell_width, y = grid_top + i / columns * cell_height;
    auto const at = static_cast<std::size_t>(i);
    auto const answer = static_cast<std::size_t>(predictions[at]),
               truth = static_cast<std::size_t>(data.labels[at]);
    canvas.blit(image_of(data, i), x, y, scale);
    std::string const text =
        answer == truth ? classes[answer] : fmt::format("{} ({})", classes[answer], classes[truth]);
    canvas.text(x, y + 28 * scale + 4, text, answer == truth ? right_color : wrong_color);
  }
}

void draw_curves(io::Canvas& canvas, std::vector<lenet5::EpochReport> const& history) {
  double lowest = 1;
  for (auto const& report : history) lowest = std::min({lowest, report.train_accuracy, report.test_accuracy});
  double const bottom = std::floor(lowest * 20) / 20;  // the axis begins at a multiple of 5 %
  double const span = std::max(1 - bottom, 0.05);
  auto const x_of = [&](std::size_t epoch) {
    std::size_t const steps = std::max<std::size_t>(history.size() - 1, 1);
    return plot_left + static_cast<int>(
                           std::lround(static_cast<double>(epoch) * plot_width / static_cast<double>(steps)));
  };
  auto const y_of = [&](double accuracy) {
    return plot_top + static_cast<int>(std::lround((1 - accuracy) / span * plot_height));
  };
  for (int tick = 0; tick <= 5; ++tick) {
    double const accuracy = bottom + span * tick / 5;
    canvas.line(plot_left, y_of(accuracy), plot_left + plot_width, y_of(accuracy), pale);
    canvas.text(plot_left - 46, y_of(accuracy) - 4, fmt::format("{:5.1f}%", accuracy * 100), ink);
  }
  canvas.rectangle(plot_left, plot_top, plot_width + 1, plot_height + 1, ink);
  std::size_t const label_step = std::max<std::size_t>(1, (history.size() + 19) / 20);
  for (std::size_t e = 0; e < history.size(); e += label_step)
    canvas.text(x_of(e) - 3, plot_top + plot_height + 8, std::to_string(history[e].epoch), ink);
  canvas.text(plot_left + plot_width / 2 - 15, plot_top + plot_height + 22, "epoch", ink);

  auto const draw = [&](double lenet5::EpochReport::*accuracy, io::Color color) {
    for (std::size_t e = 0; e < history.size(); ++e) {
      int const x = x_of(e), y = y_of(history[e].*accuracy);
      canvas.fill_rectangle(x - 2, y - 2, 5, 5, color);
      if (e > 0) canvas.line(x_of(e - 1), y_of(history[e - 1].*accuracy), x, y, color);
    }
  };
  draw(&lenet5::EpochReport::train_accuracy, train_color);
  draw(&lenet5::EpochReport::test_accuracy, test_color);
  int const legend = plot_left + plot_width + 12;
  canvas.text(legend, plot_top, fmt::format("train {:.2f}%", history.back().train_accuracy * 100),
              train_color);
  canvas.text(legend, plot_top + 14, fmt::format("test  {:.2f}%", history.back().test_accuracy * 100),
              test_color);
}

}  // namespace

io::Image lenet5_picture(nets::Dataset const& data, std::vector<int> const& predictions,
                         std::vector<std::string> const& classes,
                         std::vector<lenet5::EpochReport> const& history) {
  io::Canvas canvas(picture_width, plot_top + plot_height + 44, io::white);
  canvas.text(margin, 12, "Predictions for test images (true label in parentheses if wrong)", ink);
  draw_answers(canvas, data, predictions, classes);
  if (!history.empty()) {
    canvas.text(margin, plot_top - 18, "Accuracy after each epoch", ink);
    draw_curves(canvas, history);
  }
  return canvas.image();
}

}  // namespace cosmati::cli
