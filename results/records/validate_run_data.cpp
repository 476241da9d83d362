// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "results/records/run_data.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <set>

#include "results/records/point_fields.hpp"
#include "results/records/run_and_calibration_fields.hpp"

namespace isoscale::results {
namespace {

void require_length(std::size_t length, std::size_t wanted, std::string_view what) {
  require(length == wanted, "{} has {} entries instead of {}", what, length, wanted);
}

void check_mesh(const PointData& point) {
  std::int64_t product = 1;
  for (const mesh::Axis axis : mesh::all_axes) {
    const int extent = point.mesh[axis];
    require(extent >= 1, "mesh axis {} is {}", mesh::name(axis), extent);
    product *= extent;
    require(product <= INT32_MAX, "the mesh has more ranks than any machine");
  }
  require(point.status == PointStatus::skipped || product == point.ranks,
          "the mesh has {} ranks, the point {}", product, point.ranks);
}

/// Throws base::Error if a list per rank or per step has another number of entries than there are
/// ranks or steps (lists per rank may be empty), or if there are more warm-up steps than steps.
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
  require(
      point.warm_up_steps >= 0 && std::cmp_less_equal(point.warm_up_steps, point.step_times.size()),
      "{} warm-up steps of {}", point.warm_up_steps, point.step_times.size());
}

/// Throws base::Error for more than program::max_streams streams, and unless every op is on a
/// stream that exists, has waits and transfers that exist, and waits only for earlier ops. Also
/// throws if the distance to a peer is INT32_MIN, which cannot be negated: the matching op of the
/// peer has the negated distance.
void check_outline(const program::Outline& outline) {
  const std::size_t streams = outline.streams.size();
  require(streams <= program::max_streams, "a rank has too many streams");
  std::vector<std::uint64_t> ops_on(streams, 0);
  for (const program::OutlineOp& op : outline.ops) {
    require(op.stream < streams, "an op is on a stream that does not exist");
    require(std::uint64_t{op.wait_begin} + op.wait_count <= outline.waits.size() &&
                std::uint64_t{op.transfer_begin} + op.transfer_count <= outline.transfers.size(),
            "an op has waits or transfers that do not exist");
    for (const program::Wait& wait : outline.waits_of(op)) {
      require(wait.stream < streams, "an op waits for a stream that does not exist");
      require(wait.count > 0, "an op waits for no op");
      require(wait.count <= ops_on[wait.stream], "an op waits for ops that come after it");
    }
    for (const program::OutlineTransfer& transfer : outline.transfers_of(op)) {
      require(transfer.offset != INT32_MIN, "an op has a peer at an impossible distance");
    }
    ++ops_on[op.stream];
  }
}

void check_traces(const PointData& point) {
  const std::size_t ranks_with_ops = point.outline.outline_of_rank.size();
  if (ranks_with_ops != 0) {
    require_length(ranks_with_ops, static_cast<std::size_t>(point.ranks), "outline_of_rank");
  }
  for (const timeline::Timeline& timeline : point.traces) {
    for (const timeline::StepTrace& trace : timeline.ranks) {
      require(trace.rank >= 0 && std::cmp_less(trace.rank, ranks_with_ops),
              "a trace is of rank {}, which has no ops", trace.rank);
      require(trace.step < point.step_times.size(), "a trace is of step {} of {}", trace.step,
              point.step_times.size());
      const std::size_t ops = point.outline.of(trace.rank).ops.size();
      for (const timeline::Span& span : trace.spans) {
        require(span.op < ops, "a span is of op {} of {}", span.op, ops);
      }
    }
  }
}

/// Throws base::Error if a key cannot be the name of a dataset.
void check_key(std::string_view key) {
  const bool is_name =
      !key.empty() && key != "." && key.find('/') == key.npos && key.find('\0') == key.npos;
  require(is_name, "a row has the impossible key '{}'", key);
}

void check_rank(const PointData& point, int rank, std::string_view what) {
  require(rank >= 0 && rank < point.ranks, "{} of rank {} of {}", what, rank, point.ranks);
}

void check_row(const PointData& point, const RowData& row) {
  for (const auto& [key, value] : row.text) check_key(key);
  for (const auto& [key, value] : row.number) check_key(key);
  std::set<int> seen;
  for (const int rank : row.ranks) {
    check_rank(point, rank, "a row is");
    require(seen.insert(rank).second, "a row names rank {} twice", rank);
  }
  const std::size_t width =
      row.ranks.empty() ? static_cast<std::size_t>(point.ranks) : row.ranks.size();
  for (const auto& play : row.times) require_length(play.size(), width, "a play of a row");
  require(row.calls >= 1, "a row makes {} calls a play", row.calls);
  require(row.wrong.value_or(0) >= 0, "a row has {} wrong elements", row.wrong.value_or(0));
}

void check_sums(const PointData& point, const OpSums& sums) {
  const auto ranks = static_cast<std::size_t>(point.ranks);
  for_each_field(fields_of<OpSums>, [&](const auto& field) {
    if constexpr (is_list<MemberOf<decltype(field.member), const OpSums>>) {
      require_length(field.member(sums).size(), ranks, "a row of op_sums");
    }
  });
  require(sums.step < point.step_times.size(), "op sums are of step {} of {}", sums.step,
          point.step_times.size());
}

void check_solo(const PointData& point, const SoloTimes& solo) {
  check_rank(point, solo.rank, "solo times");
  require(!point.outline.outline_of_rank.empty(), "solo times of a rank without ops");
  require_length(solo.op.size(), point.outline.of(solo.rank).ops.size(), "a row of solo_times");
  constexpr std::int64_t longest = std::int64_t{1} << 53;  // ns; doubles are exact up to this
  for (const units::Nanoseconds time : solo.op) {
    require(time.value() >= 0 && time.value() <= longest, "an op of rank {} took {} ns by itself",
            solo.rank, time.value());
  }
}

void check_observed(const PointData& point) {
  for (const OpSums& sums : point.op_sums) check_sums(point, sums);
  std::set<int> solo_ranks;
  for (const SoloTimes& solo : point.solo_times) {
    check_solo(point, solo);
    require(solo_ranks.insert(solo.rank).second, "solo times name rank {} twice", solo.rank);
  }
  for (const DeviceSeries& series : point.device_series) {
    check_rank(point, series.rank, "a device series");
    require_length(series.value.size(), series.time.size(), "a device series");
  }
  const Looks& looks = point.looks;
  constexpr int most = 1000;  // interim analyses; no version plans more than 40
  constexpr double fastest = 1000;
  require(
      looks.planned >= 1 && looks.planned <= most && looks.growth >= 1 && looks.growth <= fastest,
      "the looks of the stop rule are impossible");
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
  require(point.index >= 0 && point.ranks >= 0, "a point's index or ranks is negative");
  check_mesh(point);
  check_lengths(point);
  for (const std::uint32_t outline : point.outline.outline_of_rank) {
    require(outline < point.outline.outlines.size(), "a rank plays outline {} of {}", outline,
            point.outline.outlines.size());
  }
  for (const program::Outline& outline : point.outline.outlines) check_outline(outline);
  check_traces(point);
  for (const RowData& row : point.rows) check_row(point, row);
  check_observed(point);
}

void validate(const CalibrationCurve& curve) {
  for (std::size_t at = 0; at < curve.samples.size(); ++at) {
    const CurveSample& sample = curve.samples[at];
    const bool rises = at == 0 || sample.bytes > curve.samples[at - 1].bytes;
    require(rises && sample.bytes >= 0 && sample.fitted > 0,
            "the samples of a curve are out of order");
  }
}

}  // namespace isoscale::results
