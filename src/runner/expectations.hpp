// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "executor/executor.hpp"
#include "program/program.hpp"
#include "workloads/bench/bench.hpp"

/// Whether memory holds what it must, bit for bit.
namespace isoscale::runner {

/// What was compared on this rank.
struct Comparison {
  std::uint64_t compared = 0, wrong = 0;  ///< elements
  std::string first;                      ///< where the first wrong one is; "" when none is
};

class Expectations {
 public:
  /// Of a mesh of `ranks` ranks; `program` is this rank's.
  Expectations(const program::RankProgram& program, int ranks)
      : buffers_(program.buffers), ranks_(ranks) {}

  /// Reads the slices and compares every element. Throws base::Error when what is expected cannot
  /// be computed exactly.
  [[nodiscard]] Comparison compare(executor::Session& session,
                                   std::span<const workloads::Expectation> expected);
  /// The same of the results of multiplications whose operands product_fills() made.
  [[nodiscard]] Comparison compare(executor::Session& session,
                                   std::span<const program::Gemm> products) const;

 private:
  using Key = std::tuple<program::DType, std::vector<int>, program::Reduction>;
  /// Two periods of what the sources hold, so that any stretch of one can be taken from it.
  [[nodiscard]] const std::vector<std::byte>& table(const workloads::Expectation& expected);

  std::vector<program::Buffer> buffers_;
  int ranks_;
  std::map<Key, std::vector<std::byte>> tables_;
};

}  // namespace isoscale::runner
