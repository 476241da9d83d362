// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "preflight/job_facts.hpp"

/// Healthy jobs on machines of several kinds, and the faults that preflight finds in one of them.
namespace isoscale::preflight {

/// Two nodes of eight H100s: beside each GPU an adapter, and two of storage with two ports each.
[[nodiscard]] JobFacts hgx_job();
/// One node of four L40S without NVLink, whose only adapter is on the first socket.
[[nodiscard]] JobFacts pcie_job();
/// Four nodes of one Grace Hopper.
[[nodiscard]] JobFacts grace_hopper_job();
/// Four nodes of four GB200 in one NVLink domain.
[[nodiscard]] JobFacts gb200_job();
/// Four nodes of two sockets without a GPU.
[[nodiscard]] JobFacts cpu_job();

/// One change to hgx_job(), and all that preflight then warns of or stops at: lines such as
/// "warning ecc-errors|c0|GPU 1 (0000:02:00.0)|3", with the numbers of what was found.
struct Fault {
  std::vector<std::string> found;
  std::function<void(JobFacts&)> plant;
};
[[nodiscard]] const std::vector<Fault>& faults();
/// hgx_job() with every fault.
[[nodiscard]] JobFacts broken_job();

}  // namespace isoscale::preflight
