// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "config/run_config.hpp"
#include "executor/executor.hpp"
#include "machine/facts.hpp"
#include "results/run_data.hpp"
#include "runner/plan.hpp"

/// What the ranks of a launch know of their machines, brought together.
namespace isoscale::runner {

/// Collective: every rank's facts, on all ranks, by rank.
[[nodiscard]] std::vector<machine::MachineFacts> gather_facts(const comm::Communicator& world);

/// Whether some ranks must share a core: no assignment gives each of them a physical core of those
/// it is bound to, or a node has more of them than physical cores, or than CPUs that a control
/// group leaves them. What is unknown says nothing. `ranks` index `facts` and `node_of_rank`.
[[nodiscard]] bool share_cores(std::span<const int> ranks,
                               std::span<const machine::MachineFacts> facts,
                               std::span<const int> node_of_rank);

/// Collective; the same on all ranks.
[[nodiscard]] Site make_site(const comm::Communicator& world, const executor::Description& device,
                             std::span<const machine::MachineFacts> facts);

/// Where a plan for `config` is for, on `site` and beyond. --ranks-per-node says which ranks share
/// a node; without it nobody knows for more ranks than there are. Nodes that are
/// not these are taken to have the memory of the least of these.
[[nodiscard]] Site planned_site(Site site, const config::RunConfig& config);

/// What a rank computes and communicates with; may differ from node to node.
struct RankSoftware {
  std::string device;                            ///< executor::Description::detail
  std::string mpi_library;                       ///< first line of its version
  std::map<std::string, std::string> text = {};  ///< executor::Description::facts_text
  std::map<std::string, double> number = {};     ///< executor::Description::facts_number
};
/// What a rank says of itself as text that software_from_text() reads. Numbers that are not finite
/// are left out.
[[nodiscard]] std::string to_text(const RankSoftware& software);
[[nodiscard]] RankSoftware software_from_text(const std::string& text);

/// Collective: every rank's, by rank, on rank 0; empty elsewhere.
[[nodiscard]] std::vector<RankSoftware> gather_software(const comm::Communicator& world,
                                                        const executor::Description& device);

/// All three by rank. What the machine says of itself goes before what a device says under the same
/// key.
[[nodiscard]] std::vector<results::RankFacts> rank_facts(
    std::span<const machine::MachineFacts> facts, std::span<const RankSoftware> software,
    std::span<const int> node_of_rank);

}  // namespace isoscale::runner
