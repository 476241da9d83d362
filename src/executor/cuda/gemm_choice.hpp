// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cublasLt.h>

#include <map>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "executor/cuda/gemm.hpp"
#include "executor/executor.hpp"

namespace isoscale::executor::cuda {

/// Converts cuBLASLt's description of an algorithm to text, and back. Throws base::Error if the
/// text is not such a description.
[[nodiscard]] std::string to_text(const cublasLtMatmulAlgo_t& algorithm);
[[nodiscard]] cublasLtMatmulAlgo_t algorithm_of(std::string_view text);

/// Returns the arithmetic of an algorithm as cuBLASLt reports it: "tensor cores, tf32 inputs, f32
/// sums", or "FMA, f32 inputs, f32 sums" if tf32 is allowed and not used; "" if it reports nothing.
[[nodiscard]] std::string arithmetic_of(const cublasLtMatmulAlgo_t& algorithm);

/// Converts choices to lines of text, which can be sent to other ranks, and back. Throws
/// base::Error if the text is invalid.
[[nodiscard]] std::string to_lines(std::span<const GemmChoice> choices);
[[nodiscard]] std::vector<GemmChoice> choices_of(std::string_view lines);

/// The algorithms chosen for problems. All sessions of an executor share one object, so that each
/// problem is decided once.
class GemmChoices {
 public:
  /// The choices in `known` are used for the problems that they name. `library` names GPU and
  /// cuBLASLt.
  GemmChoices(std::string library, std::span<const GemmChoice> known);

  /// Collective over `point`: chooses an algorithm for every problem of its ranks that has none
  /// yet. For each problem, one rank times the algorithms of the library's heuristic on the
  /// problem's own operands (filled with random values) and tells the others. Throws AgreedError if
  /// a rank has a problem that no algorithm solves.
  void decide(std::span<const GemmProblem> problems, const comm::Communicator& point);
  /// Returns the choice for a problem that was given to decide().
  [[nodiscard]] const GemmChoice& of(const GemmProblem& problem) const;

  [[nodiscard]] cublasLtHandle_t handle() const { return handle_.get(); }
  /// Returns the number of problems that were timed because the given algorithms did not cover
  /// them.
  [[nodiscard]] int chosen_anew() const { return chosen_anew_; }

 private:
  CublasLt handle_;
  std::string library_;
  std::map<std::string, GemmChoice, std::less<>> choices_;  ///< by shape
  bool was_given_any_;
  int chosen_anew_ = 0;
};

}  // namespace isoscale::executor::cuda
