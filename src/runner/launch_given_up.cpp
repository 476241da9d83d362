// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Of a launch, what happens to a point that all ranks or the job have given up.
#include <string>
#include <utility>

#include "base/utc.hpp"
#include "runner/describe_point.hpp"
#include "runner/launch.hpp"

namespace isoscale::runner {

Outcome Launch::go_on(const std::string& why, comm::Communicator world) {
  setting_.world =
      worlds_.emplace_back(std::make_unique<comm::Communicator>(std::move(world))).get();
  put_down(given_up(why));
  turns_->done(*current_, std::nullopt);
  all_ok_ = false;
  return measure_points();
}

void Launch::last_words(const std::string& why) {
  if (current_ && file_) file_->commit(given_up(why));
}

results::PointData Launch::given_up(const std::string& why) const {
  const PlannedPoint& point = plan_.points[static_cast<std::size_t>(current_->index)];
  results::PointData data = describe_point(point);
  data.status = results::PointStatus::failed;
  data.reason = why;
  data.injections = point.injections;
  if (!data.injections.empty()) data.labels.emplace_back("injected");
  data.ended = base::utc_now();
  return data;
}

/// A rank stuck on a GPU, or with one thread for MPI, cannot leave what it is at.
void Launch::may_be_given_up(bool may) {
  Supervisor* const supervisor = setting_.services.supervisor;
  if (supervisor == nullptr) return;
  if (!may || site_.device != "host") return supervisor->set_go_on(nullptr);
  supervisor->set_go_on(
      [self = shared_from_this()](const std::string& why, comm::Communicator world) {
        return self->go_on(why, std::move(world)).exit_code;
      });
}

}  // namespace isoscale::runner
