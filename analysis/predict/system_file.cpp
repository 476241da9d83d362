// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/predict/system_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "analysis/predict/sheet_section.hpp"
#include "simulate/noise.hpp"

namespace isoscale::analysis::predict {
namespace {

using simulate::Machine;

// The ranges admit every machine, and are meant to detect a number in a wrong unit.
constexpr SheetRange peak{1e9, 1e17, "FLOP/s, dense"};
constexpr SheetRange memory_bandwidth{1e8, 1e15, "bytes/s, read + written"};
constexpr SheetRange capacity{1e6, 1e15, "bytes that a program may use"};
constexpr SheetRange wire{1e6, 1e14, "bytes/s of the wire, one direction"};
constexpr SheetRange share{1e-6, 1, "share of the wire that large messages get"};
constexpr SheetRange latency{0, 1, "seconds of one hop"};
constexpr SheetRange seconds{0, 1, "seconds"};
constexpr SheetRange ranks{1, 1e6, "ranks that the inner link joins"};
constexpr SheetRange nodes{1, 1e6, "nodes"};
constexpr SheetRange ports{1e-6, 1e3, "network ports of a node over its ranks"};
constexpr SheetRange extent{1, 4096, "elements"};
constexpr SheetRange factor{1e-3, 1e3, "times"};
constexpr SheetRange deviation{0, 10, "relative standard deviation"};

/// The names of element types in a sheet, and the type of operands for each.
constexpr std::array<std::string_view, 6> type_names{"f64", "f32", "tf32", "f16", "bf16", "fp8"};
constexpr std::array matrix_types{program::DType::f64, program::DType::f32,  program::DType::f32,
                                  program::DType::f16, program::DType::bf16, program::DType::e4m3};

// Each function below reads one table; SheetSection::read() then refuses all other keys of the
// table.

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
  for (SheetSection& entry : section.required_sections("matrix", "rates of GEMMs by type")) {
    const std::vector<std::string> types = entry.texts("types", "element types, like [\"bf16\"]");
    const double flops = entry.number("peak", peak);
    const auto reached = entry.shares_or_none("reached", "share of the peak by FLOP of one GEMM");
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
  simulate::DeviceMemory result;
  result.capacity = section.number("capacity", capacity);
  result.bandwidth = section.number("bandwidth", memory_bandwidth);
  result.reached = section.shares_or_none("reached", "share of the bandwidth by bytes of one op");
  return result;
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
  return {.reached = section.shares("reached", reached),
          .latency = section.number("latency", seconds),
          .across_latency = section.number("across_latency", seconds),
          .most_nodes = section.count_or_0("most_nodes", nodes)};
}

simulate::SwitchReduction read_multicast(SheetSection& section) {
  return read_reduction(section, "share of the inner link by bytes of a member's part");
}

simulate::SwitchReduction read_collnet(SheetSection& section) {
  return read_reduction(section, "share of a port's large messages by bytes of a member's part");
}

simulate::Network read_network(SheetSection& section) {
  simulate::Network result;
  result.node_ranks = section.count("node_ranks", ranks);
  result.ports_per_rank = section.number("ports_per_rank", ports);
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
  for (SheetSection& entry : protocols) {
    result.protocols.push_back(entry.read(read_protocol));
  }
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
  const double share = section.number_or_0("straggler_share", {0, 0.5, "of the ranks in a step"});
  const double size = section.number_or_0("straggler_size", {0, 10, "more than other ranks take"});
  if ((share > 0) != (size > 0)) section.refuse("straggler_share", "needs straggler_size");
  // simulate::straggling_draws() returns 4096 draws, which cannot show a smaller share.
  constexpr double least_share = 1.0 / 4096;
  if (share > 0 && share < least_share)
    section.refuse("straggler_share", "must be 0.00025 or more");
  if (share > 0) noise.draws = simulate::straggling_draws(noise.rank, share, size);
  return noise;
}

Machine read_machine(SheetSection& top) {
  Machine machine;
  static_cast<void>(
      top.text_or_empty("base", "a built-in system whose values hold for absent keys"));
  machine.name = top.text("name", "of the machine");
  machine.source = top.text("source", "where its numbers are from");
  machine.spread =
      top.number_or_0("spread", {1e-6, 10, "relative standard deviation that it adds"});
  const std::string software = top.text_or_empty("software", "the usual profile of training on it");
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
  return load(name_or_path, {"systems", "system file"}, workloads::system_presets(), parse_system);
}

}  // namespace isoscale::analysis::predict
