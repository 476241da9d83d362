// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "executor/host/calls.hpp"
#include "executor/host/communicators.hpp"
#include "executor/host/host.hpp"
#include "executor/resolver.hpp"
#include "program/program.hpp"

/// Prepares the ops of a section: everything that they need is looked up.
namespace isoscale::executor::host {

/// Looks up addresses of slices, and the types in which the host computes them.
class Resolver : public executor::Resolver {
 public:
  using executor::Resolver::Resolver;

  /// Returns the type in which the host computes the slice. Throws base::Error if it does not
  /// compute in the slice's type; `role` names the operand.
  [[nodiscard]] Element element(const program::Slice& slice, std::string_view role) const;
};

struct PreparedOp {
  Call call;
  std::uint32_t index = 0;  ///< in program order
  bool awaited = false;
  std::uint8_t wait_count = 0;
  std::uint32_t wait_begin = 0;  ///< into PreparedSection::waits
};

/// A section that is ready to play: its ops by lane, each lane in program order. A lane is a
/// stream; if streams are folded, all ops are in lane 0, without waits.
struct PreparedSection {
  std::vector<std::vector<PreparedOp>> lanes;
  std::vector<program::Wait> waits;
  std::uint32_t op_count = 0;
  OwnReductions reductions;  ///< used by the collectives
  LeastTimes least_times;    ///< used by the slowed calls

  [[nodiscard]] std::span<const program::Wait> waits_of(const PreparedOp& op) const {
    return std::span{waits}.subspan(op.wait_begin, op.wait_count);
  }
};

enum class Folding : std::uint8_t { folded, as_streamed };

struct PrepareOptions {
  Folding folding = Folding::folded;
  std::uint64_t elements_per_call = 0;  ///< most elements in one MPI call
  program::Faults faults{};
  std::array<std::span<std::byte>, program::max_streams> staging{};  ///< see staging_bytes
};

/// Prepares the ops of a section. Throws base::Error, which names the op, if the host cannot play
/// it or a slice lies outside its buffer.
[[nodiscard]] PreparedSection prepare(const Resolver& resolver, const program::Program& section,
                                      const Communicators& communicators,
                                      const PrepareOptions& options);

}  // namespace isoscale::executor::host
