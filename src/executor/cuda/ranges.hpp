// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "program/program.hpp"

/// NVTX ranges: what a profiler shows of the thread that issues work.
namespace isoscale::executor::cuda {

/// A range that lasts as long as this object. Ranges of a thread nest.
class Range {
 public:
  /// Null: none. The profiler copies the name.
  explicit Range(const char* name);
  ~Range();
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

 private:
  bool is_open_;
};

/// What an op is issued within.
struct OpRange {
  program::Phase phase = program::Phase::setup;
  std::string name{};  ///< "gemm layer 3 mb 0"
};
[[nodiscard]] std::vector<OpRange> ranges_of(const program::Program& section);

/// The ranges of a section while it is issued: one for each op, in one for each run of ops of the
/// same phase.
class SectionRanges {
 public:
  /// Empty `ops`: none. They outlive this object.
  explicit SectionRanges(std::span<const OpRange> ops) : ops_(ops) {}

  /// To be held while op number `index` is issued; ops come in order.
  [[nodiscard]] Range op(std::size_t index);

 private:
  std::span<const OpRange> ops_;
  std::optional<program::Phase> current_;
  std::optional<Range> phase_;
};

}  // namespace isoscale::executor::cuda
