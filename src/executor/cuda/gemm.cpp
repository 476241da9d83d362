// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/gemm.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "executor/cuda/memory.hpp"
#include "executor/op_arguments.hpp"

namespace isoscale::executor::cuda {
namespace {

using program::DType;

cudaDataType_t cuda_type(DType type) {
  // The types are in the order of the enumerators of DType.
  static_assert(DType::e5m2 == DType{5});
  constexpr std::array types{CUDA_R_64F,  CUDA_R_32F,     CUDA_R_16F,
                             CUDA_R_16BF, CUDA_R_8F_E4M3, CUDA_R_8F_E5M2};
  const auto index = static_cast<std::size_t>(type);
  if (index < types.size()) return types[index];
  throw base::Error(fmt::format("cuBLASLt does not multiply {}", program::name(type)));
}

bool is_fp8(DType type) { return type == DType::e4m3 || type == DType::e5m2; }

/// Returns the operand for a row-major matrix of rows x columns: a column-major matrix of columns x
/// rows.
Operand operand(const MatrixAt& at, std::uint64_t rows, std::uint64_t columns, const char* role) {
  const std::uint64_t least = std::max<std::uint64_t>(columns, 1);
  const std::uint64_t stride = rows <= 1 ? std::max(at.row_stride, least) : at.row_stride;
  if (stride < least) {
    throw base::Error(fmt::format("{} with rows of {} elements has a row stride of {}", role,
                                  columns, at.row_stride));
  }
  return {.type = at.type,
          .rows = columns,
          .columns = rows,
          .leading = stride,
          .batch_stride = at.batch_stride,
          .data = at.data};
}

/// Throws base::Error if cuBLASLt does not support the types of the problem or, for fp8, its
/// transposes, sizes or strides. The rules for fp8 are those of Ada and Hopper GPUs.
void require_types(const GemmProblem& problem) {
  const DType a = problem.second.type, b = problem.first.type, d = problem.d.type;
  const auto refuse = [&](const char* why) {
    throw base::Error(fmt::format("a GEMM of {} and {} to {}: {}", program::name(a),
                                  program::name(b), program::name(d), why));
  };
  const bool wide_or_same = d == a || d == DType::f32;
  if (problem.is_fp8()) {
    if (!is_fp8(a) || !is_fp8(b)) refuse("both operands must be fp8");
    if (a == DType::e5m2 && b == DType::e5m2) refuse("not both operands can be e5m2");
    if (d != DType::bf16 && d != DType::f16 && d != DType::f32) refuse("no such result");
    if (problem.transpose_first != CUBLAS_OP_T || problem.transpose_second != CUBLAS_OP_N) {
      refuse("fp8 needs A as it is and B transposed (k contiguous in both)");
    }
    constexpr std::uint64_t unit = 16;
    for (const std::uint64_t size : {problem.m, problem.n, problem.k, problem.first.leading,
                                     problem.second.leading, problem.d.leading}) {
      if (size % unit != 0) refuse("fp8 needs sizes and strides that are multiples of 16");
    }
  } else if (a != b || !wide_or_same || (a == DType::f64) != (d == DType::f64)) {
    refuse("operands must be of one type, and the result of that type or f32");
  }
  if (problem.addend != Addend::none && problem.c.type != d) refuse("C and D must be of one type");
  if (problem.mode == program::ComputeMode::tf32 && a != DType::f32) {
    refuse("tf32 is a way to multiply f32");
  }
}

char letter(cublasOperation_t operation) { return operation == CUBLAS_OP_N ? 'N' : 'T'; }

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

/// Sets the addresses of the factors that an fp8 GEMM multiplies its operands by; null = 1.
void set_scales(cublasLtMatmulDesc_t operation, const GemmProblem& problem) {
  set(operation, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, problem.descale_first);
  set(operation, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, problem.descale_second);
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
    // Scales are set here, since an algorithm offered for a GEMM without scales may not allow them.
    set_scales(operation, problem);
  }
  return result;
}

}  // namespace

std::uint32_t Operand::alignment() const {
  std::uint32_t alignment = 256;
  while (reinterpret_cast<std::uintptr_t>(data) % alignment != 0) alignment /= 2;
  return alignment;
}

std::uint64_t Operand::extent(std::uint64_t batch) const {
  if (rows == 0 || columns == 0 || batch == 0) return 0;
  return (batch - 1) * batch_stride + (columns - 1) * leading + rows;
}

bool GemmProblem::is_fp8() const { return cuda::is_fp8(first.type) || cuda::is_fp8(second.type); }

std::string GemmProblem::key(const std::string& library) const {
  // The text describes the program's row-major GEMM: its A is `second`, its m is `n`, and its n is
  // `m`.
  const char* const addends[] = {"", " + C in place", " + C"};
  const std::uint64_t leading_c = addend == Addend::none ? 0 : c.leading;
  const std::uint64_t batch_c = addend == Addend::none ? 0 : c.batch_stride;
  return fmt::format(
      "m={} n={} k={} batch={} {}{} {}*{}->{}{}{}{}{} rows={},{},{},{} batches={},{},{},{} "
      "aligned={},{},{},{} on {}",
      n, m, k, batch, letter(transpose_second), letter(transpose_first), program::name(second.type),
      program::name(first.type), program::name(d.type),
      mode == program::ComputeMode::tf32 ? " by tf32" : "",
      is_fp8() && accumulation == program::Accumulation::fast ? " added fast" : "",
      is_fp8() && (descale_first == nullptr || descale_second == nullptr) ? " unscaled" : "",
      addends[static_cast<std::size_t>(addend)], second.leading, first.leading, leading_c,
      d.leading, second.batch_stride, first.batch_stride, batch_c, d.batch_stride,
      second.alignment(), first.alignment(), addend == Addend::none ? 0 : c.alignment(),
      d.alignment(), library);
}

GemmProblem gemm_problem(const Resolver& resolver, const program::Gemm& op) {
  using program::Gemm;
  const auto at =
      arguments_of(resolver, op, [&](const TypedOperand& operand, const program::Slice& slice) {
        require_on_device(resolver, slice, operand.name);
      });
  const bool a_flips = op.transpose_a == program::Transpose::yes;
  const bool b_flips = op.transpose_b == program::Transpose::yes;
  const auto scale = [&](program::BufferId Gemm::*member) {
    return reinterpret_cast<float*>(at[member].data);
  };
  GemmProblem problem{
      .m = op.n,
      .n = op.m,
      .k = op.k,
      .batch = op.batch,
      .transpose_first = b_flips ? CUBLAS_OP_T : CUBLAS_OP_N,
      .transpose_second = a_flips ? CUBLAS_OP_T : CUBLAS_OP_N,
      .mode = op.mode,
      .accumulation = op.accumulation,
      .first = operand(at[&Gemm::b], b_flips ? op.n : op.k, b_flips ? op.k : op.n, "B"),
      .second = operand(at[&Gemm::a], a_flips ? op.k : op.m, a_flips ? op.m : op.k, "A"),
      .d = operand(at[&Gemm::d], op.m, op.n, "D"),
      .alpha = op.alpha,
      .beta = op.beta,
      .descale_first = scale(&Gemm::descale_b),
      .descale_second = scale(&Gemm::descale_a)};
  problem.c = problem.d;
  if (op.beta != 0) {
    problem.c = operand(at[&Gemm::c], op.m, op.n, "C");
    problem.addend = problem.c.data == problem.d.data ? Addend::in_place : Addend::distinct;
    if (problem.addend == Addend::in_place && problem.c.leading != problem.d.leading) {
      throw base::Error("C and D begin at one address, but with different row strides");
    }
  }
  require_types(problem);
  return problem;
}

cublasComputeType_t compute_type(const GemmProblem& problem) {
  if (problem.d.type == DType::f64) return CUBLAS_COMPUTE_64F;
  if (problem.mode == program::ComputeMode::tf32) return CUBLAS_COMPUTE_32F_FAST_TF32;
  return CUBLAS_COMPUTE_32F;
}

cudaDataType_t scale_type(const GemmProblem& problem) {
  return problem.d.type == DType::f64 ? CUDA_R_64F : CUDA_R_32F;
}

GemmPlan::GemmPlan(const GemmProblem& problem)
    : operation(operation_of(problem)),
      first(layout_of(problem.first, problem.batch)),
      second(layout_of(problem.second, problem.batch)),
      c(layout_of(problem.c, problem.batch)),
      d(layout_of(problem.d, problem.batch)) {}

void require_algorithm(cublasLtHandle_t library, const GemmPlan& plan, const GemmChoice& choice) {
  const cublasLtMatmulAlgo_t algorithm = algorithm_of(choice.algorithm);
  cublasLtMatmulHeuristicResult_t result{};
  cublasStatus_t status =
      cublasLtMatmulAlgoCheck(library, plan.operation.get(), plan.first.get(), plan.second.get(),
                              plan.c.get(), plan.d.get(), &algorithm, &result);
  if (status == CUBLAS_STATUS_SUCCESS &&
      result.workspaceSize > static_cast<std::size_t>(choice.workspace)) {
    status = CUBLAS_STATUS_INVALID_VALUE;
  }
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw base::Error(
      fmt::format("cuBLASLt refuses the algorithm that was given for the GEMM {} ({}): run without "
                  "--gemm-algorithms",
                  choice.shape, cublasLtGetStatusName(status)));
}

void launch(const GemmCall& call, cudaStream_t stream) {
  const GemmProblem& p = call.problem;
  if (p.m == 0 || p.n == 0 || p.batch == 0) return;
  const GemmPlan& plan = *call.plan;
  if (p.is_fp8()) set_scales(plan.operation.get(), p);
  const auto alpha = static_cast<float>(p.alpha), beta = static_cast<float>(p.beta);
  const bool in_f64 = scale_type(p) == CUDA_R_64F;
  check(cublasLtMatmul(
      call.library, plan.operation.get(), in_f64 ? static_cast<const void*>(&p.alpha) : &alpha,
      p.first.data, plan.first.get(), p.second.data, plan.second.get(),
      in_f64 ? static_cast<const void*>(&p.beta) : &beta, p.c.data, plan.c.get(), p.d.data,
      plan.d.get(), &call.algorithm, call.workspace, call.workspace_bytes, stream));
}

}  // namespace isoscale::executor::cuda
