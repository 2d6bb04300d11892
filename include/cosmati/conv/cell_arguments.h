// Launch parameters of dgrad_small_c on tensor cores.
#pragma once
#include "cosmati/conv/arguments.h"
#include "cosmati/conv/cell_shape.h"

namespace cosmati {

// Strides in elements; the channels of dy are contiguous.
struct CellArguments {
  void const* image = nullptr;   // dy
  void const* filter = nullptr;  // tap (0, 0)
  int inputs = 1;                // channels of dy
  int chunks = 1;                // parts of these channels; one part is in shared memory at a time
  Index image_stride = 0;
  int image_row = 0, image_column = 0;
  Index filter_input = 0, filter_output = 0, filter_row = 0, filter_column = 0;
  int image_rows = 0, image_columns = 0;                    // of dy
  int height = 0, width = 0;                                // of dx
  int number_image = 0, number_row = 0, number_column = 0;  // increments of the pixel's index, m or n
  bool swapped = false;                                     // m of the result is the channel, n the pixel
  Divisor tiles_down, tiles_across;
  int tiles = 0;    // of all images
  CellShape shape;  // for a kernel compiled without a fixed shape
};

// The tile of a block: its image and its first cells.
struct CellTile {
  int image, row, column;
  COSMATI_DEVICE CellTile(CellArguments const& window, CellShape const& shape, int number) {
    int const down_of_all = window.tiles_across.quotient(number);
    image = window.tiles_down.quotient(down_of_all);
    row = (down_of_all - image * window.tiles_down.divisor) * shape.down;
    column = (number - down_of_all * window.tiles_across.divisor) * shape.across;
  }
};

template <class Epilogue, class Destination>
struct CellParameters {
  CellArguments window;
  Destination d;
  Epilogue epilogue;
};

}  // namespace cosmati
