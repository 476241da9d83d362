// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/stack/require_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/error.hpp"
#include "workloads/stack/deal.hpp"
#include "workloads/stack/options.hpp"

namespace isoscale::workloads::stack {
namespace {

struct Setting {
  std::string_view key, neutral;
};

/// Whether it was given another value than the one that goes with everything.
bool departs(const Request& request, const Setting& setting) {
  const auto given = request.options.find(setting.key);
  return given != request.options.end() && given->second != setting.neutral;
}

void refuse_beside(const Request& request, std::string_view what, std::string_view why,
                   const Setting& setting) {
  if (!departs(request, setting)) return;
  throw base::UsageError(fmt::format("{} cannot be combined with {}={}: {}; use {}={}", what,
                                     setting.key, request.options.find(setting.key)->second, why,
                                     setting.key, setting.neutral));
}

void require_funnel(const Request& request) {
  constexpr std::string_view why =
      "all gradients go to the first replica, whole and after backward, and all replicas get as "
      "much to do";
  for (const Setting& setting :
       {Setting{"overlap", "off"}, Setting{"partition", "equal"}, Setting{"grad_dtype", "same"},
        Setting{"compression", "none"}, Setting{"zero", "0"}, Setting{"offload", "none"}}) {
    refuse_beside(request, "strategy=funnel", why, setting);
  }
  for (const mesh::Axis axis : {mesh::Axis::cp, mesh::Axis::ep}) {
    if (request.mesh[axis] == 1) continue;
    throw base::UsageError(
        fmt::format("strategy=funnel cannot be combined with {}={}: it has one row of replicas, "
                    "along dp; use {}=1",
                    mesh::to_string(mesh::AxisSet{axis}), request.mesh[axis],
                    mesh::to_string(mesh::AxisSet{axis})));
  }
}

}  // namespace

void complete_data_options(Request& scaled) {
  const OptionReader options{option_table(), scaled.options};
  if (options.is("strategy", "funnel")) scaled.options.try_emplace("overlap", "off");
}

void require_data(const Request& scaled) {
  const OptionReader options{option_table(), scaled.options};
  if (options.is("strategy", "funnel")) require_funnel(scaled);
  if (options.is("compression", "topk")) {
    const std::string_view why = "values are sent as they accumulate, whole buckets of them";
    refuse_beside(scaled, "compression=topk", why, {"grad_dtype", "same"});
    refuse_beside(scaled, "compression=topk", why, {"zero", "0"});
  }
  require_partition(scaled);
}

void shrink_data_options(Request& twin) {
  const OptionReader options{option_table(), twin.options};
  if (!options.is("compression", "topk")) return;
  constexpr long long small_block = 100;  // divides no tensor: last blocks are short
  twin.options["compression_block"] =
      std::to_string(std::min(options.integer("compression_block"), small_block));
  twin.options["compression_ratio"] = "100";
}

void forget_data_options(Request& one) {
  for (const std::string_view key : {"strategy", "partition", "grad_dtype", "compression"}) {
    if (const auto given = one.options.find(key); given != one.options.end()) {
      one.options.erase(given);
    }
  }
  one.speed_of_rank.clear();
}

}  // namespace isoscale::workloads::stack
