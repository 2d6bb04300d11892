// Shapes, layouts and views.
#include "cosmati/core/shape.h"

#include <gtest/gtest.h>

#include <set>

namespace cosmati {
namespace {

TEST(Shape, ExtentsAndSize) {
  Shape const shape{2, 3, 4};
  EXPECT_EQ(shape.rank, 3);
  EXPECT_EQ(shape[1], 3);
  EXPECT_EQ(shape.size(), 24);
  EXPECT_EQ(Shape{}.size(), 1);
  EXPECT_EQ((Shape{5, 0}).size(), 0);
  EXPECT_EQ((Shape{1ll << 20, 1ll << 20, 3}).size(), 3ll << 40);
}

TEST(Shape, Equality) {
  EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
  EXPECT_FALSE((Shape{2, 3}) == (Shape{3, 2}));
  EXPECT_FALSE((Shape{2}) == (Shape{2, 1}));
}

TEST(Layout, RowAndColumnMajor) {
  Layout const rows = row_major({2, 3, 4});
  EXPECT_EQ(rows.offset(1, 2, 3), 23);
  EXPECT_TRUE(rows.is_row_major());
  EXPECT_TRUE(rows.is_dense());
  Layout const columns = column_major({2, 3, 4});
  EXPECT_EQ(columns.offset(1, 2, 3), 23);
  EXPECT_EQ(columns.offset(1, 0, 0), 1);
  EXPECT_FALSE(columns.is_row_major());
  EXPECT_TRUE(columns.is_dense());
}

TEST(Layout, ExtentsOfOneHaveNoSay) {
  Layout const layout{{1, 3, 1}, {77, 1, 5}};
  EXPECT_TRUE(layout.is_row_major());
  EXPECT_TRUE(layout.is_dense());
  EXPECT_FALSE(layout.overlaps());
}

TEST(Layout, LinearIndexIsRowMajorWhateverTheStrides) {
  Layout const layout = image_layout(TensorFormat::chwn, 2, 3, 4, 5);
  Index linear = 0;
  for (Index n = 0; n < 2; ++n)
    for (Index c = 0; c < 3; ++c)
      for (Index h = 0; h < 4; ++h)
        for (Index w = 0; w < 5; ++w) EXPECT_EQ(layout.offset_of_linear(linear++), layout.offset(n, c, h, w));
}

TEST(Layout, ImagesInThreeFormats) {
  EXPECT_EQ(image_layout(TensorFormat::nchw, 2, 3, 4, 5).offset(1, 2, 3, 4), ((1 * 3 + 2) * 4 + 3) * 5 + 4);
  EXPECT_EQ(image_layout(TensorFormat::nhwc, 2, 3, 4, 5).offset(1, 2, 3, 4), ((1 * 4 + 3) * 5 + 4) * 3 + 2);
  EXPECT_EQ(image_layout(TensorFormat::chwn, 2, 3, 4, 5).offset(1, 2, 3, 4), ((2 * 4 + 3) * 5 + 4) * 2 + 1);
  for (TensorFormat format : {TensorFormat::nchw, TensorFormat::nhwc, TensorFormat::chwn}) {
    Layout const layout = image_layout(format, 2, 3, 4, 5);
    EXPECT_EQ(layout.shape, (Shape{2, 3, 4, 5})) << name_of(format);
    EXPECT_TRUE(layout.is_dense()) << name_of(format);
  }
  EXPECT_STREQ(name_of(TensorFormat::chwn), "chwn");
}

TEST(Layout, SpanReachesTheLastElement) {
  EXPECT_EQ((Layout{{2, 3}, {10, 2}}).span(), 15);
  EXPECT_EQ((Layout{{2, 0}, {10, 2}}).span(), 0);
  EXPECT_EQ(Layout{}.span(), 1);
  EXPECT_FALSE((Layout{{2, 3}, {10, 2}}).is_dense());
  EXPECT_EQ((Layout{{1ll << 31, 2}, {2, 1}}).span(), 1ll << 32);
}

// If overlaps() is false, all offsets differ. The converse holds for two dimensions if one stride is a
// multiple of the other.
TEST(Layout, OverlapsAgainstEveryOffset) {
  for (Index s0 = 0; s0 <= 7; ++s0)
    for (Index s1 = 0; s1 <= 7; ++s1)
      for (Index s2 = 0; s2 <= 7; ++s2) {
        Layout const layout{{2, 3, 2}, {s0, s1, s2}};
        std::set<Index> offsets;
        for (Index i = 0; i < layout.size(); ++i) offsets.insert(layout.offset_of_linear(i));
        bool const distinct = static_cast<Index>(offsets.size()) == layout.size();
        EXPECT_TRUE(distinct || layout.overlaps()) << s0 << " " << s1 << " " << s2;
        EXPECT_TRUE(distinct || !layout.is_dense()) << s0 << " " << s1 << " " << s2;
      }
  EXPECT_FALSE((Layout{{4, 3}, {3, 1}}).overlaps());
  EXPECT_FALSE((Layout{{4, 3}, {1, 4}}).overlaps());
  EXPECT_FALSE((Layout{{2, 2}, {3, 2}}).overlaps());
  EXPECT_TRUE((Layout{{4, 3}, {2, 1}}).overlaps());
  EXPECT_TRUE((Layout{{4}, {0}}).overlaps());
  EXPECT_FALSE((Layout{{4, 0}, {0, 1}}).overlaps());  // an empty layout
}

TEST(Layout, Permuted) {
  Layout const layout = row_major({2, 3, 4}).permuted(2, 0, 1);
  EXPECT_EQ(layout.shape, (Shape{4, 2, 3}));
  EXPECT_EQ(layout.offset(3, 1, 2), 23);
  EXPECT_EQ(layout.offset(1, 0, 0), 1);
  EXPECT_EQ(layout.permuted(1, 2, 0), row_major({2, 3, 4}));
}

TEST(Layout, WorksAtCompileTime) {
  static_assert(image_layout(TensorFormat::nhwc, 1, 3, 2, 2).offset(0, 1, 1, 0) == 7);
  static_assert(row_major({2, 3}).span() == 6);
}

TEST(TensorView, ReadsAndWritesThroughStrides) {
  int data[6] = {0, 1, 2, 3, 4, 5};
  TensorView<int> const view{data, column_major({2, 3})};
  EXPECT_EQ(view(1, 2), 5);
  EXPECT_EQ(view(1, 0), 1);
  view(0, 1) = 20;
  EXPECT_EQ(data[2], 20);
}

}  // namespace
}  // namespace cosmati
