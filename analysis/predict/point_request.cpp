// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <charconv>
#include <string>
#include <string_view>

#include "analysis/point_facts.hpp"
#include "analysis/predict/run_machine.hpp"
#include "base/error.hpp"
#include "base/text.hpp"

namespace isoscale::analysis {
namespace {

int number_in(const results::PointData& point, const std::string& key) {
  const auto found = point.model_shape.find(key);
  int value = 0;
  if (found != point.model_shape.end()) {
    const std::string& text = found->second;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc{} && end == text.data() + text.size()) return value;
  }
  throw base::UsageError(
      fmt::format("point {} of the run does not say what its model's {} is: its programs cannot be "
                  "made again; measure it with this version",
                  point.index, key));
}

workloads::Model model_of(const results::PointData& point) {
  const auto number = [&](const char* key) { return number_in(point, key); };
  const auto gated = point.model_shape.find("gated_mlp");
  return {.name = point.model,
          .source = "the run file",
          .hidden = number("hidden"),
          .ffn = number("ffn"),
          .heads = number("heads"),
          .kv_heads = number("kv_heads"),
          .head_size = number("head_size"),
          .gated_mlp = gated != point.model_shape.end() && gated->second == "yes",
          .layers = number("layers"),
          .sequence = number("sequence"),
          .vocabulary = number("vocabulary")};
}

}  // namespace

workloads::Request request_of(const results::PointData& point) {
  const workloads::Workload& workload = workloads::find_workload(point.workload);
  workloads::Request request{.model = {},
                             .mesh = point.mesh,
                             .precision = workloads::parse_precision(point.dtype),
                             .options = {point.options.begin(), point.options.end()},
                             .seed = point.seed};
  workloads::validate(point.workload, workload.options, request.options);
  if (!point.model_shape.empty()) request.model = model_of(point);
  if (workload.work_per_step != nullptr && point.work_per_step > 0) {
    // What the work per token has grown by is not stored: it is what the work is more.
    const double plain = workload.work_per_step(request);
    if (plain > 0) request.growth = point.work_per_step / plain;
  }
  return request;
}

simulate::Layout layout_of(const results::RunData& run, const results::PointData& point) {
  simulate::Layout layout;
  layout.node_of_rank.reserve(static_cast<std::size_t>(point.ranks));
  for (int rank = 0; rank < point.ranks; ++rank) {
    const results::RankFacts* const known = facts_of(run.rank_facts, point, rank);
    layout.node_of_rank.push_back(known == nullptr ? 0 : known->node);
  }
  return layout;
}

}  // namespace isoscale::analysis
