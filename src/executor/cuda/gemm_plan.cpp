// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/gemm_plan.hpp"

#include <fmt/format.h>

#include "executor/cuda/check.hpp"

namespace isoscale::executor::cuda {
namespace {

template <class Value>
void set(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t attribute, Value value) {
  check(cublasLtMatmulDescSetAttribute(description, attribute, &value, sizeof value));
}

template <class Value>
void set(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute, Value value) {
  check(cublasLtMatrixLayoutSetAttribute(layout, attribute, &value, sizeof value));
}

MatrixLayout layout_of(const Operand& operand, std::uint64_t batch) {
  cublasLtMatrixLayout_t layout = nullptr;
  check(cublasLtMatrixLayoutCreate(&layout, cuda_type(operand.type), operand.rows, operand.columns,
                                   static_cast<std::int64_t>(operand.leading)));
  MatrixLayout result{layout};
  if (batch > 1) {
    set(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<std::int32_t>(batch));
    set(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
        static_cast<std::int64_t>(operand.batch_stride));
  }
  return result;
}

MatmulDescription operation_of(const GemmProblem& problem) {
  cublasLtMatmulDesc_t operation = nullptr;
  check(cublasLtMatmulDescCreate(&operation, compute_type(problem), scale_type(problem)));
  MatmulDescription result{operation};
  set(operation, CUBLASLT_MATMUL_DESC_TRANSA, problem.transpose_first);
  set(operation, CUBLASLT_MATMUL_DESC_TRANSB, problem.transpose_second);
  if (problem.is_fp8()) {
    const bool is_fast = problem.accumulation == program::Accumulation::fast;
    set(operation, CUBLASLT_MATMUL_DESC_FAST_ACCUM, static_cast<std::int8_t>(is_fast ? 1 : 0));
  }
  return result;
}

}  // namespace

GemmPlan::GemmPlan(const GemmProblem& problem)
    : operation_(operation_of(problem)),
      first_(layout_of(problem.first, problem.batch)),
      second_(layout_of(problem.second, problem.batch)),
      c_(layout_of(problem.c, problem.batch)),
      d_(layout_of(problem.d, problem.batch)) {}

void require_algorithm(cublasLtHandle_t library, const GemmPlan& plan,
                       const cublasLtMatmulAlgo_t& algorithm, const std::string& shape) {
  cublasLtMatmulHeuristicResult_t result{};
  const cublasStatus_t status =
      cublasLtMatmulAlgoCheck(library, plan.operation(), plan.first(), plan.second(), plan.c(),
                              plan.d(), &algorithm, &result);
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw base::Error(
      fmt::format("cuBLASLt refuses the algorithm that was given for the GEMM {} ({}): run without "
                  "--gemm-algorithms",
                  shape, cublasLtGetStatusName(status)));
}

void launch(const GemmCall& call, cudaStream_t stream) {
  const GemmProblem& p = call.problem;
  if (p.m == 0 || p.n == 0 || p.batch == 0) return;
  const GemmPlan& plan = *call.plan;
  if (p.is_fp8()) {
    set(plan.operation(), CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, p.descale_first);
    set(plan.operation(), CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, p.descale_second);
  }
  const auto alpha = static_cast<float>(p.alpha), beta = static_cast<float>(p.beta);
  const bool in_f64 = scale_type(p) == CUDA_R_64F;
  check(cublasLtMatmul(
      call.library, plan.operation(), in_f64 ? static_cast<const void*>(&p.alpha) : &alpha,
      p.first.data, plan.first(), p.second.data, plan.second(),
      in_f64 ? static_cast<const void*>(&p.beta) : &beta, p.c.data, plan.c(), p.d.data, plan.d(),
      &call.algorithm, call.workspace, call.workspace_bytes, stream));
}

}  // namespace isoscale::executor::cuda
