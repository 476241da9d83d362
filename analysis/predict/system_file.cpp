// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/predict/system_file.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "workloads/api/toml_files.hpp"

namespace isoscale::analysis::predict {
namespace {

using simulate::Machine;

/// The allowed range of a number in a system file, including both limits.
struct SheetRange {
  double least = 0, most = 0;
  std::string_view meaning;  ///< "bytes/s of the wire, one direction"
};

/// Reads one table of a system file. Each error is a base::UsageError that names file, line, key
/// and reason.
class SheetSection {
 public:
  /// Opens a table. If `asked` (not owned) is given, each key that is read from the table or its
  /// sections is added to it.
  SheetSection(const toml::table& table, std::string_view origin, std::string name,
               std::vector<SheetKey>* asked)
      : table_(&table), origin_(origin), name_(std::move(name)), asked_(asked) {}

  [[nodiscard]] double number(std::string_view key, const SheetRange& range) {
    return checked(required(key, range.meaning), key, range);
  }

  /// Reads a number; returns 0 when the key is absent.
  [[nodiscard]] double number_or_0(std::string_view key, const SheetRange& range) {
    const toml::node* const node = find(key, range.meaning, false);
    return node == nullptr ? 0 : checked(*node, key, range);
  }

  [[nodiscard]] int count(std::string_view key, const SheetRange& range) {
    return whole(number(key, range), key, range);
  }

  /// Reads a count; returns 0 when the key is absent.
  [[nodiscard]] int count_or_0(std::string_view key, const SheetRange& range) {
    return whole(number_or_0(key, range), key, range);
  }

  [[nodiscard]] std::string text(std::string_view key, std::string_view meaning) {
    constexpr std::size_t longest = 2000;
    const auto* const value = required(key, meaning).as_string();
    if (value == nullptr) refuse(key, fmt::format("must be a string ({})", meaning));
    if (value->get().empty() || value->get().size() > longest || !base::is_plain(value->get())) {
      refuse(key, fmt::format("must be plain text of 1 to {} characters ({})", longest, meaning));
    }
    return value->get();
  }

  /// Reads an array of strings; empty when the key is absent.
  [[nodiscard]] std::vector<std::string> texts(std::string_view key, std::string_view meaning) {
    const toml::node* const node = find(key, meaning, false);
    if (node == nullptr) return {};
    const auto* const array = node->as_array();
    if (array == nullptr || array->empty()) {
      refuse(key, fmt::format("must be a list of strings ({})", meaning));
    }
    std::vector<std::string> result;
    for (const toml::node& item : *array) {
      const auto* const value = item.as_string();
      if (value == nullptr) refuse(key, fmt::format("must be a list of strings ({})", meaning));
      result.push_back(value->get());
    }
    return result;
  }

  /// Reads either one share for all sizes, or [[size, share], ...] in ascending order of size.
  /// Returns an empty list if the key is absent.
  [[nodiscard]] std::vector<simulate::ReachedShare> shares(std::string_view key,
                                                           std::string_view meaning) {
    const toml::node* const node = find(key, meaning, false);
    if (node == nullptr) return {};
    const SheetRange share{.least = 1e-6, .most = 1, .meaning = meaning};
    const SheetRange size{.least = 1, .most = 1e18, .meaning = "size"};
    const auto* const list = node->as_array();
    if (list == nullptr) return {{.size = 1, .share = checked(*node, key, share)}};
    std::vector<simulate::ReachedShare> result;
    for (const toml::node& item : *list) {
      const auto* const pair = item.as_array();
      if (pair == nullptr || pair->size() != 2) {
        refuse(key, fmt::format("must be a share, or a list of [size, share] ({})", meaning));
      }
      result.push_back(
          {.size = checked((*pair)[0], key, size), .share = checked((*pair)[1], key, share)});
      if (result.size() > 1 && result[result.size() - 2].size >= result.back().size) {
        refuse(key, fmt::format("has sizes that do not ascend, {:g} after {:g}", result.back().size,
                                result[result.size() - 2].size));
      }
    }
    if (result.empty()) refuse(key, "is empty");
    return result;
  }

  [[nodiscard]] std::optional<SheetSection> section(std::string_view key) {
    const toml::node* const node = find(key, "a table", false);
    if (node == nullptr) return std::nullopt;
    const auto* const table = node->as_table();
    if (table == nullptr) refuse(key, "must be a table");
    return SheetSection{*table, origin_, full(key), asked_};
  }

  [[nodiscard]] SheetSection required_section(std::string_view key, std::string_view meaning) {
    auto result = section(key);
    if (!result) refuse_missing(key, meaning);
    return *std::move(result);
  }

  /// Reads an array of tables; empty when the key is absent.
  [[nodiscard]] std::vector<SheetSection> sections(std::string_view key) {
    const toml::node* const node = find(key, "a list of tables", false);
    if (node == nullptr) return {};
    const auto* const array = node->as_array();
    if (array == nullptr || !array->is_array_of_tables()) {
      refuse(key, "must be a list of tables");
    }
    std::vector<SheetSection> result;
    for (const toml::node& item : *array) {
      result.emplace_back(*item.as_table(), origin_, full(key), asked_);
    }
    return result;
  }

  [[nodiscard]] std::vector<std::string> keys() const {
    std::vector<std::string> result;
    for (const auto& [key, node] : *table_) result.emplace_back(key.str());
    return result;
  }

  /// Reads the whole table by `part_of`, and refuses keys that this function does not read.
  template <class Part>
  [[nodiscard]] Part read(Part (*part_of)(SheetSection& section)) {
    Part part = part_of(*this);
    refuse_unknown();
    return part;
  }

  /// Throws for keys that were not read before.
  void refuse_unknown() const {
    const std::vector<std::string_view> known{known_.begin(), known_.end()};
    for (const auto& [key, node] : *table_) {
      if (std::ranges::find(known, key.str()) != known.end()) continue;
      throw base::usage_error(
          "{}: unknown key {}{}; {} has the keys {}", workloads::place_of(origin_, key.source()),
          base::quoted(full(key.str())), base::did_you_mean(key.str(), known),
          name_.empty() ? "a system file" : fmt::format("[{}]", name_), fmt::join(known, ", "));
    }
  }

  [[noreturn]] void refuse(std::string_view key, std::string_view why) const {
    throw base::usage_error("{}: {} {}", where(key), full(key), why);
  }

 private:
  [[nodiscard]] const toml::node* find(std::string_view key, std::string_view meaning,
                                       bool needed) {
    known_.emplace_back(key);
    if (asked_ != nullptr) {
      asked_->push_back({.key = full(key), .meaning = std::string{meaning}, .needed = needed});
    }
    return table_->get(key);
  }

  [[nodiscard]] const toml::node& required(std::string_view key, std::string_view meaning) {
    const toml::node* const node = find(key, meaning, true);
    if (node == nullptr) refuse_missing(key, meaning);
    return *node;
  }

  [[noreturn]] void refuse_missing(std::string_view key, std::string_view meaning) const {
    throw base::usage_error("{}: the key '{}' is missing ({})", where(key), full(key), meaning);
  }

  [[nodiscard]] std::string where(std::string_view key) const {
    const toml::node* const node = table_->get(key);
    return workloads::place_of(origin_, node != nullptr ? node->source() : table_->source());
  }

  [[nodiscard]] std::string full(std::string_view key) const {
    return name_.empty() ? std::string{key} : fmt::format("{}.{}", name_, key);
  }

  [[nodiscard]] int whole(double value, std::string_view key, const SheetRange& range) const {
    if (value != std::floor(value)) {
      refuse(key, fmt::format("is {:g}, but must be a whole number ({})", value, range.meaning));
    }
    return static_cast<int>(value);
  }

  [[nodiscard]] double checked(const toml::node& node, std::string_view key,
                               const SheetRange& range) const {
    if (!node.is_number()) refuse(key, fmt::format("must be a number ({})", range.meaning));
    const double value = node.value<double>().value_or(NAN);
    if (!std::isfinite(value) || value < range.least || value > range.most) {
      refuse(key, fmt::format("is {:g}, but must lie between {:g} and {:g} ({})", value,
                              range.least, range.most, range.meaning));
    }
    return value;
  }

  const toml::table* table_;
  std::string origin_, name_;
  std::vector<std::string> known_;
  std::vector<SheetKey>* asked_;
};

// The ranges are wide enough for any machine, but exclude a number in a wrong unit.
constexpr SheetRange peak{1e9, 1e17, "FLOP/s, dense"};
constexpr SheetRange memory_bandwidth{1e8, 1e15, "bytes/s, read + written"};
constexpr SheetRange capacity{1e6, 1e15, "bytes that a program may use"};
constexpr SheetRange wire{1e6, 1e14, "bytes/s of the wire, one direction"};
constexpr SheetRange share{1e-6, 1, "share of the wire that large messages get"};
constexpr SheetRange latency{0, 1, "seconds of one hop"};
constexpr SheetRange seconds{0, 1, "seconds"};
constexpr SheetRange ranks{1, 1e6, "ranks that the inner link joins"};
constexpr SheetRange ports{1e-6, 1e3, "network ports of a node over its ranks"};
constexpr SheetRange extent{1, 4096, "elements"};
constexpr SheetRange factor{1e-3, 1e3, "times"};
constexpr SheetRange deviation{0, 10, "relative standard deviation"};

/// Returns the value of `names` whose name is `text`. Throws base::UsageError if there is none.
template <class Value, std::size_t count>
Value choice(const SheetSection& section, std::string_view key, std::string_view text,
             const std::array<std::pair<std::string_view, Value>, count>& names) {
  std::vector<std::string_view> known;
  for (const auto& [name, value] : names) {
    if (name == text) return value;
    known.push_back(name);
  }
  section.refuse(key, fmt::format("is {}{}; it is one of {}", base::quoted(text),
                                  base::did_you_mean(text, known), fmt::join(known, ", ")));
}

program::DType matrix_type(const SheetSection& section, std::string_view text) {
  using program::DType;
  constexpr std::array<std::pair<std::string_view, DType>, 6> names{{{"f64", DType::f64},
                                                                     {"f32", DType::f32},
                                                                     {"tf32", DType::f32},
                                                                     {"f16", DType::f16},
                                                                     {"bf16", DType::bf16},
                                                                     {"fp8", DType::e4m3}}};
  return choice(section, "types", text, names);
}

program::OpKind kind_of(const SheetSection& section, std::string_view key, std::string_view text) {
  std::vector<std::string_view> known;
  for (std::size_t i = 0; i < program::op_kind_count; ++i) {
    const auto kind = static_cast<program::OpKind>(i);
    if (program::name(kind) == text) return kind;
    known.push_back(program::name(kind));
  }
  section.refuse(key, fmt::format("names no kind of op{}", base::did_you_mean(text, known)));
}

simulate::Algorithm algorithm_of(const SheetSection& section, std::string_view key,
                                 std::string_view text) {
  using simulate::Algorithm;
  constexpr std::array<std::pair<std::string_view, Algorithm>, 4> names{
      {{"ring", Algorithm::ring},
       {"tree", Algorithm::tree},
       {"multicast", Algorithm::multicast},
       {"hierarchical", Algorithm::hierarchical}}};
  return choice(section, key, text, names);
}

// These functions read one table each; SheetSection::read() then refuses its other keys.

simulate::Processor read_processor(SheetSection& section) {
  simulate::Processor result;
  result.units = section.count_or_0("units", extent);
  if (result.units > 0) {
    result.tile_rows = section.count("tile_rows", extent);
    result.tile_columns = section.count("tile_columns", extent);
    result.tile_depth = section.number("tile_depth", {0, 4096, "of k, that a tile costs beside"});
  }
  result.launch = section.number("launch", {0, 1, "seconds between ops"});
  result.fused_attention =
      section.number_or_0("fused_attention", {1e-3, 2, "of the peak, whole products"});
  for (SheetSection& entry : section.sections("matrix")) {
    const std::vector<std::string> types = entry.texts("types", "element types, like [\"bf16\"]");
    const double flops = entry.number("peak", peak);
    const auto reached = entry.shares("reached", "share of the peak by FLOP of one GEMM");
    entry.refuse_unknown();
    if (types.empty()) entry.refuse("types", "is missing (element types, like [\"bf16\"])");
    for (const std::string& type : types) {
      result.matrix.push_back(
          {.type = matrix_type(entry, type),
           .mode = type == "tf32" ? program::ComputeMode::tf32 : program::ComputeMode::native,
           .peak = flops,
           .reached = reached});
    }
  }
  if (result.matrix.empty()) section.refuse("matrix", "is missing (rates of GEMMs by type)");
  return result;
}

simulate::DeviceMemory read_memory(SheetSection& section) {
  simulate::DeviceMemory result;
  result.capacity = section.number("capacity", capacity);
  result.bandwidth = section.number("bandwidth", memory_bandwidth);
  result.reached = section.shares("reached", "share of the bandwidth by bytes of one op");
  result.accumulate = section.number_or_0("accumulate", {0, 100, "times the bytes of a sum"});
  if (auto traffic = section.section("traffic")) {
    for (const std::string& key : traffic->keys()) {
      result.traffic.push_back(
          {.kind = kind_of(*traffic, key, key), .times = traffic->number(key, factor)});
    }
  }
  return result;
}

simulate::Link read_link(SheetSection& section) {
  return {.bandwidth = section.number("bandwidth", wire),
          .reached = section.number("reached", share),
          .latency = section.number("latency", latency)};
}

simulate::Protocol read_protocol(SheetSection& section) {
  return {.name = section.text("name", "of the protocol, like LL"),
          .hop_inside = section.number("hop_inside", factor),
          .hop_across = section.number("hop_across", factor),
          .share = section.number("share", share),
          .most = section.number_or_0("most", wire)};
}

simulate::PartShare read_part(SheetSection& section) {
  simulate::PartShare result{
      .kind = kind_of(section, "kind", section.text("kind", "of a collective")),
      .algorithm = algorithm_of(section, "algorithm", section.text("algorithm", "its algorithm")),
      .reached = section.shares("reached", "share by bytes of a member's part")};
  if (result.reached.empty()) section.refuse("reached", "is missing");
  return result;
}

simulate::Multicast read_multicast(SheetSection& section) {
  return {.reached = section.number("reached", share),
          .latency = section.number("latency", seconds),
          .across_latency = section.number("across_latency", seconds)};
}

simulate::Network read_network(SheetSection& section) {
  simulate::Network result;
  result.node_ranks = section.count("node_ranks", ranks);
  result.ports_per_rank = section.number("ports_per_rank", ports);
  result.start = section.number("start", seconds);
  result.message_reached = section.number_or_0("message_reached", share);
  result.inside =
      section.required_section("inside", "the link between ranks of a node").read(read_link);
  result.across = section.required_section("across", "a port of the network").read(read_link);
  if (auto multicast = section.section("multicast")) {
    result.multicast = multicast->read(read_multicast);
  }
  result.algorithms.clear();
  for (const std::string& name : section.texts("algorithms", "of its library")) {
    result.algorithms.push_back(algorithm_of(section, "algorithms", name));
  }
  if (result.algorithms.empty()) section.refuse("algorithms", "is missing (those of its library)");
  if (result.multicast && std::ranges::find(result.algorithms, simulate::Algorithm::multicast) ==
                              result.algorithms.end()) {
    section.refuse("multicast", "is given, but algorithms do not name it");
  }
  for (SheetSection& entry : section.sections("protocol")) {
    result.protocols.push_back(entry.read(read_protocol));
  }
  for (SheetSection& entry : section.sections("part")) {
    result.parts.push_back(entry.read(read_part));
  }
  return result;
}

simulate::Overlap read_overlap(SheetSection& section) {
  const SheetRange longer{1, 100, "times as long beside the other kind"};
  return {.compute = section.number("compute", longer),
          .communication = section.number("communication", longer)};
}

simulate::Noise read_noise(SheetSection& section) {
  return {.op = section.number_or_0("op", deviation),
          .rank = section.number_or_0("rank", deviation),
          .node = section.number_or_0("node", deviation),
          .launch = section.number_or_0("launch", deviation)};
}

Machine read_machine(SheetSection& top) {
  Machine machine;
  machine.name = top.text("name", "of the machine");
  machine.source = top.text("source", "where its numbers are from");
  machine.processor = top.required_section("processor", "what multiplies").read(read_processor);
  machine.memory = top.required_section("memory", "the device's memory").read(read_memory);
  machine.network = top.required_section("network", "what joins ranks").read(read_network);
  if (auto host = top.section("host")) machine.host = host->read(read_link);
  if (auto overlap = top.section("overlap")) machine.overlap = overlap->read(read_overlap);
  if (auto noise = top.section("noise")) machine.noise = noise->read(read_noise);
  return machine;
}

Machine read_system(const toml::table& table, std::string_view origin,
                    std::vector<SheetKey>* asked) {
  return SheetSection{table, origin, "", asked}.read(read_machine);
}

}  // namespace

Machine parse_system(std::string_view toml, std::string_view origin) {
  return read_system(workloads::parse_toml(toml, origin), origin, nullptr);
}

std::vector<SheetKey> system_keys() {
  std::vector<SheetKey> asked;
  for (const workloads::Preset& preset : workloads::system_presets()) {
    static_cast<void>(
        read_system(workloads::parse_toml(preset.toml, preset.name), preset.name, &asked));
  }
  // No built-in sheet has a table [noise], so its keys are added here.
  static_cast<void>(SheetSection{toml::table{}, "", "noise", &asked}.read(read_noise));
  std::vector<SheetKey> keys;
  for (SheetKey& key : asked) {
    const bool is_kind = key.key.starts_with("memory.traffic.");
    if (is_kind) key = {"memory.traffic.KIND", "times the bytes of its operands", false};
    if (std::ranges::find(keys, key.key, &SheetKey::key) == keys.end()) keys.push_back(key);
  }
  std::ranges::sort(keys, {}, &SheetKey::key);
  return keys;
}

bool is_system(std::string_view name) {
  return std::ranges::find(workloads::system_presets(), name, &workloads::Preset::name) !=
         workloads::system_presets().end();
}

Machine load_system(std::string_view name_or_path) {
  std::vector<std::string_view> names;
  for (const workloads::Preset& preset : workloads::system_presets()) {
    if (preset.name == name_or_path) {
      return parse_system(preset.toml, fmt::format("systems/{}.toml", preset.name));
    }
    names.push_back(preset.name);
  }
  if (name_or_path.ends_with(".toml")) {
    return parse_system(workloads::read_small_file(name_or_path, "system file"), name_or_path);
  }
  throw base::usage_error(
      "unknown system {}{}; the systems are {}; or name a file that ends in .toml",
      base::quoted(name_or_path), base::did_you_mean(name_or_path, names), fmt::join(names, ", "));
}

}  // namespace isoscale::analysis::predict
