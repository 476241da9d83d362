// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/bench_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "machine/nvml.hpp"
#include "units/text.hpp"

namespace isoscale::runner {
namespace {

using results::PointStatus;
using results::RowData;

constexpr double nothing_compared = -1, not_told = -1;

/// The ranks of a row, by name.
std::vector<std::size_t> ranks_of(const workloads::RowSpec& spec, std::size_t all) {
  std::vector<std::size_t> ranks{spec.ranks.begin(), spec.ranks.end()};
  if (!ranks.empty()) return ranks;
  for (std::size_t rank = 0; rank < all; ++rank) ranks.push_back(rank);
  return ranks;
}

const std::vector<double>& times_of(const workloads::RowSpec& spec, const RankReport& report) {
  static const std::vector<double> none;
  if (!spec.stream) return report.plays;
  return *spec.stream < report.stream_times.size() ? report.stream_times[*spec.stream] : none;
}

/// The median; absent without values.
std::optional<double> median_of(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  std::ranges::sort(values);
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

/// The state of the GPUs of a row's ranks.
void note_gpus(std::span<const std::size_t> ranks, std::span<const RankReport> reports,
               RowData& row) {
  std::vector<double> clocks;
  std::optional<std::uint64_t> reasons;
  for (const std::size_t rank : ranks) {
    const GpuState& gpu = reports[rank].gpu;
    if (gpu.sm_clock) clocks.push_back(*gpu.sm_clock);
    if (gpu.throttle_reasons) reasons = reasons.value_or(0) | *gpu.throttle_reasons;
  }
  if (reasons) row.number["throttle_reasons"] = static_cast<double>(*reasons);
  if (clocks.empty()) return;
  row.number["sm_clock_min"] = *std::ranges::min_element(clocks);
  row.number["sm_clock"] = *median_of(std::move(clocks));
}

}  // namespace

GpuState gpu_state_of(std::span<const machine::SampledSeries> sampled) {
  GpuState state;
  for (const machine::SampledSeries& series : sampled) {
    if (series.channel.quantity == "sm_clock") state.sm_clock = median_of(series.value);
    if (series.channel.quantity != "throttle_reasons") continue;
    for (const double bits : series.value) {
      state.throttle_reasons = state.throttle_reasons.value_or(0) |
                               (static_cast<std::uint64_t>(bits) & ~machine::nvml::idle_reason);
    }
  }
  return state;
}

std::vector<double> pack(const RankReport& report) {
  const auto& reasons = report.gpu.throttle_reasons;
  std::vector<double> packed{report.wrong ? static_cast<double>(*report.wrong) : nothing_compared,
                             report.gpu.sm_clock.value_or(not_told),
                             reasons ? static_cast<double>(*reasons) : not_told};
  const auto put = [&](const std::vector<double>& values) {
    packed.push_back(static_cast<double>(values.size()));
    packed.insert(packed.end(), values.begin(), values.end());
  };
  put(report.plays);
  for (const std::vector<double>& times : report.stream_times) put(times);
  return packed;
}

RankReport unpack(std::span<const std::byte> packed) {
  std::vector<double> values(packed.size() / sizeof(double));
  constexpr std::size_t head = 3;
  if (packed.size() < head * sizeof(double)) {
    throw base::Error("a rank reports nothing of a case");
  }
  std::memcpy(values.data(), packed.data(), values.size() * sizeof(double));
  RankReport report;
  if (values.front() != nothing_compared) report.wrong = static_cast<std::uint64_t>(values.front());
  if (values[1] != not_told) report.gpu.sm_clock = values[1];
  if (values[2] != not_told) report.gpu.throttle_reasons = static_cast<std::uint64_t>(values[2]);
  std::span<const double> rest = std::span<const double>{values}.subspan(head);
  const auto get = [&] {
    const auto count = static_cast<std::size_t>(rest.front());
    const auto part = rest.subspan(1, count);
    rest = rest.subspan(1 + count);
    return std::vector<double>{part.begin(), part.end()};
  };
  report.plays = get();
  while (!rest.empty()) report.stream_times.push_back(get());
  return report;
}

RowData row_of(const workloads::RowSpec& spec) {
  return {.text = spec.text, .number = spec.number, .ranks = spec.ranks};
}

RowData row_of(const workloads::RowSpec& spec, PointStatus status, std::string reason) {
  RowData row = row_of(spec);
  row.status = status;
  row.reason = std::move(reason);
  return row;
}

RowData row_of(const workloads::RowSpec& spec, const workloads::Case& one, const CaseRecord& record,
               std::span<const RankReport> reports) {
  RowData row = row_of(spec);
  row.calls = static_cast<std::int64_t>(spec.stream ? one.calls : one.calls * record.times);
  if (!spec.stream) row.call_times = record.call_times;
  row.number["first_call"] = record.first_call;
  if (record.estimate) {
    row.number["estimate"] = record.estimate->value() / static_cast<double>(one.calls);
  }
  if (row.number.contains("flop")) row.text["arithmetic"] = record.arithmetic;
  const auto put_count = [&](const char* key, std::uint64_t count) {
    if (count > 0 && !spec.stream) row.number[key] = static_cast<double>(count);
  };
  put_count("repeated_plays", record.repeated_plays);
  put_count("late_plays", record.late_plays);
  const std::vector<std::size_t> ranks = ranks_of(spec, reports.size());
  std::size_t plays = SIZE_MAX;
  for (const std::size_t rank : ranks) {
    plays = std::min(plays, times_of(spec, reports[rank]).size());
  }
  for (std::size_t play = 0; play < plays; ++play) {
    std::vector<double>& times = row.times.emplace_back();
    for (const std::size_t rank : ranks) times.push_back(times_of(spec, reports[rank])[play]);
  }
  note_gpus(ranks, reports, row);
  note_wrong(spec, reports, row);
  return row;
}

void note_wrong(const workloads::RowSpec& spec, std::span<const RankReport> reports, RowData& row) {
  for (const std::size_t rank : ranks_of(spec, reports.size())) {
    if (const auto wrong = reports[rank].wrong) {
      row.wrong = row.wrong.value_or(0) + static_cast<std::int64_t>(*wrong);
    }
  }
  if (row.wrong.value_or(0) == 0) return;
  row.status = PointStatus::failed;
  row.reason = fmt::format("{} wrong elements", *row.wrong);
}

std::string title_of(const workloads::RowSpec& row) {
  std::string text;
  for (const char* const key : {"op", "kind", "part", "dtype"}) {
    const auto found = row.text.find(key);
    if (found != row.text.end())
      text += fmt::format("{}{}", text.empty() ? "" : " ", found->second);
  }
  const auto bytes = row.number.find("bytes");
  if (bytes != row.number.end() && bytes->second > 0) {
    text += " " + units::format(units::Bytes{static_cast<std::uint64_t>(bytes->second)});
  }
  return text;
}

}  // namespace isoscale::runner
