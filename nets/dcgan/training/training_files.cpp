// Checkpoints of a training run, and files with only the generator.
//   <name>                               the generator, as weights.h names it
//   discriminator.<name>                 the discriminator
//   optimizer.0.<name>, optimizer.1.<name>   first and second moments of Adam, of both
#include <algorithm>
#include <cstring>
#include <string>

#include "nets/dcgan/training/training.h"
#include "nets/metadata.h"
#include "src/io/safetensors.h"

namespace cosmati::dcgan {
namespace {

constexpr char const* generator_prefix = "";
constexpr char const* discriminator_prefix = "discriminator.";

// Adds the variables of a flat array as tensors of a file.
void add_tensors(std::vector<io::NamedTensor>& tensors, Variables const& variables,
                 std::vector<float> const& values, std::string const& prefix) {
  for (std::size_t i = 0; i < variables.list().size(); ++i)
    tensors.push_back({prefix + variables.list()[i].name, variables.description(static_cast<int>(i)),
                       values.data() + variables.list()[i].offset});
}

void read_tensors(io::SafetensorsFile const& file, std::string const& path, Variables const& variables,
                  DeviceMemory& array, std::string const& prefix) {
  std::vector<float> values = download(array);
  for (std::size_t i = 0; i < variables.list().size(); ++i) {
    Variable const& variable = variables.list()[i];
    TensorDescription const expected = variables.description(static_cast<int>(i));
    Tensor const tensor = file.tensor(prefix + variable.name);
    if (!(tensor.description() == expected))
      throw Error(ErrorCode::bad_file, path + ": tensor " + prefix + variable.name + " is " +
                                           to_string(tensor.description()) + "; expected " +
                                           to_string(expected));
    std::memcpy(values.data() + variable.offset, tensor.data(), tensor.bytes());
  }
  upload(array, values);
}

std::string joined(std::vector<Index> const& numbers) {
  std::string text;
  for (Index number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
  return text;
}

Architecture architecture_of(nets::Metadata const& metadata, std::string const& path) {
  constexpr long long largest_layers = 8, largest_channels = 1 << 16;
  Architecture a;
  a.latent = nets::integer(metadata, "latent", path, 1, 1 << 20);
  a.channels.resize(static_cast<std::size_t>(nets::integer(metadata, "layers", path, 2, largest_layers)) + 1);
  for (std::size_t i = 0; i < a.channels.size(); ++i)
    a.channels[i] = nets::integer(metadata, "channels." + std::to_string(i), path, 1, largest_channels);
  return a;
}

// Zeros for the tensors that weights.h lists but training does not have: biases before a batch normalization.
std::vector<std::vector<float>> zero_biases(Architecture const& a) {
  std::vector<std::vector<float>> biases;
  for (int i = 1; i < a.layers(); ++i) biases.emplace_back(static_cast<std::size_t>(a.channel(i)));
  return biases;
}

// All tensors of the generator, with the names of weights.h.
struct GeneratorTensors {
  std::vector<float> values, statistics;
  std::vector<std::vector<float>> biases;
  std::vector<io::NamedTensor> tensors;

  GeneratorTensors(Network const& network, Architecture const& a)
      : values(download(network.values)), statistics(download(network.running)), biases(zero_biases(a)) {
    add_tensors(tensors, network.variables, values, generator_prefix);
    add_tensors(tensors, network.statistics, statistics, generator_prefix);
    for (int i = 1; i < a.layers(); ++i)
      tensors.push_back({"tconv" + std::to_string(i) + "_b", describe(DataType::f32, Shape(a.channel(i))),
                         biases[static_cast<std::size_t>(i - 1)].data()});
  }
};

}  // namespace

std::map<std::string, std::string> Training::metadata() const {
  Settings const& s = settings_;
  std::map<std::string, std::string> result = {{"latent", std::to_string(s.architecture.latent)},
                                               {"layers", std::to_string(s.architecture.layers())},
                                               {"channels", joined(s.architecture.channels)},
                                               {"batch", std::to_string(s.batch)},
                                               {"steps", std::to_string(s.steps)},
                                               {"learning_rate", nets::exact(s.rate)},
                                               {"beta1", nets::exact(s.beta1)},
                                               {"beta2", nets::exact(s.beta2)},
                                               {"seed", std::to_string(s.seed)},
                                               {"type", name_of(s.compute)},
                                               {"statistics", name_of(s.statistics)},
                                               {"step", std::to_string(step_)},
                                               {"pictures", std::to_string(pictures_.count)},
                                               {"data", pictures_.source}};
  for (std::size_t i = 0; i < s.architecture.channels.size(); ++i)
    result["channels." + std::to_string(i)] = std::to_string(s.architecture.channels[i]);
  return result;
}

void Training::save(std::string const& path) {
  Network const &generator_values = replicas_[0]->generator_values,
                &discriminator_values = replicas_[0]->discriminator_values;
  GeneratorTensors generator(generator_values, settings_.architecture);
  std::vector<io::NamedTensor> tensors = generator.tensors;
  std::vector<float> const discriminator = download(discriminator_values.values);
  add_tensors(tensors, discriminator_values.variables, discriminator, discriminator_prefix);
  std::vector<std::vector<float>> moments;
  for (Network const* network : {&generator_values, &discriminator_values}) {
    moments.push_back(download(network->first));
    moments.push_back(download(network->second));
  }
  for (std::size_t i = 0; i < moments.size(); ++i)
    add_tensors(
        tensors, i < 2 ? generator_values.variables : discriminator_values.variables, moments[i],
        "optimizer." + std::to_string(i % 2) + "." + (i < 2 ? generator_prefix : discriminator_prefix));
  auto entries = metadata();
  entries["model"] = "dcgan-training";
  io::write_safetensors(path, std::move(tensors), entries);
}

void Training::save_generator(std::string const& path, std::map<std::string, std::string> entries) {
  GeneratorTensors const generator(replicas_[0]->generator_values, settings_.architecture);
  std::vector<Tensor> halves;
  std::vector<io::NamedTensor> tensors;
  for (io::NamedTensor const& tensor : generator.tensors) {
    Tensor half(DataType::f16, tensor.description.shape());
    auto const* const values = static_cast<float const*>(tensor.data);
    for (Index i = 0; i < half.size(); ++i) half.set(i, static_cast<double>(values[i]));
    halves.push_back(std::move(half));
  }
  for (std::size_t i = 0; i < halves.size(); ++i)
    tensors.push_back(io::named(generator.tensors[i].name, halves[i]));
  entries.merge(metadata());
  entries["model"] = "dcgan-generator";
  io::write_safetensors(path, std::move(tensors), entries);
}

Training::Training(std::string const& checkpoint, long long steps, Pictures const& pictures,
                   nets::Team const& team)
    : pictures_(pictures), team_(team) {
  auto const file = io::SafetensorsFile::open(checkpoint);
  nets::Metadata const& entries = file.metadata();
  auto const model = entries.find("model");
  if (model == entries.end() || model->second != "dcgan-training")
    throw Error(ErrorCode::bad_file, checkpoint + ": its metadata has model '" +
                                         (model == entries.end() ? "" : model->second) +
                                         "'; expected 'dcgan-training', a checkpoint of cosmati train dcgan");
  constexpr long long largest = 1LL << 40;
  auto const integer = [&](char const* key, long long low, long long high) {
    return nets::integer(entries, key, checkpoint, low, high);
  };
  Settings& s = settings_;
  s.architecture = architecture_of(entries, checkpoint);
  s.batch = integer("batch", 2, 1 << 16);
  s.steps = steps == 0 ? integer("steps", 1, largest) : steps;
  s.rate = nets::real(entries, "learning_rate", checkpoint);
  s.beta1 = nets::real(entries, "beta1", checkpoint);
  s.beta2 = nets::real(entries, "beta2", checkpoint);
  s.seed = static_cast<unsigned long long>(integer("seed", 0, 1LL << 62));
  auto const type = entries.find("type");
  s.compute = parse_data_type(type == entries.end() ? "" : type->second);
  if (auto const scope = entries.find("statistics"); scope != entries.end())
    s.statistics = parse_statistics(scope->second, checkpoint);
  step_ = integer("step", 0, largest);
  if (integer("pictures", 1, largest) != pictures.count)
    throw Error(ErrorCode::bad_file, checkpoint + ": was trained on " + entries.at("pictures") +
                                         " pictures; " + pictures.source + " holds " +
                                         std::to_string(pictures.count));
  if (step_ > s.steps)
    throw Error(ErrorCode::bad_request, checkpoint + ": has already done " + std::to_string(step_) +
                                            " steps; it cannot continue to " + std::to_string(s.steps));
  prepare();
  each([&](Replica& replica) {
    Network &generator = replica.generator_values, &discriminator = replica.discriminator_values;
    read_tensors(file, checkpoint, generator.variables, generator.values, generator_prefix);
    read_tensors(file, checkpoint, generator.statistics, generator.running, generator_prefix);
    read_tensors(file, checkpoint, discriminator.variables, discriminator.values, discriminator_prefix);
    for (int i : {0, 1}) {
      std::string const prefix = "optimizer." + std::to_string(i) + ".";
      for (Network* network : {&generator, &discriminator})
        read_tensors(file, checkpoint, network->variables, i == 0 ? network->first : network->second,
                     prefix + (network == &generator ? generator_prefix : discriminator_prefix));
    }
    replica.refresh_factors();
  });
}

}  // namespace cosmati::dcgan
