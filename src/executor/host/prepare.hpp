// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "executor/host/communication.hpp"
#include "executor/host/compute_ops.hpp"
#include "executor/host/host_executor.hpp"
#include "executor/operand_addresses.hpp"
#include "program/match_table.hpp"
#include "program/program.hpp"

/// Prepares the ops of a section for the host: looks up the memory addresses and MPI objects that
/// they use.
namespace isoscale::executor::host {

struct Player;

/// An op that is ready to start. A call may change its own state, so only the thread that executes
/// the op's lane (stream) may make it.
using Call = std::function<void(Player&)>;

struct PreparedOp {
  Call call;
  std::uint32_t index = 0;  ///< number of the op in program order
  bool awaited = false;     ///< an op of another lane waits for this one
  std::uint8_t wait_count = 0;
  std::uint32_t wait_begin = 0;  ///< index of the op's first wait in PreparedSection::waits
};

/// A section (setup or one step) of a program, ready to run. Its ops are divided into lanes, each
/// in program order. There is one lane for each stream; if the streams are folded into one, all ops
/// are in lane 0 and need no waits for other streams.
struct PreparedSection {
  std::vector<std::vector<PreparedOp>> lanes;
  std::vector<program::Wait> waits;
  std::uint32_t op_count = 0;
  OwnReductions reductions;  ///< MPI operations that the collectives use

  [[nodiscard]] std::span<const program::Wait> waits_of(const PreparedOp& op) const {
    return std::span{waits}.subspan(op.wait_begin, op.wait_count);
  }
};

struct PrepareOptions {
  program::Folding folding = program::Folding::folded;
  std::uint64_t elements_per_call = 0;  ///< most elements in one MPI call
  program::Faults faults{};
  /// Memory for copies that MPI needs, by stream; see staging_bytes().
  std::array<std::span<std::byte>, program::max_streams> staging{};
};

/// Prepares the ops of a section. Throws base::Error, which names the op, if the host cannot run
/// it or a slice lies outside its buffer.
[[nodiscard]] PreparedSection prepare(const Resolver& resolver, const program::Program& section,
                                      const Communicators& communicators,
                                      const PrepareOptions& options);

}  // namespace isoscale::executor::host
