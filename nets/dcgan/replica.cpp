// A training step is a list of operations enqueued on one device, with sums over all devices.
#include "nets/dcgan/replica.h"

#include <algorithm>
#include <string>

#include "cosmati/epilogue/parse.h"
#include "nets/random.h"
#include "src/backend/cpu/runtime/parallel.h"

namespace cosmati::dcgan {
namespace {

// The purposes of random streams; epochs have their own (nets::shuffled).
constexpr unsigned long long weights_purpose = 1ULL << 40;  // that of latent vectors is in feed.cpp
constexpr std::size_t alignment = 256;                      // bytes, between the losses
constexpr std::size_t loss_count = 3;  // of the discriminator for data and for images, and of the generator

// A random initial value of an array's element.
double initial(std::string const& name, nets::Random& random) {
  if (name.ends_with("_w")) return 0.02 * random.normal();
  if (name.ends_with("_gamma")) return 1 + 0.02 * random.normal();
  return 0;
}

}  // namespace

Replica::Replica(Settings const& settings, Pictures const& pictures, Device const& device,
                 nets::Membership const& membership)
    : settings_(settings), device_(device), membership_(membership), queue_(device), branch_(device, queue_) {
  Settings const& s = settings_;
  Precision const precision{s.compute};
  auto const share = cpu::share(s.batch, membership.number, membership.of);
  Index const batch = share.last - share.first;
  for (Network* network : {&generator_values, &discriminator_values}) {
    network->sums = membership.sums;
    network->share = static_cast<double>(batch) / static_cast<double>(s.batch);
    network->statistics_of = s.statistics;
  }
  generator_ = std::make_unique<GeneratorTraining>(generator_values, s.architecture, batch, device_,
                                                   precision, true, queue_);
  discriminator_ = std::make_unique<Discriminator>(discriminator_values, s.architecture, batch, device_,
                                                   precision, queue_);
  // Host backends have only one queue, and sums over devices keep their order only on one.
  if (static_cast<Stream>(queue_) != nullptr && !discriminator_values.shares_statistics())
    beside_ = std::make_unique<Discriminator>(discriminator_values, s.architecture, batch, device_, precision,
                                              branch_.side());
  bench_ = std::make_unique<Workbench>(device_, precision, queue_);
  OptimizerProblem problem;
  problem.kind = OptimizerKind::adam;
  problem.beta1 = s.beta1;
  problem.beta2 = s.beta2;
  problem.numbers = Feed::numbers_description();
  for (Network* network : {&generator_values, &discriminator_values}) {
    network->allocate(device_, precision);
    problem.parameter = problem.gradient = problem.state = network->variables.flat();
    bool const first = network == &generator_values;
    bench_->make((first ? learn_generator_ : learn_discriminator_), problem);
    if (precision.stored() != DataType::f32)
      bench_->make((first ? convert_generator_ : convert_discriminator_),
                   TransformProblem{network->variables.flat(), network->variables.flat(precision.stored())});
  }
  Index const elements = batch * s.architecture.image_elements();
  ElementwiseProblem normalize;
  normalize.x = describe(DataType::u8, Shape(elements));
  normalize.y = describe(precision.stored(), Shape(elements));
  normalize.epilogue.expression = epilogue::parse("acc * (2 / 255) - 1", elementwise_indices(1));
  bench_->make(normalize_, normalize);
  bench_->make(keep_numbers_, TransformProblem{problem.numbers, problem.numbers});
  bench_->finish();
  numbers_ = bench_->memory(problem.numbers);
  real_ = bench_->memory(normalize.y);
  losses_ = DeviceMemory(device_, loss_count * alignment);
  losses_.fill(0);
  feed_ = std::make_unique<Feed>(settings_, pictures, device_, share.first, batch, problem);
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
  bench_->run(convert_generator_,
              {.x = generator_values.values.data(), .y = generator_values.factors.data()});
  bench_->run(convert_discriminator_,
              {.x = discriminator_values.values.data(), .y = discriminator_values.factors.data()});
}

void Replica::update(Network& network, Prepared<OptimizerProblem> const& optimizer,
                     Prepared<TransformProblem> const& convert, void const* numbers) {
  auto* const gradient = static_cast<float*>(network.gradient[0].data());
  if (membership_.sums != nullptr)
    membership_.sums->sum(gradient, network.gradient[0].bytes() / sizeof(float), 1, queue_);
  bench_->run(optimizer, {.parameter = network.values.data(),
                          .gradient = gradient,
                          .velocity = network.first.data(),
                          .second = network.second.data(),
                          .numbers = numbers});
  if (network.factors.bytes() > 0)
    bench_->run(convert, {.x = network.values.data(), .y = network.factors.data()});
}

void Replica::update_generator() {
  update(generator_values, learn_generator_, convert_generator_, numbers_.data());
}

void Replica::step(long long step) {
  int const place = static_cast<int>(step % 2);
  feed_->send(step, queue_);
  if (warm_) {
    recording(place, generator_is_behind_).put(queue_);
  } else {  // what the first sums over devices allocate cannot be recorded
    compute(place, false);
    update_generator();
  }
  generator_is_behind_ = warm_;
  warm_ = true;
  feed_->done(step, queue_);
}

void Replica::finish() {
  if (generator_is_behind_) update_generator();
  generator_is_behind_ = false;
  queue_.wait();
}

Recording const& Replica::recording(int place, bool after_another) {
  auto& recording = recordings_[place][after_another ? 1 : 0];
  if (!recording)
    recording.emplace(queue_, [this, place, after_another](Stream) { compute(place, after_another); });
  return *recording;
}

void Replica::compute(int place, bool after_another) {
  void const *const z = feed_->latents(place), *const numbers = feed_->numbers(place);
  auto* const losses = static_cast<std::byte*>(losses_.data());
  bench_->run(normalize_, {.x = feed_->pictures(place), .y = real_.data()});
  // The pass over the data does not depend on the generator: it runs beside it, and beside the sum of the
  // generator's gradients over all devices, if there is a second queue.
  Discriminator& of_data = beside_ ? *beside_ : *discriminator_;
  if (beside_) branch_.fork();
  of_data.forward(real_.data());
  of_data.loss(1, losses);
  of_data.backward(real_.data(), 0);

  if (after_another) update_generator();
  bench_->run(keep_numbers_, {.x = numbers, .y = numbers_.data()});
  generator_->forward(z);
  generator_->follow_statistics();
  discriminator_->forward(generator_->images());
  discriminator_->loss(0, losses + alignment);
  discriminator_->backward(generator_->images(), 1);
  if (beside_) branch_.join();
  discriminator_->add_gradients();
  update(discriminator_values, learn_discriminator_, convert_discriminator_, numbers);

  discriminator_->forward(generator_->images());
  discriminator_->loss(1, losses + 2 * alignment);
  generator_->backward(z, discriminator_->image_gradient());
}

Replica::Losses Replica::take_losses() {
  if (membership_.sums != nullptr)
    membership_.sums->sum(static_cast<float*>(losses_.data()), losses_.bytes() / sizeof(float),
                          generator_values.share, queue_);
  queue_.wait();
  float sums[loss_count] = {};
  for (std::size_t i = 0; i < loss_count; ++i) losses_.download(&sums[i], sizeof(float), i * alignment);
  losses_.fill(0);
  return {static_cast<double>(sums[0]) + static_cast<double>(sums[1]), static_cast<double>(sums[2])};
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
                                                   Precision{settings_.compute}, false, queue_);
  nets::Random random(settings_.seed, 0);
  std::vector<float> z(static_cast<std::size_t>((count + batch - 1) / batch * batch * a.latent));
  for (float& value : z) value = static_cast<float>(random.uniform(-1, 1));
  std::vector<float> images(static_cast<std::size_t>(count * a.image_elements()));
  DeviceMemory latents(device_, static_cast<std::size_t>(batch * a.latent) * sizeof(float));
  for (Index first = 0; first < count; first += batch) {
    latents.upload(z.data() + first * a.latent, latents.bytes());
    sampler_->forward(latents.data());
    queue_.wait();
    DeviceMemory const& drawn = sampler_->image_memory();
    drawn.download(
        images.data() + first * a.image_elements(),
        static_cast<std::size_t>(std::min(batch, count - first) * a.image_elements()) * sizeof(float));
  }
  return images;
}

}  // namespace cosmati::dcgan
