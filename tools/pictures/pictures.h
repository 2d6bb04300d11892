// The pictures of docs/layouts.md, each made by the layout functions that the kernels use; returns the text
// of an SVG file.
#pragma once
#include <string>

namespace cosmati::pictures {

std::string thread_tile();             // sums of a thread, and the banks of its reads (tile/partition.h)
std::string matrix_fragments_f16();    // mma.sync m16n8k16 (tile/matrix_fragment.h, gemm/traits.h)
std::string matrix_fragments_tf32();   // mma.sync m16n8k8
std::string matrix_fragments_f64();    // mma.sync m16n8k4, or two of m8n8k4 (tile/double_fragment.h)
std::string swizzled_tiles();          // reads of ldmatrix (tile/swizzled_tile.h)
std::string tensor_swizzles();         // writes of TMA (tile/matrix_descriptor.h)
std::string matrix_descriptors();      // the descriptors of wgmma (tile/tensor_tile.h)
std::string warpgroup_accumulators();  // sums of wgmma (gemm/warpgroup_product.h)
std::string tensor_stores();           // the buffer from which TMA stores D (gemm/tensor_epilogue.h)

}  // namespace cosmati::pictures
