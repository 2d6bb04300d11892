// The unroll kernel of Kirk and Hwu, figure 16.18, with its indices corrected. Profiling it shows the sectors
// that a warp's accesses touch; docs/convolution.md has the results.
//
//   nvcc -arch=native -O3 -o unroll_of_the_chapter unroll_of_the_chapter.cu
//   ncu --metrics
//   l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum,l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum,...
//   ./unroll_of_the_chapter
#include <cstdio>

// A thread handles one output pixel and one channel, and copies the input elements under the filter there:
// unrolled[(c, p, q), pixel] = x[c, row + p, column + q]. x is (C, H, W), with channels_last (H, W, C).
template <bool channels_last>
__global__ void unroll(int channels, int height, int width, int taps, float const* x, float* unrolled) {
  int const rows = height - taps + 1, columns = width - taps + 1, pixels = rows * columns;
  int const thread = blockIdx.x * blockDim.x + threadIdx.x;
  if (thread >= channels * pixels) return;
  int const channel = thread / pixels, pixel = thread % pixels;
  int const row = pixel / columns, column = pixel % columns;
  for (int p = 0; p < taps; ++p)
    for (int q = 0; q < taps; ++q) {
      int const place = (row + p) * width + column + q;
      int const from = channels_last ? place * channels + channel : channel * height * width + place;
      unrolled[((channel * taps + p) * taps + q) * pixels + pixel] = x[from];
    }
}

int main() {
  constexpr int channels = 64, size = 30, taps = 3, block = 256;
  constexpr int pixels = (size - taps + 1) * (size - taps + 1), threads = channels * pixels;
  float *x = nullptr, *unrolled = nullptr;
  if (cudaMalloc(&x, sizeof(float) * channels * size * size) != cudaSuccess ||
      cudaMalloc(&unrolled, sizeof(float) * channels * taps * taps * pixels) != cudaSuccess)
    return 1;
  cudaMemset(x, 0, sizeof(float) * channels * size * size);
  unroll<false><<<(threads + block - 1) / block, block>>>(channels, size, size, taps, x, unrolled);
  unroll<true><<<(threads + block - 1) / block, block>>>(channels, size, size, taps, x, unrolled);
  cudaError_t const status = cudaDeviceSynchronize();
  std::printf("%s\n", cudaGetErrorString(status));
  return status == cudaSuccess ? 0 : 1;
}
