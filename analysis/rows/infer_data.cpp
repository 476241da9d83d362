// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Inference in the reports for programs: JSON and CSV.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "analysis/render/json_values.hpp"
#include "analysis/rows/infer.hpp"

namespace isoscale::analysis {
namespace {

using Json = nlohmann::ordered_json;

Json time_json(const std::optional<Estimate>& time) {
  const auto of = [&](double Estimate::*member) {
    return number_or_null(time ? std::optional{*time.*member} : std::nullopt);
  };
  return {{"median", of(&Estimate::median)},
          {"lower", number_or_null(time ? time->lower : std::nullopt)},
          {"upper", number_or_null(time ? time->upper : std::nullopt)},
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
    return count_or_null(row == nullptr ? std::nullopt : number_of(*row, key));
  };
  return {{"op", "infer"},
          {"dtype", text_or_null(at.dtype)},
          {"batch", count_or_null(at.batch)},
          {"prompt", count_or_null(at.prompt)},
          {"output", count_or_null(at.output)},
          {"replicas", count_or_null(at.replicas)},
          {"groups", of(at.decode, "groups")},
          {"ttft", time_json(at.ttft)},
          {"tpot", time_json(at.tpot)},
          {"tokens_per_second", number_or_null(at.tokens_per_second)},
          {"tokens_per_second_per_rank", number_or_null(at.tokens_per_second_per_rank)},
          {"cache_bytes", count_or_null(at.cache_bytes)},
          {"prefill_flop", of(at.prefill, "flop")},
          {"decode_flop", of(at.decode, "flop")},
          {"decode_position", of(at.decode, "position")},
          {"decode_tokens", of(at.decode, "tokens")},
          {"on_frontier", at.on_frontier},
          {"status", status_of(at)},
          {"reason", text_or_null(at.failure)}};
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
