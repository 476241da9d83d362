// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "results/records/run_data.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <set>

#include "base/error.hpp"
#include "results/records/layout.hpp"
#include "results/records/point_layout.hpp"

namespace isoscale::results {

namespace {

void require_length(std::size_t length, std::size_t wanted, std::string_view what) {
  if (length != wanted) {
    throw base::Error(fmt::format("{} has {} entries instead of {}", what, length, wanted));
  }
}

void check_mesh(const PointData& point) {
  std::int64_t product = 1;
  for (const mesh::Axis axis : mesh::all_axes) {
    const int extent = point.mesh[axis];
    if (extent < 1) throw base::Error(fmt::format("mesh axis {} is {}", mesh::name(axis), extent));
    product *= extent;
    if (product > INT32_MAX) throw base::Error("the mesh has more ranks than any machine");
  }
  if (point.status != PointStatus::skipped && product != point.ranks) {
    throw base::Error(fmt::format("the mesh has {} ranks, the point {}", product, point.ranks));
  }
}

/// Throws unless a field that belongs to ranks or to steps has an entry for each; fields of ranks
/// may be empty, where nothing was measured.
void check_lengths(const PointData& point) {
  const auto ranks = static_cast<std::size_t>(point.ranks);
  for_each_field(fields_of<PointData>, [&](const auto& field) {
    if constexpr (requires { field.per; }) {
      const std::size_t length = field.member(point).size();
      if (field.per == "ranks" && length != 0) require_length(length, ranks, field.name);
      if (field.per == "steps") require_length(length, point.step_times.size(), field.name);
    }
  });
  for (const auto& times : point.step_times) {
    require_length(times.size(), ranks, "a row of step_times");
  }
  if (point.warm_up_steps < 0 ||
      static_cast<std::uint64_t>(point.warm_up_steps) > point.step_times.size()) {
    throw base::Error(
        fmt::format("{} warm-up steps of {}", point.warm_up_steps, point.step_times.size()));
  }
}

void check_traces(const PointData& point) {
  const std::size_t ranks_with_ops = point.outline.outline_of_rank.size();
  if (ranks_with_ops != 0) {
    require_length(ranks_with_ops, static_cast<std::size_t>(point.ranks), "outline_of_rank");
  }
  for (const timeline::Timeline& timeline : point.traces) {
    for (const timeline::StepTrace& trace : timeline.ranks) {
      if (trace.rank < 0 || static_cast<std::size_t>(trace.rank) >= ranks_with_ops) {
        throw base::Error(fmt::format("a trace is of rank {}, which has no ops", trace.rank));
      }
      if (trace.step >= point.step_times.size()) {
        throw base::Error(
            fmt::format("a trace is of step {} of {}", trace.step, point.step_times.size()));
      }
      const std::size_t ops = point.outline.of(trace.rank).ops.size();
      for (const timeline::Span& span : trace.spans) {
        if (span.op >= ops) {
          throw base::Error(fmt::format("a span is of op {} of {}", span.op, ops));
        }
      }
    }
  }
}

/// Throws if a key cannot be the name of a dataset.
void check_key(std::string_view key) {
  if (key.empty() || key == "." || key.find('/') != key.npos || key.find('\0') != key.npos) {
    throw base::Error(fmt::format("a row has the impossible key '{}'", key));
  }
}

void check_rank(const PointData& point, int rank, std::string_view what) {
  if (rank < 0 || rank >= point.ranks) {
    throw base::Error(fmt::format("{} of rank {} of {}", what, rank, point.ranks));
  }
}

void check_row(const PointData& point, const RowData& row) {
  for (const auto& [key, value] : row.text) check_key(key);
  for (const auto& [key, value] : row.number) check_key(key);
  std::set<int> seen;
  for (const int rank : row.ranks) {
    check_rank(point, rank, "a row is");
    if (!seen.insert(rank).second)
      throw base::Error(fmt::format("a row names rank {} twice", rank));
  }
  const std::size_t width =
      row.ranks.empty() ? static_cast<std::size_t>(point.ranks) : row.ranks.size();
  for (const auto& play : row.times) require_length(play.size(), width, "a play of a row");
  if (row.calls < 1) throw base::Error(fmt::format("a row makes {} calls a play", row.calls));
  if (row.wrong && *row.wrong < 0) {
    throw base::Error(fmt::format("a row has {} wrong elements", *row.wrong));
  }
}

void check_sums(const PointData& point, const OpSums& sums) {
  const auto ranks = static_cast<std::size_t>(point.ranks);
  for (const auto* const column :
       {&sums.gemm, &sums.other_compute, &sums.copies, &sums.communication}) {
    require_length(column->size(), ranks, "a row of op_sums");
  }
  if (sums.step >= point.step_times.size()) {
    throw base::Error(
        fmt::format("op sums are of step {} of {}", sums.step, point.step_times.size()));
  }
}

void check_solo(const PointData& point, const SoloTimes& solo) {
  check_rank(point, solo.rank, "solo times");
  if (point.outline.outline_of_rank.empty()) throw base::Error("solo times of a rank without ops");
  require_length(solo.op.size(), point.outline.of(solo.rank).ops.size(), "a row of solo_times");
  constexpr std::int64_t longest = std::int64_t{1} << 53;  // ns; sums are still precise
  for (const units::Nanoseconds time : solo.op) {
    if (time.value() >= 0 && time.value() <= longest) continue;
    throw base::Error(
        fmt::format("an op of rank {} took {} ns by itself", solo.rank, time.value()));
  }
}

/// Throws if the numbers of the interim analyses are out of range: a reader integrates over each
/// analysis, so there must not be too many.
void check_looks(const Looks& looks) {
  constexpr int most = 1000;
  constexpr double fastest = 1000;
  const bool possible =
      looks.planned >= 1 && looks.planned <= most && looks.growth >= 1 && looks.growth <= fastest;
  if (!possible) throw base::Error("the looks of the stop rule are impossible");
}

void check_observed(const PointData& point) {
  for (const OpSums& sums : point.op_sums) check_sums(point, sums);
  std::set<int> solo_ranks;
  for (const SoloTimes& solo : point.solo_times) {
    check_solo(point, solo);
    if (!solo_ranks.insert(solo.rank).second) {
      throw base::Error(fmt::format("solo times name rank {} twice", solo.rank));
    }
  }
  for (const DeviceSeries& series : point.device_series) {
    check_rank(point, series.rank, "a device series");
    require_length(series.value.size(), series.time.size(), "a device series");
  }
  check_looks(point.looks);
}

std::string text_in(const std::map<std::string, std::string>& texts, const std::string& key) {
  const auto found = texts.find(key);
  return found == texts.end() ? "" : found->second;
}

}  // namespace

std::string_view name(PointStatus status) {
  static constexpr std::array<std::string_view, 3> names{"ok", "failed", "skipped"};
  return names[static_cast<std::size_t>(status)];
}

std::string text_of(const RowData& row, const std::string& key) { return text_in(row.text, key); }

std::string text_of(const RankFacts& facts, const std::string& key) {
  return text_in(facts.text, key);
}

std::optional<double> number_of(const RowData& row, const std::string& key) {
  const auto found = row.number.find(key);
  if (found == row.number.end() || std::isnan(found->second)) return std::nullopt;
  return found->second;
}

std::string_view unit_of_number(std::string_view key) {
  if (key == "bytes" || key.ends_with("_bytes")) return "B";
  if (key == "flop") return "FLOP";
  if (key == "sm_clock" || key == "sm_clock_min") return "Hz";
  if (key == "estimate" || key == "first_call" || key.ends_with("_seconds")) return "s";
  return "1";
}

std::string_view unit_of_fact(std::string_view key) {
  const auto holds = [&](std::string_view part) { return key.find(part) != key.npos; };
  if (holds("_clock")) return "Hz";
  if (holds("_power")) return "W";
  if (holds("memory_") || key.ends_with("_cache")) return "B";
  if (key.ends_with("_seconds")) return "s";
  return "1";
}

std::string point_group_name(int index) { return fmt::format("{:04}", index); }

void validate(const PointData& point) {
  if (point.index < 0 || point.ranks < 0) throw base::Error("a point's index or ranks is negative");
  check_mesh(point);
  check_lengths(point);
  for (const std::uint32_t outline : point.outline.outline_of_rank) {
    if (outline >= point.outline.outlines.size()) {
      throw base::Error(
          fmt::format("a rank plays outline {} of {}", outline, point.outline.outlines.size()));
    }
  }
  check_traces(point);
  for (const RowData& row : point.rows) check_row(point, row);
  check_observed(point);
}

void validate(const CalibrationCurve& curve) {
  for (std::size_t at = 0; at < curve.samples.size(); ++at) {
    const CurveSample& sample = curve.samples[at];
    const bool rises = at == 0 || sample.bytes > curve.samples[at - 1].bytes;
    if (!rises || !(sample.bytes >= 0) || !(sample.fitted > 0)) {
      throw base::Error("the samples of a curve are out of order");
    }
  }
}

}  // namespace isoscale::results
