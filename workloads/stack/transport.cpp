// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/stack/transport.hpp"

#include <algorithm>

#include "workloads/options.hpp"
#include "workloads/stack/options.hpp"

namespace isoscale::workloads::stack {
namespace {

using program::BufferId;
using program::Collective;
using program::CollectiveKind;
using program::Exchange;
using program::Transport;

/// Sums and gathers over the ranks of tp.
bool travels(const Collective& collective) {
  const bool has_kernel = collective.kind == CollectiveKind::all_reduce ||
                          collective.kind == CollectiveKind::all_gather ||
                          collective.kind == CollectiveKind::reduce_scatter;
  return has_kernel && collective.axes == mesh::AxisSet{mesh::Axis::tp};
}

/// What is handed to the next stage, and round the ring of tp.
bool travels(const Exchange& exchange) {
  return std::ranges::all_of(exchange.transfers, [](const program::Transfer& transfer) {
    return transfer.axis == mesh::Axis::tp || transfer.axis == mesh::Axis::pp;
  });
}

/// Lets what travels do so by symmetric memory; the buffers it touches, sorted.
std::vector<BufferId> set_symmetric(program::RankProgram& program) {
  std::vector<BufferId> touched;
  const auto set = [&](program::Program& section) {
    for (program::Op& op : section.ops) {
      if (auto* const collective = std::get_if<Collective>(&op.payload)) {
        if (!travels(*collective)) continue;
        collective->transport = Transport::symmetric;
        touched.push_back(collective->send.buffer);
        touched.push_back(collective->receive.buffer);
      } else if (auto* const exchange = std::get_if<Exchange>(&op.payload)) {
        if (!travels(*exchange)) continue;
        exchange->transport = Transport::symmetric;
        for (const auto& transfer : exchange->transfers) touched.push_back(transfer.slice.buffer);
      }
    }
  };
  set(program.setup);
  for (program::Program& step : program.steps) set(step);
  std::ranges::sort(touched);
  touched.erase(std::ranges::unique(touched).begin(), touched.end());
  return touched;
}

}  // namespace

program::RankProgram with_transport(const Request& request, const ProgramWriter& write) {
  program::RankProgram program = write({});
  const OptionReader options{option_table(), request.options};
  if (!options.is("transport", "symmetric")) return program;
  // Where a buffer lies is decided when it is allocated, and who will send it is known only once
  // the program is written: so it is written twice.
  const std::vector<BufferId> touched = set_symmetric(program);
  if (touched.empty()) return program;
  program = write(touched);
  static_cast<void>(set_symmetric(program));
  return program;
}

}  // namespace isoscale::workloads::stack
