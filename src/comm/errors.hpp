// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <exception>
#include <string>

#include "base/error.hpp"
#include "comm/communicator.hpp"

/// Turns errors into sentences and reports them to all ranks.
namespace isoscale::comm {

/// Returns a sentence that describes an error. For std::bad_alloc, which has no details, the
/// sentence says how much memory this process holds and how much is free.
[[nodiscard]] std::string problem_of(const std::exception& error);

/// Calls `work` and returns a description of the exception that it throws; "" if it throws none.
template <class Work>
[[nodiscard]] std::string problem_in(const Work& work) {
  try {
    work();
  } catch (const std::exception& error) {
    return problem_of(error);
  }
  return "";
}

/// Runs `work` on rank 0. If it throws an error with the exit code `usage`, every rank throws
/// base::UsageError; for any other error, every rank throws base::AgreedError.
template <class Work>
void on_root(const Communicator& world, const Work& work) {
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

}  // namespace isoscale::comm
