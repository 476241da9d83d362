// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// cuBLASLt, which refuses what the library refuses.
#include "tests/cuda/matmul.hpp"

struct cublasLtContext {};

namespace isoscale::standin {
namespace {

/// Returns what a handle of cuBLASLt points to.
template <class Held, class Opaque>
Held& in(Opaque* handle) {
  return *reinterpret_cast<Held*>(handle);
}
template <class Held, class Opaque>
cublasStatus_t make(Opaque** to, const Held& held) {
  *to = reinterpret_cast<Opaque*>(std::make_unique<Held>(held).release());
  ++machine().alive.descriptions;
  return CUBLAS_STATUS_SUCCESS;
}
template <class Held, class Opaque>
cublasStatus_t drop(Opaque* handle) {
  const std::unique_ptr<Held> owned{&in<Held>(handle)};
  --machine().alive.descriptions;
  return CUBLAS_STATUS_SUCCESS;
}
/// An attribute, and where its value is kept.
template <class Attribute>
struct Field {
  template <class Value>
  Field(Attribute one, Value& held) : attribute(one), to(&held), bytes(sizeof held) {}
  Attribute attribute;
  void* to;
  std::size_t bytes;
};
template <class Attribute>
cublasStatus_t set(Attribute attribute, const void* value, std::size_t bytes,
                   std::initializer_list<Field<Attribute>> fields) {
  for (const Field<Attribute>& one : fields) {
    if (one.attribute != attribute || one.bytes != bytes) continue;
    std::memcpy(one.to, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}

/// Returns the flags that cuBLASLt would give. Inputs of types that are not named here have none.
std::uint64_t arithmetic(const Matmul& call) {
  const bool is_tf32 = call.how.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  const bool is_f32 = !is_tf32 && call.a.type == CUDA_R_32F;
  return (is_f32 ? CUBLASLT_NUMERICAL_IMPL_FLAGS_FMA : CUBLASLT_NUMERICAL_IMPL_FLAGS_HMMA) |
         (is_tf32                      ? CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_TF32
          : is_f32                     ? CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_32F
          : call.a.type == CUDA_R_16BF ? CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16BF
                                       : 0) |
         CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_32F;
}

constexpr std::uint64_t magic = 0x15057A1E15057A1EULL;
constexpr int algorithms = 3;
constexpr std::size_t workspace_unit = 4096;

Matmul matmul_of(cublasLtMatmulDesc_t how, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                 cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d) {
  return {.how = in<Description>(how),
          .a = in<Layout>(a),
          .b = in<Layout>(b),
          .c = in<Layout>(c),
          .d = in<Layout>(d)};
}
bool fits(const cublasLtMatmulAlgo_t& algorithm, const Matmul& call) {
  return algorithm.data[0] == magic && algorithm.data[1] == problem_number(call);
}

}  // namespace
}  // namespace isoscale::standin

using namespace isoscale::standin;

extern "C" {

std::size_t cublasLtGetVersion() { return 130001; }
const char* cublasLtGetStatusName(cublasStatus_t status) {
  return status == CUBLAS_STATUS_INVALID_VALUE ? "CUBLAS_STATUS_INVALID_VALUE"
                                               : "CUBLAS_STATUS_NOT_SUPPORTED";
}
const char* cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_INVALID_VALUE ? "an unsupported value or parameter was passed"
                                               : "the functionality requested is not supported";
}
cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = std::make_unique<cublasLtContext>().release();
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  const std::unique_ptr<cublasLtContext> owned{handle};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* to, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  return make(to, Description{.compute = compute, .scale_type = scale});
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t one) {
  return drop<Description>(one);
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t to,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, std::size_t bytes) {
  auto& held = in<Description>(to);
  return set(attribute, value, bytes,
             {{CUBLASLT_MATMUL_DESC_TRANSA, held.first},
              {CUBLASLT_MATMUL_DESC_TRANSB, held.second},
              {CUBLASLT_MATMUL_DESC_FAST_ACCUM, held.fast},
              {CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, held.first_scale},
              {CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, held.second_scale}});
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* to, cudaDataType type,
                                          std::uint64_t rows, std::uint64_t columns,
                                          std::int64_t leading) {
  return make(to, Layout{.type = type, .rows = rows, .columns = columns, .leading = leading});
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t one) { return drop<Layout>(one); }
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t to,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void* value, std::size_t bytes) {
  auto& held = in<Layout>(to);
  return set(attribute, value, bytes,
             {{CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, held.batch},
              {CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, held.batch_stride}});
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* to) {
  return make(to, Preference{});
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t one) {
  return drop<Preference>(one);
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t to,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, std::size_t bytes) {
  auto& held = in<Preference>(to);
  return set(attribute, value, bytes,
             {{CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, held.workspace},
              {CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, held.reductions},
              {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, held.alignment[0]},
              {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, held.alignment[1]},
              {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, held.alignment[2]},
              {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, held.alignment[3]}});
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t /*handle*/, cublasLtMatmulDesc_t how,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t chosen, int requested,
                                              cublasLtMatmulHeuristicResult_t* results,
                                              int* count) {
  const auto& preference = in<Preference>(chosen);
  // No caller may ask for other reductions: programs are promised sums in f32.
  constexpr std::uint32_t in_f32 = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  if ((preference.reductions & ~in_f32) != 0) return CUBLAS_STATUS_NOT_SUPPORTED;
  const Matmul call = matmul_of(how, a, b, c, d);
  *count = 0;
  if (!is_consistent(call)) return CUBLAS_STATUS_INVALID_VALUE;
  if (!is_supported(call, preference.alignment)) return CUBLAS_STATUS_NOT_SUPPORTED;
  for (int i = 0; i < std::min(algorithms, requested); ++i) {
    cublasLtMatmulHeuristicResult_t& result = results[(*count)++] = {};
    const std::uint64_t data[] = {magic, problem_number(call), static_cast<std::uint64_t>(i),
                                  arithmetic(call)};
    std::copy(std::begin(data), std::end(data), result.algo.data);
    result.workspaceSize = workspace_unit * static_cast<std::size_t>(i);
    result.state = result.workspaceSize <= preference.workspace ? CUBLAS_STATUS_SUCCESS
                                                                : CUBLAS_STATUS_NOT_SUPPORTED;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t /*handle*/, cublasLtMatmulDesc_t how,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t* algorithm,
                                       cublasLtMatmulHeuristicResult_t* result) {
  *result = {};
  return fits(*algorithm, matmul_of(how, a, b, c, d)) ? CUBLAS_STATUS_SUCCESS
                                                      : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmulAlgoCapGetAttribute(const cublasLtMatmulAlgo_t* algorithm,
                                                 cublasLtMatmulAlgoCapAttributes_t attribute,
                                                 void* value, std::size_t bytes,
                                                 std::size_t* written) {
  if (attribute != CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS || algorithm->data[0] != magic) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  if (bytes != sizeof(std::uint64_t)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(value, &algorithm->data[3], bytes);
  *written = bytes;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t /*handle*/, cublasLtMatmulDesc_t how,
                              const void* alpha, const void* a_data, cublasLtMatrixLayout_t a,
                              const void* b_data, cublasLtMatrixLayout_t b, const void* beta,
                              const void* c_data, cublasLtMatrixLayout_t c, void* d_data,
                              cublasLtMatrixLayout_t d, const cublasLtMatmulAlgo_t* algorithm,
                              void* workspace, std::size_t workspace_bytes, cudaStream_t stream) {
  Matmul call = matmul_of(how, a, b, c, d);
  const bool in_f64 = call.how.scale_type == CUDA_R_64F;
  const auto number = [in_f64](const void* at) {
    return in_f64 ? *static_cast<const double*>(at)
                  : static_cast<double>(*static_cast<const float*>(at));
  };
  call.alpha = number(alpha);
  call.beta = number(beta);
  call.a_data = a_data;
  call.b_data = b_data;
  call.c_data = c_data;
  call.d_data = d_data;
  if (algorithm == nullptr || !fits(*algorithm, call) || algorithm->data[2] >= algorithms) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  call.algorithm = static_cast<int>(algorithm->data[2]);
  call.workspace = workspace;
  call.workspace_bytes = workspace_unit * static_cast<std::size_t>(call.algorithm);
  if (!is_consistent(call) || call.workspace_bytes > workspace_bytes) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (call.algorithm == machine().settings.broken_algorithm) return CUBLAS_STATUS_NOT_SUPPORTED;
  submit(stream, std::make_shared<MatmulWork>(call));
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
