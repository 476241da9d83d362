// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/measure/point_context.hpp"

#include <utility>

namespace isoscale::runner::measure {

std::string PointContext::gpu_uuid() const {
  const auto& known = executor.describe().facts_text;
  const auto uuid = known.find("gpu_uuid");
  return uuid == known.end() ? "" : uuid->second;
}

void end_as(results::PointStatus status, std::string reason, results::PointData& data) {
  data.status = status;
  data.reason = std::move(reason);
}

bool MeasuredPoint::agreed(const std::string& problem) const {
  const comm::Vote vote = comm::all_ok(active, problem);
  if (!vote.ok) end_as(results::PointStatus::failed, vote.why, data);
  return vote.ok;
}

MeasuredPoint::Prepared MeasuredPoint::prepare(const program::ProgramSet& set,
                                               const comm::Communicator& ranks,
                                               program::SessionOptions options) const {
  options.faults = faults;
  Prepared prepared;
  const std::string problem = comm::problem_in([&] {
    try {
      prepared.session = context.executor.prepare(set, ranks, options);
    } catch (const executor::Unsupported& error) {
      prepared.unsupported = error.what();
    }
  });
  if (!agreed(problem)) return {};
  const comm::Vote vote = comm::all_ok(active, prepared.unsupported);
  if (vote.ok) return prepared;
  return {.unsupported = prepared.unsupported.empty() ? vote.why : prepared.unsupported};
}

}  // namespace isoscale::runner::measure
