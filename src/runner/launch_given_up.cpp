// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Of a launch, what happens to a point that all ranks or the job have given up.
#include <string>
#include <utility>

#include "base/text.hpp"
#include "runner/describe_point.hpp"
#include "runner/launch.hpp"

namespace isoscale::runner {

Outcome Launch::go_on(const std::string& why, comm::Communicator world) {
  setting_.world =
      worlds_.emplace_back(std::make_unique<comm::Communicator>(std::move(world))).get();
  put_down(as_failed(current_->index, why));
  turns_->done(*current_, std::nullopt);
  all_ok_ = false;
  return measure_points();
}

void Launch::last_words(const std::string& why) {
  if (!current_ || !file_ || last_in_file_ == current_->index) return;
  file_->commit(as_failed(current_->index, why));
}

results::PointData Launch::as_failed(int index, const std::string& why) const {
  const PlannedPoint& point = plan_.points[static_cast<std::size_t>(index)];
  results::PointData data = describe_point(point);
  data.status = results::PointStatus::failed;
  data.reason = why;
  data.injections = point.injections;
  if (!data.injections.empty()) data.labels.emplace_back("injected");
  data.ended = base::utc_now();
  return data;
}

/// A rank stuck on a GPU, or with one thread for MPI, cannot leave what it is at.
Supervisor::GoOn Launch::way_on() {
  if (site_.device != "host") return nullptr;
  return [self = shared_from_this()](const std::string& why, comm::Communicator world) {
    return self->go_on(why, std::move(world)).exit_code;
  };
}

}  // namespace isoscale::runner
