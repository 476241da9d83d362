// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/p2p/setting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <stdexcept>
#include <string>

#include "base/error.hpp"
#include "base/text.hpp"
#include "units/text.hpp"
#include "workloads/bench/sizes.hpp"

namespace isoscale::workloads::p2p {
namespace {

constexpr std::array kind_names{std::string_view{"latency"}, std::string_view{"bandwidth"},
                                std::string_view{"bidirectional"}, std::string_view{"bisection"},
                                std::string_view{"all_to_all"}};

/// What is under way in one direction: enough that starting a message costs no bandwidth.
constexpr std::uint64_t bytes_under_way = std::uint64_t{32} << 20U;
constexpr std::uint64_t most_messages = 64;

/// K of "sample:K"; absent when the text is another.
std::optional<int> sample_size(std::string_view text) {
  constexpr std::string_view prefix = "sample:";
  if (!text.starts_with(prefix)) return std::nullopt;
  text.remove_prefix(prefix.size());
  int count = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc{} || stop != text.data() + text.size() || count < 1) return std::nullopt;
  return count;
}

std::vector<Round> rounds_of(const Request& request, const std::string& pairs) {
  const int ranks = request.mesh.size();
  if (pairs == "all") return all_pairs(ranks);
  if (pairs == "neighbours") return neighbours(ranks);
  if (pairs == "isolated") {
    std::vector<int> node_of_rank = request.node_of_rank;
    node_of_rank.resize(static_cast<std::size_t>(ranks));  // all on one node when nobody knows
    return isolated(node_of_rank);
  }
  if (const auto count = sample_size(pairs)) return sample(ranks, *count, request.seed);
  throw base::UsageError(
      fmt::format("option pairs = {}: it takes all, neighbours, isolated, or sample:K with a whole "
                  "number K of at least 1",
                  base::quoted(pairs)));
}

units::Seconds timeout_of(const std::string& text) {
  try {
    const units::Seconds limit = units::parse_seconds(text);
    if (limit.value() > 0) return limit;
  } catch (const std::invalid_argument& error) {
    throw base::UsageError(fmt::format("option timeout: {}", error.what()));
  }
  throw base::UsageError("option timeout: no pair can answer in no time; it takes a time, 30s");
}

void add_kinds(const std::string& list, Setting& setting) {
  for (const std::string& text : parse_list("kinds", list)) {
    const auto kind = static_cast<Kind>(std::ranges::find(kind_names, text) - kind_names.begin());
    if (kind == Kind::bisection) {
      setting.bisects = true;
    } else if (kind == Kind::all_to_all) {
      setting.all_to_all = true;
    } else {
      setting.pair_kinds.push_back(kind);
    }
  }
  std::ranges::sort(setting.pair_kinds);
}

void add_transport(const Request& request, const OptionReader& options, Setting& setting) {
  if (!options.is("transport", "symmetric")) return;
  setting.transport = program::Transport::symmetric;
  if (!setting.all_to_all) return;
  if (request.options.contains("kinds")) {
    throw base::UsageError(
        "kinds=all_to_all is a collective, and transport=symmetric has puts alone; leave it out "
        "of kinds, or use transport=nccl");
  }
  setting.all_to_all = false;  // of the default, what there is
}

mesh::Axis only_axis(const mesh::Shape& shape) {
  std::vector<mesh::Axis> wide;
  for (const mesh::Axis axis : mesh::all_axes) {
    if (shape[axis] > 1) wide.push_back(axis);
  }
  if (wide.size() == 1) return wide.front();
  if (wide.empty()) {
    throw base::UsageError("a rank alone has nobody to send to: p2p needs 2 ranks or more");
  }
  throw base::UsageError(fmt::format(
      "p2p takes all ranks in one row, not the mesh {}; leave --mesh out", mesh::to_string(shape)));
}

}  // namespace

std::string_view name(Kind kind) { return kind_names[static_cast<std::size_t>(kind)]; }

std::span<const OptionSpec> option_table() {
  static const std::array table{
      OptionSpec{.key = "kinds",
                 .type = OptionType::list,
                 .default_value = "latency,bandwidth,bidirectional,bisection,all_to_all",
                 .choices = {kind_names.begin(), kind_names.end()},
                 .help = "what to measure: between pairs of ranks the latency of 8 B one way (half "
                         "a ping-pong) and the bandwidth in one and in both directions; among all "
                         "ranks the bisection, and all_to_all"},
      OptionSpec{.key = "size",
                 .type = OptionType::bytes,
                 .default_value = "4MiB",
                 .minimum = 1,
                 .maximum = 1LL << 36U,
                 .help = "bytes of a message; for all_to_all, of all that a rank sends"},
      OptionSpec{.key = "pairs",
                 .type = OptionType::text,
                 .default_value = "all",
                 .help =
                     "pairs to measure: all (each rank in one pair at a time), neighbours (on a "
                     "ring), sample:K (each rank with at least K others, drawn by --seed), or "
                     "isolated (all, but on each node one pair at a time)"},
      OptionSpec{.key = "renew",
                 .type = OptionType::integer,
                 .default_value = "8",
                 .minimum = 1,
                 .maximum = 1'000'000,
                 .help = "make new communicators after this many rounds of pairs, so that the "
                         "memory that libraries keep for each connection does not add up"},
      OptionSpec{.key = "transport",
                 .default_value = "nccl",
                 .choices = {"nccl", "symmetric"},
                 .help = "how messages travel: nccl, or symmetric: puts into NCCL's symmetric "
                         "windows by Isoscale's own kernel (--device cuda, NVLink), without "
                         "all_to_all"},
      OptionSpec{.key = "expect",
                 .type = OptionType::bytes,
                 .minimum = 1,
                 .help = "least bandwidth of every pair in one direction, per second (2GB is 2 "
                         "GB/s); a slower pair fails the point. Default: none"},
      OptionSpec{.key = "timeout",
                 .type = OptionType::text,
                 .default_value = "30s",
                 .help = "a pair that does not answer within this time fails; the others are "
                         "measured"},
  };
  return table;
}

std::size_t Setting::pair_batches() const {
  return pair_kinds.empty() ? 0 : (rounds.size() + rounds_of_batch - 1) / rounds_of_batch;
}

std::span<const Round> Setting::rounds_of(int batch) const {
  const std::size_t first = static_cast<std::size_t>(batch) * rounds_of_batch;
  if (static_cast<std::size_t>(batch) >= pair_batches()) return {};
  return std::span{rounds}.subspan(first, std::min(rounds_of_batch, rounds.size() - first));
}

Setting setting_of(const Request& request) {
  const OptionReader options{option_table(), request.options};
  Setting setting{.ranks = request.mesh.size()};
  add_kinds(options.text("kinds"), setting);
  add_transport(request, options, setting);
  setting.rounds = rounds_of(request, options.text("pairs"));
  setting.rounds_of_batch = static_cast<std::size_t>(options.integer("renew"));
  setting.timeout = timeout_of(options.text("timeout"));
  if (options.has("expect")) {
    setting.expected = units::BytesPerSecond{static_cast<double>(options.bytes("expect"))};
  }
  setting.axis = only_axis(request.mesh);
  setting.bytes = options.bytes("size");
  setting.messages = std::clamp<std::uint64_t>(bytes_under_way / setting.bytes, 1, most_messages);
  setting.part = setting.bytes / static_cast<std::uint64_t>(setting.ranks);
  if (setting.all_to_all && setting.part == 0) {
    throw base::UsageError(fmt::format(
        "size={}: all_to_all deals that out over {} ranks, at least 1 byte each; use a larger "
        "size, or kinds= without all_to_all",
        options.text("size"), setting.ranks));
  }
  return setting;
}

}  // namespace isoscale::workloads::p2p
