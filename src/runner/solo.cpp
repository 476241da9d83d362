// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/solo.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>

#include "program/added_sections.hpp"
#include "program/solo.hpp"
#include "timeline/median.hpp"
#include "timeline/timeline.hpp"

namespace isoscale::runner {
namespace {

constexpr int fewest_plays = 4, most_plays = 9;
constexpr double share_of_time = 0.1;  // of max_time, for all plays together

}  // namespace

int solo_plays(units::Seconds step, units::Seconds max_time) {
  const double fitting = share_of_time * max_time.value() / std::max(step.value(), 1e-9);
  return static_cast<int>(
      std::clamp(fitting, static_cast<double>(fewest_plays), static_cast<double>(most_plays)));
}

std::vector<units::Nanoseconds> measure_solo(executor::Session& session,
                                             const program::RankProgram& program,
                                             program::Section solo,
                                             const comm::Communicator& active, int plays) {
  const std::vector<std::uint32_t> ops = program::solo_ops(program.step());
  std::vector<std::vector<units::Nanoseconds>> times(ops.size());
  active.barrier();
  for (int play = 0; play < plays; ++play) {
    session.play(solo, executor::Trace::on);
    if (play == 0) continue;
    const auto spans = session.spans();
    if (spans.size() != ops.size()) throw std::logic_error("the solo step has other ops");
    for (std::size_t i = 0; i < ops.size(); ++i) {
      times[i].push_back(spans[i].end - spans[i].start);
    }
  }
  std::vector<units::Nanoseconds> medians(program.step().ops.size());
  for (std::size_t i = 0; i < ops.size(); ++i) medians[ops[i]] = timeline::median(times[i]);
  return medians;
}

void collect_solo(const comm::Communicator& point, const std::vector<units::Nanoseconds>& mine,
                  std::span<const int> traced, results::PointData& data) {
  std::span<const units::Nanoseconds> part{mine};
  if (!std::ranges::binary_search(traced, point.rank())) part = {};
  const auto parts = point.gather(std::as_bytes(part));
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    if (parts[rank].empty()) continue;
    results::SoloTimes& solo = data.solo_times.emplace_back();
    solo.rank = static_cast<int>(rank);
    solo.op.resize(parts[rank].size() / sizeof(units::Nanoseconds));
    std::memcpy(solo.op.data(), parts[rank].data(), parts[rank].size());
  }
}

}  // namespace isoscale::runner
