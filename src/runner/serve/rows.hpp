// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "results/run_data.hpp"
#include "workloads/serve/serve.hpp"
#include "workloads/serve/trials.hpp"

/// What a trial leaves in the run file; pure.
namespace isoscale::runner::serve {

/// One rate, played.
struct TrialResult {
  double rate = 0;  ///< asked for, requests a second
  std::vector<workloads::serve::Outcome> outcomes{};
  workloads::serve::Summary summary{};
  bool is_saturated = false;
};

/// What all trials of a point have in common.
struct Offer {
  const workloads::Request& request;
  const workloads::serve::Setting& setting;
};

/// The row of the rate: offered and achieved, latencies, use, backlog. What is undefined is absent.
[[nodiscard]] results::RowData rate_row(const Offer& offer, const TrialResult& trial);
/// One for each replica: its requests, batches and busy time.
[[nodiscard]] std::vector<results::RowData> replica_rows(const TrialResult& trial);
/// One for each request, the first `most_request_rows` of the trial.
[[nodiscard]] std::vector<results::RowData> request_rows(const TrialResult& trial);
inline constexpr std::size_t most_request_rows = 1000;

}  // namespace isoscale::runner::serve
