// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/error.hpp"
#include "base/text.hpp"
#include "workloads/bench/sizes.hpp"
#include "workloads/memory/memory.hpp"

namespace isoscale::workloads::memory {
namespace {

constexpr std::array<std::string_view, kind_count> option_names{"h2d-pinned",
                                                                "d2h-pinned",
                                                                "h2d-pageable",
                                                                "d2h-pageable",
                                                                "d2d",
                                                                "copy",
                                                                "triad",
                                                                "explicit",
                                                                "managed",
                                                                "managed-prefetch",
                                                                "managed-read-mostly",
                                                                "managed-preferred-device"};
constexpr std::array<std::string_view, kind_count> row_names{"h2d pinned",
                                                             "d2h pinned",
                                                             "h2d pageable",
                                                             "d2h pageable",
                                                             "d2d",
                                                             "copy",
                                                             "triad",
                                                             "explicit",
                                                             "managed",
                                                             "managed prefetch",
                                                             "managed read-mostly",
                                                             "managed preferred-device"};

constexpr std::uint64_t element = 4;  // f32

std::vector<Kind> kinds_of(const OptionReader& options) {
  std::vector<Kind> kinds;
  for (const std::string& name : parse_list("kinds", options.text("kinds"))) {
    const auto found = std::ranges::find(option_names, std::string_view{name});
    kinds.push_back(static_cast<Kind>(found - option_names.begin()));
  }
  return kinds;
}

std::vector<Together> together_of(const OptionReader& options, int ranks) {
  if (ranks == 1) return {Together::one};
  const std::string asked = options.text("together");
  if (asked == "both") return {Together::one, Together::all};
  return {asked == "one" ? Together::one : Together::all};
}

int parse_node(std::string_view text) {
  constexpr int most = 1024;
  int node = -1;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), node);
  if (error == std::errc{} && stop == text.data() + text.size() && node >= 0 && node < most) {
    return node;
  }
  throw base::UsageError(
      fmt::format("option numa: {} is not a NUMA node; it takes none, all, or numbers such as 0,1",
                  base::quoted(text)));
}

}  // namespace

std::span<const OptionSpec> option_table() {
  static const std::array table{
      OptionSpec{.key = "kinds",
                 .type = OptionType::list,
                 .default_value = "copy,triad",
                 .gpu_default =
                     "h2d-pinned,d2h-pinned,h2d-pageable,d2h-pageable,d2d,triad,explicit,"
                     "managed,managed-prefetch,managed-read-mostly,"
                     "managed-preferred-device",
                 .choices = {option_names.begin(), option_names.end()},
                 .help = "what to measure. explicit and managed*: one kernel reads data that lies "
                         "on the host"},
      OptionSpec{.key = "sizes",
                 .type = OptionType::text,
                 .default_value = "64MiB,256MiB",
                 .help = "sizes of one array: a list of sizes and of ranges, such as 1MiB..1GiB*4"},
      OptionSpec{.key = "together",
                 .default_value = "both",
                 .choices = {"one", "all", "both"},
                 .help = "measure one rank alone, all ranks at once, or both, one after the other"},
      OptionSpec{.key = "numa",
                 .type = OptionType::text,
                 .default_value = "none",
                 .help = "NUMA nodes to measure host memory on, one after the other: none (where "
                         "the system puts it), all, or numbers such as 0,1"},
  };
  return table;
}

std::string_view option_name(Kind kind) { return option_names[static_cast<std::size_t>(kind)]; }
std::string_view row_name(Kind kind) { return row_names[static_cast<std::size_t>(kind)]; }
bool is_managed(Kind kind) { return kind >= Kind::managed; }

std::uint64_t MemoryCase::size() const { return count * element; }

std::uint64_t MemoryCase::bytes() const {
  if (kind == Kind::d2d || kind == Kind::copy) return 2 * size();
  if (kind == Kind::triad) return 3 * size();
  return size();
}

std::vector<MemoryCase> cases_of(const Request& request) {
  const OptionReader options{option_table(), request.options};
  std::vector<MemoryCase> cases;
  for (const Together together : together_of(options, request.mesh.size())) {
    for (const Kind kind : kinds_of(options)) {
      for (const std::uint64_t size : parse_sizes("sizes", options.text("sizes"))) {
        if (size < element) continue;
        if (size / element > UINT32_MAX) {
          throw base::UsageError(
              fmt::format("sizes={}: an array has at most 16 GiB", options.text("sizes")));
        }
        cases.push_back({.kind = kind, .together = together, .count = size / element});
      }
    }
  }
  if (cases.empty()) {
    throw base::UsageError(fmt::format("nothing to measure: sizes={} has none of at least 4 bytes",
                                       options.text("sizes")));
  }
  return cases;
}

std::vector<std::optional<int>> numa_nodes_of(const Request& request) {
  const std::string asked = OptionReader{option_table(), request.options}.text("numa");
  if (asked == "none") return {std::nullopt};
  std::vector<std::optional<int>> nodes;
  for (const std::string& part : parse_list("numa", asked)) nodes.emplace_back(parse_node(part));
  return nodes;
}

Request on_machine(const Request& request, const Machine& machine) {
  Request result = request;
  const OptionReader options{option_table(), request.options};
  if (machine.device == "host") {
    for (const Kind kind : kinds_of(options)) {
      if (kind == Kind::copy || kind == Kind::triad) continue;
      throw base::UsageError(
          fmt::format("kinds: {} is about a device with memory of its own; on host there are copy "
                      "and triad",
                      option_name(kind)));
    }
  }
  if (options.is("numa", "all")) {
    std::vector<int> nodes;
    for (int node = 0; node < std::max(machine.numa_nodes, 1); ++node) nodes.push_back(node);
    result.options["numa"] = fmt::format("{}", fmt::join(nodes, ","));
  }
  const int last = std::max(machine.numa_nodes, 1) - 1;
  for (const std::optional<int>& node : numa_nodes_of(result)) {
    if (node.value_or(0) <= last) continue;
    throw base::UsageError(fmt::format("numa={}: there is no NUMA node {} here; {}", *node, *node,
                                       last == 0
                                           ? std::string{"the only one is 0"}
                                           : fmt::format("they are numbered from 0 to {}", last)));
  }
  return result;
}

}  // namespace isoscale::workloads::memory
