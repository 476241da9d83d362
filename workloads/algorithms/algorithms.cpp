// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/algorithms/algorithms.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "workloads/api/collective_algorithms.hpp"
#include "workloads/api/options.hpp"
#include "workloads/collectives/collectives.hpp"

namespace isoscale::workloads::algorithms {
namespace {

using program::CollectiveKind;
using program::Space;

constexpr std::array registered_names{std::string_view{"none"}, std::string_view{"local"},
                                      std::string_view{"symmetric"}};

/// The operations for which a library has algorithms. Other operations consist of messages.
constexpr std::array<std::pair<std::string_view, CollectiveKind>, 5> operations{
    {{"all_reduce", CollectiveKind::all_reduce},
     {"reduce_scatter", CollectiveKind::reduce_scatter},
     {"all_gather", CollectiveKind::all_gather},
     {"broadcast", CollectiveKind::broadcast},
     {"reduce", CollectiveKind::reduce}}};

/// Holds the parsed options, which option_table() describes.
struct Values {
  std::vector<std::string> op, algorithms, protocols;
  std::vector<Registered> registration;
  std::string sizes, small_sizes, types, in_place, rotate;
};

Values values_of(const Request& request) {
  return typed_options<Values>(option_table(), request.options);
}

class Lister {
 public:
  explicit Lister(const Request& request) : options_(values_of(request)) {}

  std::vector<Choice> list() {
    choices_.push_back({.measured = measured(options_.op, options_.sizes)});
    for (const std::string& algorithm : options_.algorithms) list_algorithm(algorithm);
    for (const Registered registered : options_.registration) {
      std::vector<std::string> ops = options_.op;
      ops.emplace_back("sendrecv");
      choices_.push_back(
          {.registered = registered, .measured = measured(ops, options_.small_sizes)});
    }
    return std::move(choices_);
  }

 private:
  void list_algorithm(const std::string& name) {
    const CollectiveAlgorithm* const algorithm = find_collective_algorithm(name);
    std::vector<std::string> ops;
    for (const auto& [op, kind] : operations) {
      const bool is_asked = std::ranges::find(options_.op, op) != options_.op.end();
      if (is_asked && algorithm->does(kind)) ops.emplace_back(op);
    }
    if (ops.empty()) return;
    for (const std::string& protocol : options_.protocols) {
      if (!has_protocol(*algorithm, protocol)) continue;
      choices_.push_back(
          {.algorithm = name, .protocol = protocol, .measured = measured(ops, options_.sizes)});
    }
  }

  [[nodiscard]] Options measured(const std::vector<std::string>& ops,
                                 const std::string& sizes) const {
    Options result{{"op", fmt::format("{}", fmt::join(ops, ","))},
                   {"sizes", sizes},
                   {"in_place", options_.in_place},
                   {"rotate", options_.rotate}};
    if (!options_.types.empty()) result["types"] = options_.types;
    return result;
  }

  Values options_;
  std::vector<Choice> choices_;
};

Request measured_by(const Request& request, const Choice& choice) {
  Request result = request;
  result.options = choice.measured;
  return result;
}

/// Moves all buffers in plain device memory to symmetric memory (windows), at the same offsets.
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

}  // namespace

std::string_view name(Registered registered) {
  return registered_names[static_cast<std::size_t>(registered)];
}

std::span<const OptionSpec> option_table() {
  static const std::array table{
      option::list<&Values::op>(
          "op", "all_reduce,reduce_scatter,all_gather,broadcast,reduce",
          {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce"},
          "collectives to measure"),
      option::text<&Values::sizes>(
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
      option::text<&Values::small_sizes>("small_sizes", "8..128KiB*4",
                                         "sizes of the small messages of registration"),
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

std::vector<Choice> choices_of(const Request& request) { return Lister{request}.list(); }

Bench build(const Request& request, int batch) {
  const Choice choice = choices_of(request).at(static_cast<std::size_t>(batch));
  Bench bench = collectives::build(measured_by(request, choice), 0);
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
    // The library does not report which algorithm it has chosen itself.
    row.text["chosen"] = choice.algorithm.empty() ? "unknown" : choice.algorithm;
  }
  return bench;
}

std::vector<Expectation> expect(const Request& request, int batch, std::size_t index, int rank) {
  const Choice choice = choices_of(request).at(static_cast<std::size_t>(batch));
  return collectives::expect(measured_by(request, choice), 0, index, rank);
}

BenchHooks hooks() {
  return {.batches =
              [](const Request& request) { return static_cast<int>(choices_of(request).size()); },
          .build = build,
          .expect = expect,
          .types =
              [](const Request& request) {
                // All sessions measure the same types.
                return collectives::types_of(measured_by(request, choices_of(request).front()));
              },
          .only_on = "cuda"};
}

}  // namespace isoscale::workloads::algorithms
