// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "results/run_data.hpp"

/// What an executor chose and made for a point, as columns, the form that the file has it in.
namespace isoscale::results {

/// One row per shape that was multiplied.
struct GemmTable {
  std::vector<std::string> shape, algorithm;
  std::vector<std::int64_t> workspace;
  std::vector<double> time;
  std::vector<std::int32_t> candidates;
  std::vector<std::string> arithmetic;  ///< none before schema 1.7
};
[[nodiscard]] GemmTable to_table(const std::vector<GemmChoice>& choices);
/// Throws base::Error when the columns differ in length.
[[nodiscard]] std::vector<GemmChoice> to_choices(const GemmTable& table);

/// All choices of a run, each shape once, by the point that chose it first. Throws base::UsageError
/// that begins with `file` when there are none.
[[nodiscard]] std::vector<GemmChoice> choices_of_run(const RunData& run, const std::string& file);

/// One row per communicator.
struct CommunicatorTable {
  std::vector<std::string> name;
  std::vector<std::int32_t> ranks;
  std::vector<double> creation, first_call;
};
[[nodiscard]] CommunicatorTable to_table(const std::vector<CommunicatorTime>& times);
/// Throws base::Error when the columns differ in length.
[[nodiscard]] std::vector<CommunicatorTime> to_communicators(const CommunicatorTable& table);

}  // namespace isoscale::results
