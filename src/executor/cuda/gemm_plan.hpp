// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cublasLt.h>

#include <cstddef>
#include <string>

#include "executor/cuda/gemm_problem.hpp"
#include "executor/cuda/handles.hpp"

namespace isoscale::executor::cuda {

/// cuBLASLt's descriptions of one problem. Where the operands lie is not part of it, and neither is
/// by what they are scaled.
class GemmPlan {
 public:
  explicit GemmPlan(const GemmProblem& problem);

  [[nodiscard]] cublasLtMatmulDesc_t operation() const { return operation_.get(); }
  [[nodiscard]] cublasLtMatrixLayout_t first() const { return first_.get(); }
  [[nodiscard]] cublasLtMatrixLayout_t second() const { return second_.get(); }
  [[nodiscard]] cublasLtMatrixLayout_t c() const { return c_.get(); }
  [[nodiscard]] cublasLtMatrixLayout_t d() const { return d_.get(); }

 private:
  MatmulDescription operation_;
  MatrixLayout first_, second_, c_, d_;
};

/// Throws base::Error that names the shape when the library cannot multiply it with an algorithm:
/// one that was given, and is not this library's.
void require_algorithm(cublasLtHandle_t library, const GemmPlan& plan,
                       const cublasLtMatmulAlgo_t& algorithm, const std::string& shape);

/// One multiplication, ready to start.
struct GemmCall {
  cublasLtHandle_t library = nullptr;
  const GemmPlan* plan = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
  GemmProblem problem;
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;
};
/// Starts it on `stream`. Throws CublasError.
void launch(const GemmCall& call, cudaStream_t stream);

}  // namespace isoscale::executor::cuda
