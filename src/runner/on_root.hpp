// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

#include "base/error.hpp"
#include "comm/communicator.hpp"
#include "runner/problem.hpp"

namespace isoscale::runner {

/// Runs `work` on rank 0 and throws its base::UsageError, or a base::AgreedError, on every rank.
template <class Work>
void on_root(const comm::Communicator& world, const Work& work) {
  std::string problem;
  std::int64_t code = 0;
  if (world.rank() == 0) {
    try {
      work();
    } catch (const base::Error& error) {
      problem = error.what();
      code = static_cast<std::int64_t>(error.exit_code());
    } catch (const std::exception& error) {
      problem = problem_of(error);
      code = static_cast<std::int64_t>(base::ExitCode::failed);
    }
  }
  code = world.broadcast(code);
  if (code == 0) return;
  problem = world.broadcast(problem);
  if (code == static_cast<std::int64_t>(base::ExitCode::usage)) throw base::UsageError(problem);
  throw base::AgreedError(problem);
}

}  // namespace isoscale::runner
