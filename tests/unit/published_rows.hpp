// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulate/layout.hpp"
#include "simulate/machine.hpp"
#include "workloads/api/workload.hpp"

/// Training runs that were published with their times, and what a machine of a sheet would take.
namespace isoscale::published {

struct Row {
  std::string name;
  int heads = 0, hidden = 0, layers = 0;
  int tp = 1, pp = 1, dp = 1;
  int batch = 0;
  int microbatch = 0;  ///< 0 = not published
  int chunks = 0;      ///< virtual stages of a rank; 0 = not published
  double seconds = 0;  ///< published, of an iteration
};

/// arXiv 2205.05198, tables 3 and 5, the column with full recomputation.
[[nodiscard]] std::vector<Row> recomputation_rows();
/// arXiv 2104.04473, table 1.
[[nodiscard]] std::vector<Row> weak_scaling_rows();

/// What differs from the rows' common settings.
struct Settings {
  std::string recompute = "full";
  std::string sequence_parallel = "off";
};

[[nodiscard]] workloads::Request request_of(const Row& row, int microbatch, int chunks,
                                            const Settings& settings = {});

struct Estimate {
  double seconds = 0;
  double memory = 0;  ///< bytes that live at once on the fullest rank
  int microbatch = 0, chunks = 1;
};

/// The published setting; what was not published is the fastest of microbatches 1, 2, 4 and 8 that
/// fits in memory, interleaved in 2 parts where layers and microbatches divide.
[[nodiscard]] Estimate estimate(const Row& row, const simulate::Machine& machine,
                                const Settings& settings = {});

}  // namespace isoscale::published
