// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Inference in the reports for programs: JSON and CSV.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "analysis/rows/infer.hpp"

namespace isoscale::analysis {
namespace {

using Json = nlohmann::ordered_json;

Json number(std::optional<double> value) {
  return value && std::isfinite(*value) ? Json(*value) : Json{};
}

/// What counts things is a whole number.
Json count(std::optional<double> value) {
  constexpr double most = 9e15;
  if (!value || !std::isfinite(*value) || std::abs(*value) > most) return {};
  if (*value != std::floor(*value)) return *value;
  return static_cast<std::int64_t>(*value);
}

Json text(const std::string& value) { return value.empty() ? Json{} : Json(value); }

Json time_json(const std::optional<Estimate>& time) {
  const auto of = [&](double Estimate::*member) {
    return number(time ? std::optional{*time.*member} : std::nullopt);
  };
  return {{"median", of(&Estimate::median)},
          {"lower", number(time ? time->lower : std::nullopt)},
          {"upper", number(time ? time->upper : std::nullopt)},
          {"min", of(&Estimate::minimum)},
          {"max", of(&Estimate::maximum)},
          {"plays", time ? time->samples : 0}};
}

/// Of both rows: of the first that is not ok.
std::string status_of(const Inference& at) {
  for (const results::RowData* const row : {at.prefill, at.decode}) {
    if (row != nullptr && row->status != results::PointStatus::ok) {
      return std::string{results::name(row->status)};
    }
  }
  return std::string{results::name(results::PointStatus::ok)};
}

Json inference_json(const Inference& at) {
  const auto of = [&](const results::RowData* row, const char* key) {
    return count(row == nullptr ? std::nullopt : number_of(*row, key));
  };
  return {{"op", "infer"},
          {"dtype", text(at.dtype)},
          {"batch", count(at.batch)},
          {"prompt", count(at.prompt)},
          {"output", count(at.output)},
          {"replicas", count(at.replicas)},
          {"groups", of(at.decode, "groups")},
          {"ttft", time_json(at.ttft)},
          {"tpot", time_json(at.tpot)},
          {"tokens_per_second", number(at.tokens_per_second)},
          {"tokens_per_second_per_rank", number(at.tokens_per_second_per_rank)},
          {"cache_bytes", count(at.cache_bytes)},
          {"prefill_flop", of(at.prefill, "flop")},
          {"decode_flop", of(at.decode, "flop")},
          {"decode_position", of(at.decode, "position")},
          {"decode_tokens", of(at.decode, "tokens")},
          {"on_frontier", at.on_frontier},
          {"status", status_of(at)},
          {"reason", text(at.failure)}};
}

}  // namespace

void add_inferences_json(std::span<const Inference> all, const PointReport& point, Json& object) {
  for (const Inference& at : all) {
    if (at.point == &point) object["rows"].push_back(inference_json(at));
  }
}

std::vector<CsvCell> inference_cells(std::span<const Inference> all, const results::RowData* row) {
  std::vector<CsvCell> cells;
  for (const char* key : {"prompt", "output", "position", "tokens", "replicas", "cache_bytes"}) {
    cells.emplace_back(key, number_cell(row == nullptr ? std::nullopt : number_of(*row, key)));
  }
  const auto found = row == nullptr ? all.end() : std::ranges::find(all, row, &Inference::decode);
  const bool is_decode = found != all.end();
  const Inference nothing;
  const Inference& at = is_decode ? *found : nothing;
  cells.emplace_back("tokens_per_second", number_cell(at.tokens_per_second));
  cells.emplace_back("tokens_per_second_per_rank", number_cell(at.tokens_per_second_per_rank));
  cells.emplace_back("on_frontier", !is_decode ? "" : at.on_frontier ? "yes" : "no");
  return cells;
}

}  // namespace isoscale::analysis
