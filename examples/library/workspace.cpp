// Workspace: how much a plan needs, plans limited to none, and one plan run by several threads, each with its
// own workspace.
#include <cosmati/ops/convolution.h>
#include <cosmati/ops/memory.h>

#include <cstdio>
#include <thread>
#include <vector>

using namespace cosmati;

int main() {
  Index const images = 4, channels = 8, extent = 20, filters = 16;
  ConvolutionProblem problem;
  problem.direction = ConvolutionDirection::forward;
  problem.x = describe(DataType::f32, Shape(images, channels, extent, extent));
  problem.w = describe(DataType::f32, Shape(filters, channels, 3, 3));
  problem.y = describe(DataType::f32, Shape(images, filters, extent, extent));
  problem.pad_begin[0] = problem.pad_begin[1] = problem.pad_end[0] = problem.pad_end[1] = 1;

  Device const device =
      this_device(Backend::cpu, 1);  // each run uses one thread, since the program has its own threads
  auto const fastest = make_plan(problem, device);
  std::printf("%s needs %zu bytes\n", fastest.kernel.c_str(), fastest.workspace_bytes);
  auto const frugal = make_plan(problem, device, {.max_workspace = 0});
  std::printf("%s needs none\n", frugal.kernel.c_str());
  if (frugal.workspace_bytes != 0) return 1;

  auto const convolution = prepare(fastest);
  std::vector<float> x(images * channels * extent * extent, 1), w(filters * channels * 9, 0.5f);
  std::size_t const threads = 4;
  std::vector<std::vector<float>> y(threads, std::vector<float>(images * filters * extent * extent));
  std::vector<std::thread> team;
  for (std::size_t i = 0; i < threads; ++i)
    team.emplace_back([&, i] {
      // Allocated once and used for all runs; its content at the beginning of a run does not matter.
      DeviceMemory const workspace(device, convolution.workspace_bytes());
      for (int run = 0; run < 3; ++run)
        convolution.run({.x = x.data(), .w = w.data(), .y = y[i].data()}, workspace.data());
    });
  for (std::thread& one : team) one.join();
  for (auto const& one : y) {
    float const corner = one[0], inside = one[extent + 1];
    if (corner != 4 * channels * 0.5f || inside != 9 * channels * 0.5f) {
      std::printf("%g in the corner, %g inside\n", corner, inside);
      return 1;
    }
  }
  std::printf("workspace: right\n");
}
