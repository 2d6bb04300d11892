// A training step is a list of operations enqueued on one device, with sums over all devices.
#include "nets/dcgan/replica.h"

#include <algorithm>
#include <string>
#include <system_error>

#include "cosmati/epilogue/parse.h"
#include "nets/dataset.h"
#include "nets/random.h"
#include "src/backend/cpu/runtime/parallel.h"

namespace cosmati::dcgan {
namespace {

// The purposes of random streams; epochs have their own (nets::shuffled).
constexpr unsigned long long weights_purpose = 1ULL << 40, latents_purpose = 1ULL << 41;
constexpr std::size_t alignment = 256;            // bytes
constexpr std::size_t block_bytes = 64ULL << 20;  // size of a block of images that is uploaded at once
constexpr long long longest_block = 64;           // steps

std::size_t rounded(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

// A random initial value of an array's element.
double initial(std::string const& name, nets::Random& random) {
  if (name.ends_with("_w")) return 0.02 * random.normal();
  if (name.ends_with("_gamma")) return 1 + 0.02 * random.normal();
  return 0;
}

}  // namespace

Replica::Replica(Settings const& settings, Pictures const& pictures, Device const& device,
                 nets::Membership const& membership)
    : settings_(settings), pictures_(pictures), device_(device), membership_(membership) {
  Settings const& s = settings_;
  Precision const precision{s.compute};
  auto const share = cpu::share(s.batch, membership.number, membership.of);
  first_ = share.first;
  batch_ = share.last - share.first;
  for (Network* network : {&generator_values, &discriminator_values}) {
    network->sums = membership.sums;
    network->share = static_cast<double>(batch_) / static_cast<double>(s.batch);
  }
  generator_ =
      std::make_unique<GeneratorTraining>(generator_values, s.architecture, batch_, device_, precision, true);
  discriminator_ =
      std::make_unique<Discriminator>(discriminator_values, s.architecture, batch_, device_, precision);
  bench_ = std::make_unique<Workbench>(device_, precision);
  for (Network* network : {&generator_values, &discriminator_values}) {
    network->allocate(device_, precision);
    OptimizerProblem problem;
    problem.kind = OptimizerKind::adam;
    problem.parameter = problem.gradient = problem.state = network->variables.flat();
    problem.beta1 = s.beta1;
    problem.beta2 = s.beta2;
    bool const first = network == &generator_values;
    bench_->make((first ? learn_generator_ : learn_discriminator_), problem);
    if (precision.stored() != DataType::f32)
      bench_->make((first ? convert_generator_ : convert_discriminator_),
                   TransformProblem{network->variables.flat(), network->variables.flat(precision.stored())});
  }
  Index const elements = batch_ * s.architecture.image_elements();
  ElementwiseProblem normalize;
  normalize.x = describe(DataType::u8, Shape(elements));
  normalize.y = describe(precision.stored(), Shape(elements));
  normalize.epilogue.expression = epilogue::parse("acc * (2 / 255) - 1", elementwise_indices(1));
  bench_->make(normalize_, normalize);
  bench_->finish();
  real_ = bench_->memory(normalize.y);
  losses_ = DeviceMemory(device_, 2 * alignment);
  losses_.fill(0);

  picture_stride_ = rounded(static_cast<std::size_t>(elements));
  latent_stride_ = rounded(static_cast<std::size_t>(batch_ * s.architecture.latent) * sizeof(float));
  block_steps_ = std::clamp(static_cast<long long>(block_bytes / picture_stride_), 1LL, longest_block);
  auto const steps = static_cast<std::size_t>(block_steps_);
  pictures_block_ = DeviceMemory(device_, steps * picture_stride_);
  latents_block_ = DeviceMemory(device_, steps * latent_stride_);
  pictures_host_ = HostMemory(device_, steps * picture_stride_);
  latents_host_ = HostMemory(device_, steps * latent_stride_);
}

void Replica::initialize() {
  unsigned long long purpose = weights_purpose;
  for (Network* network : {&generator_values, &discriminator_values}) {
    std::vector<float> values = download(network->values);
    for (Variable const& variable : network->variables.list()) {
      nets::Random random(settings_.seed, purpose++);
      for (Index i = 0; i < variable.shape.size(); ++i)
        values[static_cast<std::size_t>(variable.offset + i)] =
            static_cast<float>(initial(variable.name, random));
    }
    upload(network->values, values);
  }
  std::vector<float> statistics = download(generator_values.running);
  for (Variable const& variable : generator_values.statistics.list())
    if (variable.name.ends_with("_var"))
      std::fill_n(statistics.begin() + variable.offset, variable.shape.size(), 1.0F);
  upload(generator_values.running, statistics);
  refresh_factors();
}

void Replica::refresh_factors() {
  if (Precision{settings_.compute}.stored() == DataType::f32) return;
  convert_generator_.run({.x = generator_values.values.data(), .y = generator_values.factors.data()},
                         bench_->workspace());
  convert_discriminator_.run(
      {.x = discriminator_values.values.data(), .y = discriminator_values.factors.data()},
      bench_->workspace());
}

// Writes to host buffers and order_, which nothing else uses while it runs.
void Replica::draw_block(long long first_step, long long steps) {
  Index const elements = settings_.architecture.image_elements(), latent = settings_.architecture.latent;
  for (long long i = 0; i < steps; ++i) {
    long long const at = first_step + i, epoch = at / steps_an_epoch();
    if (epoch != order_epoch_) order_ = nets::shuffled(pictures_.count, settings_.seed, epoch);
    order_epoch_ = epoch;
    Index const first = at % steps_an_epoch() * settings_.batch + first_;
    auto* const to = pictures_host_.as<unsigned char>() + static_cast<std::size_t>(i) * picture_stride_;
    for (Index n = 0; n < batch_; ++n)
      pictures_.draw(order_[static_cast<std::size_t>(first + n)], to + n * elements);
    nets::Random random(settings_.seed, latents_purpose + static_cast<unsigned long long>(at));
    auto* const z = reinterpret_cast<float*>(latents_host_.as<std::byte>() +
                                             static_cast<std::size_t>(i) * latent_stride_);
    // Skips the latent vectors of other devices.
    random.skip(static_cast<unsigned long long>(first_ * latent));
    for (Index e = 0; e < batch_ * latent; ++e) z[e] = static_cast<float>(random.uniform(-1, 1));
  }
}

// Uploads the block that begins with step `first`, which was prepared before, and prepares the next one while
// the device works.
void Replica::send_block(long long first) {
  auto const steps_from = [this](long long step) { return std::min(block_steps_, settings_.steps - step); };
  bool const drawn = drawn_.valid() && drawn_first_ == first;
  if (drawn_.valid()) drawn_.get();
  if (!drawn) draw_block(first, steps_from(first));
  auto const steps = static_cast<std::size_t>(steps_from(first));
  pictures_block_.upload(pictures_host_.data(), steps * picture_stride_);
  latents_block_.upload(latents_host_.data(), steps * latent_stride_);
  block_first_ = first;
  block_end_ = drawn_first_ = first + steps_from(first);
  if (block_end_ == settings_.steps) return;
  try {
    drawn_ = std::async(std::launch::async, [this, next = block_end_, count = steps_from(block_end_)] {
      draw_block(next, count);
    });
  } catch (std::system_error const&) {
    // No thread is available: the block is prepared when it is needed.
  }
}

void Replica::update(Network& network, Prepared<OptimizerProblem> const& optimizer,
                     Prepared<TransformProblem> const& convert, long long step) {
  auto* const gradient = static_cast<float*>(network.gradient[0].data());
  if (membership_.sums != nullptr)
    membership_.sums->sum(gradient, network.gradient[0].bytes() / sizeof(float), 1, nullptr);
  optimizer.run({.parameter = network.values.data(),
                 .gradient = gradient,
                 .velocity = network.first.data(),
                 .second = network.second.data(),
                 .rate = settings_.rate,
                 .step = step + 1},
                bench_->workspace());
  if (network.factors.bytes() > 0)
    convert.run({.x = network.values.data(), .y = network.factors.data()}, bench_->workspace());
}

void Replica::step(long long step) {
  if (step < block_first_ || step >= block_end_) send_block(step);
  auto const at = static_cast<std::size_t>(step - block_first_);
  auto const* const pictures = static_cast<std::byte*>(pictures_block_.data()) + at * picture_stride_;
  auto const* const z = static_cast<std::byte*>(latents_block_.data()) + at * latent_stride_;
  auto* const losses = static_cast<std::byte*>(losses_.data());
  normalize_.run({.x = pictures, .y = real_.data()}, bench_->workspace());
  generator_->forward(z);
  generator_->follow_statistics();

  discriminator_->forward(real_.data());
  discriminator_->loss(1, losses);
  discriminator_->backward(real_.data(), 0);
  discriminator_->forward(generator_->images());
  discriminator_->loss(0, losses);
  discriminator_->backward(generator_->images(), 1);
  discriminator_->add_gradients();
  update(discriminator_values, learn_discriminator_, convert_discriminator_, step);

  discriminator_->forward(generator_->images());
  discriminator_->loss(1, losses + alignment);
  generator_->backward(z, discriminator_->image_gradient());
  update(generator_values, learn_generator_, convert_generator_, step);
}

Replica::Losses Replica::take_losses() {
  if (membership_.sums != nullptr)
    membership_.sums->sum(static_cast<float*>(losses_.data()), losses_.bytes() / sizeof(float),
                          generator_values.share, nullptr);
  float sums[2] = {};
  for (std::size_t i = 0; i < 2; ++i) losses_.download(&sums[i], sizeof(float), i * alignment);
  losses_.fill(0);
  return {static_cast<double>(sums[0]), static_cast<double>(sums[1])};
}

std::uint64_t Replica::fingerprint() const {
  std::uint64_t result = 0;
  for (Network const* network : {&generator_values, &discriminator_values})
    for (DeviceMemory const* memory : {&network->values, &network->first, &network->second})
      result = nets::fingerprint(*memory, result);
  return nets::fingerprint(generator_values.running, result);
}

std::vector<float> Replica::sample(Index count) {
  Architecture const& a = settings_.architecture;
  Index const batch = std::min<Index>(count, 64);
  if (!sampler_ || sampler_->images_description().extent(0) != batch)
    sampler_ = std::make_unique<GeneratorTraining>(generator_values, a, batch, device_,
                                                   Precision{settings_.compute}, false);
  nets::Random random(settings_.seed, 0);
  std::vector<float> z(static_cast<std::size_t>((count + batch - 1) / batch * batch * a.latent));
  for (float& value : z) value = static_cast<float>(random.uniform(-1, 1));
  std::vector<float> images(static_cast<std::size_t>(count * a.image_elements()));
  DeviceMemory latents(device_, static_cast<std::size_t>(batch * a.latent) * sizeof(float));
  for (Index first = 0; first < count; first += batch) {
    latents.upload(z.data() + first * a.latent, latents.bytes());
    sampler_->forward(latents.data());
    DeviceMemory const& drawn = sampler_->image_memory();
    drawn.download(
        images.data() + first * a.image_elements(),
        static_cast<std::size_t>(std::min(batch, count - first) * a.image_elements()) * sizeof(float));
  }
  return images;
}

}  // namespace cosmati::dcgan
