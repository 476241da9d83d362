// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/algorithms/algorithms.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "workloads/api/collective_algorithms.hpp"
#include "workloads/api/options.hpp"
#include "workloads/api/workload.hpp"
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

class Lister {
 public:
  explicit Lister(const Request& request)
      : options_(option_table(), request.options), ops_(parse_list("op", options_.text("op"))) {}

  std::vector<Choice> list() {
    choices_.push_back({.measured = measured(ops_, "sizes")});
    for (const std::string& algorithm : names("algorithms")) list_algorithm(algorithm);
    for (const std::string& registered : names("registration")) {
      std::vector<std::string> ops = ops_;
      ops.emplace_back("sendrecv");
      const auto place = std::ranges::find(registered_names, std::string_view{registered});
      choices_.push_back({.registered = static_cast<Registered>(place - registered_names.begin()),
                          .measured = measured(ops, "small_sizes")});
    }
    return std::move(choices_);
  }

 private:
  [[nodiscard]] std::vector<std::string> names(std::string_view key) const {
    return parse_list(key, options_.text(key));
  }

  void list_algorithm(const std::string& name) {
    const CollectiveAlgorithm* const algorithm = find_collective_algorithm(name);
    std::vector<std::string> ops;
    for (const auto& [op, kind] : operations) {
      const bool is_asked = std::ranges::find(ops_, op) != ops_.end();
      if (is_asked && algorithm->does(kind)) ops.emplace_back(op);
    }
    if (ops.empty()) return;
    for (const std::string& protocol : names("protocols")) {
      if (!has_protocol(*algorithm, protocol)) continue;
      choices_.push_back(
          {.algorithm = name, .protocol = protocol, .measured = measured(ops, "sizes")});
    }
  }

  [[nodiscard]] Options measured(const std::vector<std::string>& ops,
                                 std::string_view sizes) const {
    Options result{{"op", fmt::format("{}", fmt::join(ops, ","))},
                   {"sizes", options_.text(sizes)},
                   {"in_place", options_.text("in_place")},
                   {"rotate", options_.text("rotate")}};
    if (options_.has("types")) result["types"] = options_.text("types");
    return result;
  }

  OptionReader options_;
  std::vector<std::string> ops_;
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
      OptionSpec{.key = "op",
                 .type = OptionType::list,
                 .default_value = "all_reduce,reduce_scatter,all_gather,broadcast,reduce",
                 .choices = {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce"},
                 .help = "collectives to measure"},
      OptionSpec{.key = "sizes",
                 .type = OptionType::text,
                 .default_value = "1KiB..256MiB*4",
                 .help = "message sizes under each algorithm and protocol, as for collectives"},
      OptionSpec{
          .key = "algorithms",
          .type = OptionType::list,
          .default_value = "ring,tree,nvls,nvlstree,collnetdirect,collnetchain,pat",
          .choices = {"ring", "tree", "nvls", "nvlstree", "collnetdirect", "collnetchain", "pat"},
          .help = "algorithms to make NCCL use, each where it exists, besides its own choice"},
      OptionSpec{.key = "protocols",
                 .type = OptionType::list,
                 .default_value = "ll,ll128,simple",
                 .choices = {"ll", "ll128", "simple"},
                 .help = "protocols to make NCCL use with each algorithm"},
      OptionSpec{.key = "registration",
                 .type = OptionType::list,
                 .default_value = "none,local,symmetric",
                 .choices = {"none", "local", "symmetric"},
                 .help = "memory of the small messages, also of sendrecv: unregistered, registered "
                         "by each rank, or in symmetric windows"},
      OptionSpec{.key = "small_sizes",
                 .type = OptionType::text,
                 .default_value = "8..128KiB*4",
                 .help = "sizes of the small messages of registration"},
      OptionSpec{.key = "types",
                 .type = OptionType::list,
                 .choices = {"f64", "f32", "f16", "bf16", "e4m3", "e5m2", "i64", "i32", "i8", "u8"},
                 .help = "element types; default: the type that --dtype stores"},
      OptionSpec{.key = "in_place",
                 .default_value = "no",
                 .choices = {"no", "yes", "both"},
                 .help = "whether results overwrite the data sent; sendrecv is out of place only"},
      OptionSpec{.key = "rotate",
                 .type = OptionType::bytes,
                 .default_value = "64MiB",
                 .help = "use new memory in each call until this many bytes, so that caches do not "
                         "hold the data"},
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
                return element_types(request,
                                     OptionReader{option_table(), request.options}.text("types"));
              },
          .only_on = "cuda",
          .uses_model = [](const Request&) { return false; }};
}

}  // namespace isoscale::workloads::algorithms
