// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "executor/executor.hpp"

namespace isoscale::executor::cuda {

/// While it lives, NCCL is told by its environment which algorithm and protocol to use: it looks
/// there when a communicator is made and, for its messages, when it is used. What the user has set
/// comes back afterwards. Changes the environment of the process: for the one thread of the host.
class CollectiveChoice {
 public:
  /// Throws Unsupported when the options name what there is not, or what NCCL would silently not
  /// use for some collective of `set`.
  CollectiveChoice(const SessionOptions& options, const program::ProgramSet& set);
  ~CollectiveChoice();
  CollectiveChoice(const CollectiveChoice&) = delete;
  CollectiveChoice& operator=(const CollectiveChoice&) = delete;

 private:
  void set(const char* variable, const std::string& value);

  std::vector<std::pair<const char*, std::optional<std::string>>> before_;
};

/// Whether the options choose for NCCL.
[[nodiscard]] bool chooses(const SessionOptions& options);

}  // namespace isoscale::executor::cuda
