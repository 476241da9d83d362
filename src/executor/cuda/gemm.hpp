// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cublasLt.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "comm/communicator.hpp"
#include "executor/cuda/errors_and_handles.hpp"
#include "executor/executor.hpp"
#include "executor/operand_addresses.hpp"
#include "program/op.hpp"

/// Describes matrix multiplications in the terms of cuBLASLt, and chooses their algorithms.
namespace isoscale::executor::cuda {

/// An operand of a GEMM as cuBLASLt describes it: column-major, so that a row-major matrix of the
/// program is described as its transpose. Strides are in elements.
struct Operand {
  program::DType type = program::DType::f32;
  std::uint64_t rows = 0, columns = 0;  ///< extents of the column-major matrix
  std::uint64_t leading = 0;            ///< stride from one column to the next
  std::uint64_t batch_stride = 0;
  std::byte* data = nullptr;

  /// Returns the largest power of two up to 256 that divides the address.
  [[nodiscard]] std::uint32_t alignment() const;
  /// Returns the length, in elements, of the memory that `batch` such matrices span, gaps included.
  [[nodiscard]] std::uint64_t extent(std::uint64_t batch) const;
};

/// Tells which matrix is C in D = alpha * A * B + beta * C. none: C is not read; in_place: C is D;
/// distinct: C is a matrix other than D.
enum class Addend : std::uint8_t { none, in_place, distinct };

/// A GEMM as cuBLASLt computes it. A program's row-major D = op(A) * op(B) is the column-major D^T
/// = op(B)^T * op(A)^T. Therefore `first` is the program's B, `second` is its A, and m and n are
/// swapped.
struct GemmProblem {
  std::uint64_t m = 0, n = 0, k = 0, batch = 1;  ///< D is m x n, column-major
  cublasOperation_t transpose_first = CUBLAS_OP_N, transpose_second = CUBLAS_OP_N;
  program::ComputeMode mode = program::ComputeMode::native;
  program::Accumulation accumulation = program::Accumulation::split;  ///< fp8 only
  Addend addend = Addend::none;
  Operand first{}, second{}, c{}, d{};
  double alpha = 1, beta = 0;
  float *descale_first = nullptr, *descale_second = nullptr;  ///< in device memory; fp8 only

  [[nodiscard]] bool is_fp8() const;
  /// Returns a text with all properties on which the choice of an algorithm depends; problems with
  /// equal texts can use the same algorithm. `library` names the GPU and the cuBLASLt version.
  [[nodiscard]] std::string key(const std::string& library) const;
};

/// Returns the problem that cuBLASLt solves for a GEMM. Throws base::Error if cuBLASLt does not
/// support the GEMM, or if an operand is not in GPU memory.
[[nodiscard]] GemmProblem gemm_problem(const Resolver& resolver, const program::Gemm& op);

[[nodiscard]] cublasComputeType_t compute_type(const GemmProblem& problem);
/// Returns the type in which cuBLASLt takes alpha and beta.
[[nodiscard]] cudaDataType_t scale_type(const GemmProblem& problem);

/// cuBLASLt's descriptions of one problem. They do not hold the addresses of the operands; launch()
/// sets the addresses of fp8 scales anew for each call.
struct GemmPlan {
  explicit GemmPlan(const GemmProblem& problem);

  MatmulDescription operation;
  MatrixLayout first, second, c, d;
};

/// Throws base::Error, which names the shape, if the library cannot run the choice's algorithm with
/// its workspace, for example because the user gave an algorithm of another version.
void require_algorithm(cublasLtHandle_t library, const GemmPlan& plan, const GemmChoice& choice);

/// One multiplication, ready to start.
struct GemmCall {
  cublasLtHandle_t library = nullptr;
  const GemmPlan* plan = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
  GemmProblem problem;
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;
};
/// Starts the GEMM on `stream`. Throws CublasError.
void launch(const GemmCall& call, cudaStream_t stream);

/// Converts cuBLASLt's description of an algorithm to text, and back. Throws base::Error if the
/// text is not such a description.
[[nodiscard]] std::string to_text(const cublasLtMatmulAlgo_t& algorithm);
[[nodiscard]] cublasLtMatmulAlgo_t algorithm_of(std::string_view text);

/// Returns the arithmetic of an algorithm as cuBLASLt reports it: "tensor cores, tf32 inputs, f32
/// sums", or "FMA, f32 inputs, f32 sums" for f32 without tensor cores; "" if it reports nothing.
[[nodiscard]] std::string arithmetic_of(const cublasLtMatmulAlgo_t& algorithm);

/// The cuBLASLt algorithms chosen for GEMM problems. All sessions of an executor share one object,
/// so that each problem is decided once.
class GemmChoices {
 public:
  /// `known` holds choices made earlier: each is used for the problem whose key() equals the
  /// choice's `shape`. `library` names the GPU and the cuBLASLt version.
  GemmChoices(std::string library, std::span<const GemmChoice> known);

  /// Collective over `point`: chooses the same algorithm on all ranks for every problem of theirs.
  /// The lowest rank that knows an algorithm from an earlier call tells it to the others. If none
  /// does, the lowest rank with the problem times the algorithms of the library's heuristic on the
  /// problem's own operands (filled with random values). Throws AgreedError if a rank has a problem
  /// that no algorithm solves. Returns the number of problems for which neither `known` nor an
  /// earlier call had a choice; 0 if `known` was empty.
  int decide(std::span<const GemmProblem> problems, const comm::Communicator& point);
  /// Returns the choice for a problem that was given to decide().
  [[nodiscard]] const GemmChoice& of(const GemmProblem& problem) const;

  [[nodiscard]] cublasLtHandle_t handle() const { return handle_.get(); }

 private:
  CublasLt handle_;
  std::string library_;
  std::map<std::string, GemmChoice, std::less<>> choices_;  ///< by GemmProblem::key()
  bool was_given_any_;
};

}  // namespace isoscale::executor::cuda
