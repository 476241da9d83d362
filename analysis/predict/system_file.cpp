// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/predict/system_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "analysis/predict/toml_table_reader.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "program/op.hpp"
#include "simulate/noise.hpp"
#include "workloads/api/toml_files.hpp"

namespace isoscale::analysis::predict {
namespace {

using simulate::Machine;

/// Returns the index of `text` in `names`. Throws base::UsageError if it is none of them.
std::size_t choice(const SheetSection& section, std::string_view key, std::string_view text,
                   std::span<const std::string_view> names) {
  const auto found = std::ranges::find(names, text);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  section.refuse(key, fmt::format("is {}{}; it is one of {}", base::quoted(text),
                                  base::did_you_mean(text, names), fmt::join(names, ", ")));
}

/// Returns the keys in alphabetical order, each once.
std::vector<SheetKey> distinct(std::vector<SheetKey> keys) {
  std::ranges::sort(keys, {}, &SheetKey::key);
  const auto repeated = std::ranges::unique(keys, {}, &SheetKey::key);
  keys.erase(repeated.begin(), repeated.end());
  return keys;
}

/// Reads a file with `parse`: a built-in one by its name, or one whose name ends in .toml. Throws
/// base::UsageError for an unknown name; the message has the most similar known name. `folder` is
/// that of the built-in files, such as "systems"; messages call such a file `kind`, "system file".
template <class Parsed>
Parsed load(std::string_view name_or_path, std::string_view folder, std::string_view kind,
            std::span<const workloads::Preset> presets,
            Parsed (*parse)(std::string_view toml, std::string_view origin)) {
  std::vector<std::string_view> names;
  for (const workloads::Preset& preset : presets) {
    if (preset.name == name_or_path) {
      return parse(preset.toml, fmt::format("{}/{}.toml", folder, preset.name));
    }
    names.push_back(preset.name);
  }
  if (name_or_path.ends_with(".toml")) {
    return parse(workloads::read_small_file(name_or_path, kind), name_or_path);
  }
  throw base::usage_error("unknown {} {}{}; name one of {}, or a file that ends in .toml", kind,
                          base::quoted(name_or_path), base::did_you_mean(name_or_path, names),
                          fmt::join(names, ", "));
}

// The ranges admit every machine, and are meant to detect a number in a wrong unit.
constexpr SheetRange wire{1e6, 1e14, "bytes/s of the wire, one direction"};
constexpr SheetRange share{1e-6, 1, "share of the wire that large messages get"};
constexpr SheetRange latency{0, 1, "seconds of one hop"};
constexpr SheetRange seconds{0, 1, "seconds"};
constexpr SheetRange extent{1, 4096, "elements"};
constexpr SheetRange factor{1e-3, 1e3, "times"};
constexpr SheetRange deviation{0, 10, "relative standard deviation"};

/// The names of element types in a sheet, and the type of operands for each.
constexpr std::array<std::string_view, 6> type_names{"f64", "f32", "tf32", "f16", "bf16", "fp8"};
constexpr std::array matrix_types{program::DType::f64, program::DType::f32,  program::DType::f32,
                                  program::DType::f16, program::DType::bf16, program::DType::e4m3};

// Each function below reads one table; SheetSection::read() then refuses its other keys.

simulate::AttentionKernel read_attention(SheetSection& section) {
  const SheetRange reached{1e-3, 1, "share of the peak by the FLOP of causal attention"};
  return {.name = section.text("kernel", "its name in software profiles"),
          .forward = section.number("forward", reached),
          .backward = section.number("backward", reached)};
}

simulate::Processor read_processor(SheetSection& section) {
  simulate::Processor result;
  result.units = section.count_or_0("units", extent);
  if (result.units > 0) {
    result.tile_rows = section.count("tile_rows", extent);
    result.tile_columns = section.count("tile_columns", extent);
    result.tile_depth = section.number("tile_depth", {0, 4096, "of k, that a tile costs beside"});
  }
  result.launch = section.number("launch", {0, 1, "seconds between ops"});
  result.power = section.number_or_0("power", {1, 1e5, "watts of the power limit"});
  for (SheetSection& entry : section.sections("attention")) {
    result.attention.push_back(entry.read(read_attention));
  }
  for (SheetSection& entry : section.sections("matrix", "rates of GEMMs by type", Need::required)) {
    const std::vector<std::string> types = entry.texts("types", "element types, like [\"bf16\"]");
    const double flops = entry.number("peak", {1e9, 1e17, "FLOP/s, dense"});
    const auto reached =
        entry.shares("reached", "share of the peak by FLOP of one GEMM", Need::optional);
    entry.refuse_unknown();
    for (const std::string& type : types) {
      result.matrix.push_back(
          {.type = matrix_types.at(choice(entry, "types", type, type_names)),
           .mode = type == "tf32" ? program::ComputeMode::tf32 : program::ComputeMode::native,
           .peak = flops,
           .reached = reached});
    }
  }
  return result;
}

simulate::DeviceMemory read_memory(SheetSection& section) {
  return {.capacity = section.number("capacity", {1e6, 1e15, "bytes that a program may use"}),
          .bandwidth = section.number("bandwidth", {1e8, 1e15, "bytes/s, read + written"}),
          .reached = section.shares("reached", "share of the bandwidth by bytes of one op",
                                    Need::optional)};
}

simulate::Link read_link(SheetSection& section) {
  return {.bandwidth = section.number("bandwidth", wire),
          .reached = section.number("reached", share),
          .latency = section.number("latency", latency)};
}

simulate::Link read_network_link(SheetSection& section) {
  simulate::Link link = read_link(section);
  link.chunk = section.number("chunk", {0, 1e12, "bytes that a rank passes on as one"});
  return link;
}

simulate::Tier read_tier(SheetSection& section) {
  return {.nodes = section.count("nodes", {1, 1e6, "nodes that the levels below join"}),
          .share = section.number("share", {1e-6, 1, "links up over links down"}),
          .latency = section.number("latency", latency)};
}

simulate::Protocol read_protocol(SheetSection& section) {
  return {.name = section.text("name", "of the protocol, like LL"),
          .hop_inside = section.number("hop_inside", factor),
          .hop_across = section.number("hop_across", factor),
          .share = section.number("share", share),
          .most = section.number_or_0("most", wire),
          .most_across = section.number_or_0("most_across", wire),
          .most_two = section.number_or_0("most_two", wire)};
}

simulate::SwitchReduction read_reduction(SheetSection& section, std::string_view reached) {
  return {.reached = section.shares("reached", reached, Need::required),
          .latency = section.number("latency", seconds),
          .across_latency = section.number("across_latency", seconds),
          .most_nodes = section.count_or_0("most_nodes", {1, 1e6, "nodes"})};
}

simulate::SwitchReduction read_multicast(SheetSection& section) {
  return read_reduction(section, "share of the inner link by bytes of a member's part");
}

simulate::SwitchReduction read_collnet(SheetSection& section) {
  return read_reduction(section, "share of a port's large messages by bytes of a member's part");
}

simulate::Network read_network(SheetSection& section) {
  simulate::Network result;
  result.node_ranks = section.count("node_ranks", {1, 1e6, "ranks that the inner link joins"});
  result.ports_per_rank =
      section.number("ports_per_rank", {1e-6, 1e3, "network ports of a node over its ranks"});
  result.start = section.number("start", seconds);
  result.message_reached = section.number_or_0("message_reached", share);
  result.inside = section.required_section("inside", "the link between ranks of a node")
                      .read(read_network_link);
  result.across =
      section.required_section("across", "a port of the network").read(read_network_link);
  for (SheetSection& entry : section.sections("tier")) {
    result.tiers.push_back(entry.read(read_tier));
    const auto ascends = [](const simulate::Tier& a, const simulate::Tier& b) {
      return a.nodes < b.nodes;
    };
    if (!std::ranges::is_sorted(result.tiers, ascends)) {
      section.refuse("tier", "must ascend in nodes");
    }
  }
  result.tree_most = section.number_or_0("tree_most", wire);
  if (auto multicast = section.section("multicast")) {
    result.multicast = multicast->read(read_multicast);
  }
  if (auto collnet = section.section("collnet")) result.collnet = collnet->read(read_collnet);
  result.algorithms.clear();
  for (const std::string& name : section.texts("algorithms", "of its library")) {
    result.algorithms.push_back(static_cast<simulate::Algorithm>(
        choice(section, "algorithms", name, simulate::algorithm_names)));
  }
  for (const auto& [algorithm, rate] :
       {std::pair{simulate::Algorithm::multicast, &result.multicast},
        {simulate::Algorithm::collnet, &result.collnet}}) {
    const bool is_named =
        std::ranges::find(result.algorithms, algorithm) != result.algorithms.end();
    if (*rate && !is_named) {
      section.refuse(simulate::name(algorithm), "is given, but algorithms do not name it");
    }
    if (!*rate && is_named) section.refuse(simulate::name(algorithm), "is missing (its rates)");
  }
  std::vector<SheetSection> protocols = section.sections("protocol");
  if (!protocols.empty()) result.protocols.clear();
  for (SheetSection& entry : protocols) result.protocols.push_back(entry.read(read_protocol));
  return result;
}

simulate::Overlap read_overlap(SheetSection& section) {
  const SheetRange longer{1, 100, "times as long beside the other kind"};
  return {.compute = section.number("compute", longer),
          .communication = section.number("communication", longer)};
}

simulate::Noise read_noise(SheetSection& section) {
  simulate::Noise noise{.op = section.number_or_0("op", deviation),
                        .rank = section.number_or_0("rank", deviation),
                        .node = section.number_or_0("node", deviation),
                        .launch = section.number_or_0("launch", deviation)};
  const double slow = section.number_or_0("straggler_share", {0, 0.5, "of the ranks in a step"});
  const double size = section.number_or_0("straggler_size", {0, 10, "more than other ranks take"});
  if ((slow > 0) != (size > 0)) section.refuse("straggler_share", "needs straggler_size");
  // simulate::straggling_draws() returns 4096 draws, which cannot show a smaller share.
  constexpr double least_share = 1.0 / 4096;
  if (slow > 0 && slow < least_share) section.refuse("straggler_share", "must be 0.00025 or more");
  if (slow > 0) noise.draws = simulate::straggling_draws(noise.rank, slow, size);
  return noise;
}

Machine read_machine(SheetSection& top) {
  Machine machine;
  static_cast<void>(
      top.text("base", "a built-in system whose values hold for absent keys", Need::optional));
  machine.name = top.text("name", "of the machine");
  machine.source = top.text("source", "where its numbers are from");
  machine.spread =
      top.number_or_0("spread", {1e-6, 10, "relative standard deviation that it adds"});
  const std::string software =
      top.text("software", "the usual profile of training on it", Need::optional);
  if (!software.empty()) machine.software = load_software(software);
  machine.processor = top.required_section("processor", "what multiplies").read(read_processor);
  machine.memory = top.required_section("memory", "the device's memory").read(read_memory);
  machine.network = top.required_section("network", "what joins ranks").read(read_network);
  if (auto host = top.section("host")) machine.host = host->read(read_link);
  if (auto overlap = top.section("overlap")) machine.overlap = overlap->read(read_overlap);
  if (auto noise = top.section("noise")) machine.noise = noise->read(read_noise);
  return machine;
}

Machine read_system(std::string_view toml, std::string_view origin, std::vector<SheetKey>* asked) {
  return SheetSection{workloads::parse_sheet(toml, origin), origin, "", asked}.read(read_machine);
}

/// The keys of the table [host] that are no kinds of ops.
constexpr std::array<std::string_view, 3> host_keys{"op", "bucket", "step"};

std::vector<simulate::OfKind> of_kinds(SheetSection& table, const SheetRange& range,
                                       std::span<const std::string_view> apart = {}) {
  std::vector<simulate::OfKind> result;
  for (const std::string& key : table.keys()) {
    if (std::ranges::find(apart, key) != apart.end()) continue;
    const std::optional<program::OpKind> kind = program::op_kind_of(key);
    if (!kind) {
      table.refuse(key, fmt::format("names no kind of op{}",
                                    base::did_you_mean(key, program::op_kind_names)));
    }
    result.push_back({.kind = *kind, .value = table.number(key, range)});
  }
  return result;
}

simulate::Software read_software(SheetSection& top) {
  simulate::Software result{
      .name = top.text("name", "of the software"),
      .source = top.text("source", "where its numbers are from"),
      .attention = top.text("attention", "a fused kernel of the processor's", Need::optional),
      .accumulate = top.number_or_0("accumulate", {0, 100, "times the bytes of a sum"}),
      .logit_bytes = top.number_or_0("logit_bytes", {0, 1000, "bytes of the loss by logit"}),
      .spread = top.number_or_0("spread", {1e-6, 10, "relative standard deviation of its errors"}),
      .most_ranks = top.count_or_0("most_ranks", {1, 1e9, "ranks of the largest row it rests on"})};
  if (auto traffic = top.section("traffic")) {
    result.traffic = of_kinds(*traffic, {1e-3, 1e3, "times the bytes of its operands"});
  }
  if (auto host = top.section("host")) {
    result.host_op = host->number("op", seconds);
    result.host_bucket = host->number_or_0("bucket", seconds);
    result.host_step = host->number_or_0("step", seconds);
    result.host = of_kinds(*host, seconds, host_keys);
  }
  if (auto options = top.section("options")) {
    for (const std::string& key : options->keys()) {
      result.options.emplace_back(key, options->text(key, "value of a workload's option"));
    }
  }
  return result;
}

simulate::Software read_profile(const toml::table& table, std::string_view origin,
                                std::vector<SheetKey>* asked) {
  return SheetSection{table, origin, "", asked}.read(read_software);
}

}  // namespace

Machine parse_system(std::string_view toml, std::string_view origin) {
  return read_system(toml, origin, nullptr);
}

std::vector<SheetKey> system_keys() {
  std::vector<SheetKey> asked;
  for (const workloads::Preset& preset : workloads::system_presets()) {
    static_cast<void>(read_system(preset.toml, preset.name, &asked));
  }
  // No built-in sheet has a table [network.collnet], so its keys are added here.
  const toml::table collnet{{"reached", 1}, {"latency", 0}, {"across_latency", 0}};
  static_cast<void>(SheetSection{collnet, "", "network.collnet", &asked}.read(read_collnet));
  return distinct(std::move(asked));
}

bool is_system(std::string_view name) {
  return std::ranges::find(workloads::system_presets(), name, &workloads::Preset::name) !=
         workloads::system_presets().end();
}

Machine load_system(std::string_view name_or_path) {
  return load(name_or_path, "systems", "system file", workloads::system_presets(), parse_system);
}

simulate::Software parse_software(std::string_view toml, std::string_view origin) {
  return read_profile(workloads::parse_toml(toml, origin), origin, nullptr);
}

std::vector<SheetKey> software_keys() {
  // This text has every table. The kind of op and the option in it stand for all others.
  constexpr std::string_view complete =
      "name = 'x'\nsource = 'x'\nspread = 1\n[traffic]\nnorm = 1\n[host]\nop = 0\nnorm = 0\n"
      "[options]\nzero = '1'\n";
  std::vector<SheetKey> asked;
  static_cast<void>(read_profile(workloads::parse_toml(complete, ""), "", &asked));
  for (SheetKey& key : asked) {
    if (key.key == "traffic.norm") key = {.key = "traffic.KIND", .meaning = key.meaning};
    if (key.key == "options.zero") key = {.key = "options.KEY", .meaning = key.meaning};
    if (key.key == "host.norm") {
      key = {.key = "host.KIND",
             .meaning = "seconds in which the host launches an op of this kind"};
    }
  }
  return distinct(std::move(asked));
}

simulate::Software load_software(std::string_view name_or_path) {
  return load(name_or_path, "software", "software profile", workloads::software_presets(),
              parse_software);
}

}  // namespace isoscale::analysis::predict
