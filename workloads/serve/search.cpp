// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/serve/search.hpp"

#include <cmath>

namespace isoscale::workloads::serve {

void RateSearch::tell(Outcome outcome) {
  if (!next_) return;
  (outcome == Outcome::sustained ? low_ : high_) = *next_;
  ++trials_;
  if (!high_) {
    next_ = 2 * *low_;
  } else if (!low_) {
    next_ = *high_ / 2;
  } else {
    next_ = std::sqrt(*low_ * *high_);
  }
  const bool is_found = low_ && high_ && *high_ <= resolution * *low_;
  if (is_found || trials_ >= most_trials) next_.reset();
}

}  // namespace isoscale::workloads::serve
