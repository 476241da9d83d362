// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/predict/sheet_section.hpp"

namespace isoscale::analysis::predict {
namespace {

/// The keys of the table [host] that are no kinds of ops.
constexpr std::array<std::string_view, 3> host_keys{"op", "bucket", "step"};

std::vector<simulate::OfKind> of_kinds(SheetSection& table, const SheetRange& range,
                                       std::span<const std::string_view> apart = {}) {
  std::vector<simulate::OfKind> result;
  for (const std::string& key : table.keys()) {
    if (std::ranges::find(apart, key) != apart.end()) continue;
    result.push_back({.kind = kind_of(table, key, key), .value = table.number(key, range)});
  }
  return result;
}

simulate::Software read_software(SheetSection& top) {
  const SheetRange seconds{0, 1, "seconds"};
  simulate::Software result{
      .name = top.text("name", "of the software"),
      .source = top.text("source", "where its numbers are from"),
      .attention = top.text_or_empty("attention", "a fused kernel of the processor's"),
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

/// Replaces the last word of keys such as "traffic.norm", which may name any kind of op or any
/// option, by a placeholder: "traffic.KIND".
void generalise(SheetKey& key) {
  constexpr std::string_view host = "host.";
  if (key.key.starts_with("traffic.")) {
    key = {.key = "traffic.KIND", .meaning = "times the bytes of its operands"};
  } else if (key.key.starts_with("options.")) {
    key = {.key = "options.KEY", .meaning = key.meaning};
  } else if (key.key.starts_with(host) &&
             std::ranges::find(host_keys, std::string_view{key.key}.substr(host.size())) ==
                 host_keys.end()) {
    key = {.key = "host.KIND", .meaning = "seconds in which the host launches an op of this kind"};
  }
}

}  // namespace

simulate::Software parse_software(std::string_view toml, std::string_view origin) {
  return read_profile(workloads::parse_toml(toml, origin), origin, nullptr);
}

std::vector<SheetKey> software_keys() {
  std::vector<SheetKey> asked;
  for (const workloads::Preset& preset : workloads::software_presets()) {
    static_cast<void>(
        read_profile(workloads::parse_toml(preset.toml, preset.name), preset.name, &asked));
  }
  // The built-in profiles may not have every kind of key, so this text has them all.
  constexpr std::string_view complete =
      "name = 'x'\nsource = 'x'\nspread = 1\n[traffic]\nnorm = 1\n[host]\nop = 0\nnorm = 0\n"
      "[options]\nzero = '1'\n";
  static_cast<void>(read_profile(workloads::parse_toml(complete, ""), "", &asked));
  for (SheetKey& key : asked) generalise(key);
  return distinct(std::move(asked));
}

simulate::Software load_software(std::string_view name_or_path) {
  return load(name_or_path, {"software", "software profile"}, workloads::software_presets(),
              parse_software);
}

}  // namespace isoscale::analysis::predict
