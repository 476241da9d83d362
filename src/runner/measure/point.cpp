// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/measure/point.hpp"

#include <utility>

#include "comm/errors.hpp"

namespace isoscale::runner::measure {

std::string PointContext::gpu_uuid() const {
  const auto& known = executor.describe().facts_text;
  const auto uuid = known.find("gpu_uuid");
  return uuid == known.end() ? "" : uuid->second;
}

bool PointRanks::agreed(const std::string& problem, results::PointData& data) const {
  const comm::Vote vote = comm::all_ok(active, problem);
  if (!vote.ok) end_as(results::PointStatus::failed, vote.why, data);
  return vote.ok;
}

PointRanks::Prepared PointRanks::prepare(executor::Executor& executor,
                                         const program::ProgramSet& set,
                                         const comm::Communicator& ranks,
                                         program::SessionOptions options,
                                         results::PointData& data) const {
  options.faults = faults;
  Prepared prepared;
  const std::string problem = comm::problem_in([&] {
    try {
      prepared.session = executor.prepare(set, ranks, options);
    } catch (const executor::Unsupported& error) {
      prepared.unsupported = error.what();
    }
  });
  if (!agreed(problem, data)) return {};
  const comm::Vote vote = comm::all_ok(active, prepared.unsupported);
  if (vote.ok) return prepared;
  return {.unsupported = prepared.unsupported.empty() ? vote.why : prepared.unsupported};
}

void end_as(results::PointStatus status, std::string reason, results::PointData& data) {
  data.status = status;
  data.reason = std::move(reason);
}

}  // namespace isoscale::runner::measure
