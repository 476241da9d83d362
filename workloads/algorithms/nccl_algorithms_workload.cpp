// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/algorithms/nccl_algorithms_workload.hpp"

#include <algorithm>
#include <array>

#include "workloads/api/nccl_algorithms_and_protocols.hpp"

namespace isoscale::workloads::algorithms {
namespace {

using collectives::Operation;
using program::Space;

constexpr std::array<std::string_view, 3> registered_names{"none", "local", "symmetric"};

/// Holds the parsed options, which option_table() describes.
struct Values {
  std::vector<Operation> op;
  std::vector<std::string> algorithms, protocols;
  std::vector<Registered> registration;
  Sizes sizes, small_sizes;
  std::vector<program::DType> types;
  collectives::Place in_place{};
  std::uint64_t rotate = 0;
};

Values values_of(const Request& request) {
  return typed_options<Values>(option_table(), request.options);
}

/// Returns options that make the collectives benchmark measure `operations` at these sizes.
collectives::Values measured(const Values& options, const std::vector<Operation>& operations,
                             const Sizes& sizes) {
  collectives::Values result = collectives::values_of({});
  result.op = operations;
  result.sizes = sizes;
  result.types = options.types;
  result.in_place = options.in_place;
  result.rotate = options.rotate;
  return result;
}

/// Adds one choice for each requested protocol with which NCCL has this algorithm. Adds none if
/// NCCL has the algorithm for none of the requested operations.
void add_choices(const Values& options, const std::string& name, std::vector<Choice>& choices) {
  const CollectiveAlgorithm& algorithm = *find_named(collective_algorithms, name);
  std::vector<Operation> operations = options.op;
  std::ranges::sort(operations);
  std::erase_if(operations, [&](Operation operation) {
    return !algorithm.does(*collectives::row_of(operation).kind);
  });
  if (operations.empty()) return;
  for (const std::string& protocol : options.protocols) {
    if (!has_protocol(algorithm, protocol)) continue;
    choices.push_back({.algorithm = name,
                       .protocol = protocol,
                       .measured = measured(options, operations, options.sizes)});
  }
}

/// Moves all buffers in plain device memory to symmetric memory (NCCL windows), at the same
/// offsets.
void make_symmetric(program::ProgramSet& set) {
  for (program::RankProgram& program : set.programs) {
    for (program::Buffer& buffer : program.buffers) {
      if (buffer.space == Space::device) buffer.space = Space::symmetric;
    }
    std::swap(program.arena_bytes[static_cast<std::size_t>(Space::device)],
              program.arena_bytes[static_cast<std::size_t>(Space::symmetric)]);
  }
}

std::string named(const std::string& choice) { return choice.empty() ? "library" : choice; }

Bench build(const Request& request, int batch) {
  const Choice choice = choices_of(request).at(static_cast<std::size_t>(batch));
  Bench bench = collectives::build(request, choice.measured);
  bench.session.collective_algorithm = choice.algorithm;
  bench.session.collective_protocol = choice.protocol;
  if (choice.registered == Registered::local) {
    bench.session.registration = program::Registration::local;
  }
  if (choice.registered == Registered::symmetric) make_symmetric(bench.set);
  for (Case& one : bench.cases) one.wants_estimate = true;
  for (RowSpec& row : bench.rows) {
    row.text["algorithm"] = named(choice.algorithm);
    row.text["protocol"] = named(choice.protocol);
    row.text["registration"] = name(choice.registered);
    // NCCL does not report which algorithm it has chosen itself.
    row.text["chosen"] = choice.algorithm.empty() ? "unknown" : choice.algorithm;
  }
  return bench;
}

std::vector<Expectation> expect(const Request& request, int batch, std::size_t index, int rank) {
  const Choice choice = choices_of(request).at(static_cast<std::size_t>(batch));
  return collectives::expect(request, choice.measured, index, rank);
}

int batches(const Request& request) {
  if (request.mesh.size() == 1) {
    throw base::UsageError(
        "for a rank alone NCCL only copies, with no algorithm: algorithms needs 2 ranks or more");
  }
  return static_cast<int>(choices_of(request).size());
}

}  // namespace

std::string_view name(Registered registered) {
  return registered_names[static_cast<std::size_t>(registered)];
}

std::span<const OptionSpec> option_table() {
  static const std::array table{
      option::list<&Values::op>(
          "op", "all_reduce,reduce_scatter,all_gather,broadcast,reduce",
          // These names are in the order of Operation's first enumerators, since a choice is stored
          // by its index.
          {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce"},
          "collectives to measure"),
      option::parsed<&Values::sizes, parse_sizes>(
          "sizes", "1KiB..256MiB*4",
          "message sizes under each algorithm and protocol, as for collectives"),
      option::list<&Values::algorithms>(
          "algorithms", "ring,tree,nvls,nvlstree,collnetdirect,collnetchain,pat",
          {"ring", "tree", "nvls", "nvlstree", "collnetdirect", "collnetchain", "pat"},
          "algorithms to make NCCL use, each where it exists, besides its own choice"),
      option::list<&Values::protocols>("protocols", "ll,ll128,simple", {"ll", "ll128", "simple"},
                                       "protocols to make NCCL use with each algorithm"),
      option::list<&Values::registration>(
          "registration", "none,local,symmetric",
          {registered_names.begin(), registered_names.end()},
          "memory of the small messages, also of sendrecv: unregistered, registered by each rank, "
          "or in symmetric windows"),
      option::parsed<&Values::small_sizes, parse_sizes>(
          "small_sizes", "8..128KiB*4", "sizes of the small messages of registration"),
      option::list<&Values::types>(
          "types", "", {"f64", "f32", "f16", "bf16", "e4m3", "e5m2", "i64", "i32", "i8", "u8"},
          "element types; default: the type that --dtype stores"),
      option::choice<&Values::in_place>(
          "in_place", "no", {"no", "yes", "both"},
          "whether results overwrite the data sent; sendrecv is out of place only"),
      option::bytes<&Values::rotate>(
          "rotate", "64MiB", {},
          "use new memory in each call until this many bytes, so that caches do not hold the data"),
  };
  return table;
}

std::vector<Choice> choices_of(const Request& request) {
  const Values options = values_of(request);
  std::vector<Choice> choices{{.measured = measured(options, options.op, options.sizes)}};
  for (const std::string& algorithm : options.algorithms) add_choices(options, algorithm, choices);
  std::vector<Operation> operations = options.op;
  operations.push_back(Operation::sendrecv);
  for (const Registered registered : options.registration) {
    choices.push_back(
        {.registered = registered, .measured = measured(options, operations, options.small_sizes)});
  }
  return choices;
}

BenchHooks hooks() {
  return {.batches = batches,
          .build = build,
          .expect = expect,
          .types =
              [](const Request& request) {
                // All choices measure the same element types, so any of them will do.
                return collectives::types_of(request, choices_of(request).front().measured);
              },
          .only_on = "cuda"};
}

}  // namespace isoscale::workloads::algorithms
