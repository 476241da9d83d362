// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/bench_rows.hpp"

#include <fmt/format.h>

#include <cstring>
#include <span>
#include <utility>

#include "units/text.hpp"

namespace isoscale::runner {
namespace {

using results::PointStatus;
using results::RowData;

/// As it is gathered: wrong elements (-1 = not compared), then plays.
constexpr std::size_t places_before_plays = 1;

}  // namespace

std::string title_of(const workloads::RowSpec& row) {
  const auto find = [&](const char* key) {
    const auto found = row.text.find(key);
    return found == row.text.end() ? std::string{} : " " + found->second;
  };
  std::string text = find("op") + find("kind") + find("part") + find("dtype");
  const auto bytes = row.number.find("bytes");
  if (bytes != row.number.end() && bytes->second > 0) {
    text += " " + units::format(units::Bytes{static_cast<std::uint64_t>(bytes->second)});
  }
  return text.empty() ? text : text.substr(1);
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

std::vector<RankRecord> gather_records(const comm::Communicator& point, const RankRecord& mine) {
  std::vector<double> values{mine.wrong.value_or(-1)};
  values.insert(values.end(), mine.plays.begin(), mine.plays.end());
  std::vector<RankRecord> of_rank;
  for (const auto& part : point.gather(std::as_bytes(std::span{values}))) {
    values.resize(part.size() / sizeof(double));
    std::memcpy(values.data(), part.data(), part.size());
    RankRecord& record = of_rank.emplace_back();
    if (values.front() >= 0) record.wrong = values.front();
    record.plays.assign(values.begin() + places_before_plays, values.end());
  }
  return of_rank;
}

RowData measured_row(const workloads::RowSpec& spec, const workloads::Case& one,
                     const CaseRecord& record, const std::vector<RankRecord>& of_rank) {
  RowData row = row_of(spec);
  row.calls = static_cast<std::int64_t>(one.calls * record.times);
  row.call_times = record.call_times;
  row.number["first_call"] = record.first_call;
  std::vector<std::size_t> ranks{spec.ranks.begin(), spec.ranks.end()};
  if (ranks.empty()) {
    for (std::size_t rank = 0; rank < of_rank.size(); ++rank) ranks.push_back(rank);
  }
  row.times.assign(record.plays.size(), {});
  for (const std::size_t rank : ranks) {
    const RankRecord& mine = of_rank[rank];
    for (std::size_t play = 0; play < record.plays.size(); ++play) {
      row.times[play].push_back(mine.plays[play]);
    }
    if (mine.wrong) row.wrong = row.wrong.value_or(0) + static_cast<std::int64_t>(*mine.wrong);
  }
  if (row.wrong.value_or(0) > 0) {
    row.status = PointStatus::failed;
    row.reason = fmt::format("{} wrong elements", *row.wrong);
  }
  return row;
}

}  // namespace isoscale::runner
