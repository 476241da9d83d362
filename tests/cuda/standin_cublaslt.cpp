// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// cuBLASLt: computes in f64 and rounds D once; refuses what the library refuses.
#include <cublasLt.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "tests/cuda/elements.hpp"
#include "tests/cuda/standin.hpp"

struct cublasLtContext {};

namespace isoscale::standin {
namespace {

using program::DType;

struct Description {
  cublasComputeType_t compute{};
  cudaDataType_t scale_type{};
  cublasOperation_t first = CUBLAS_OP_N, second = CUBLAS_OP_N;
  const float *first_scale = nullptr, *second_scale = nullptr;
};
struct Layout {
  cudaDataType_t type{};
  std::uint64_t rows = 0, columns = 0;
  std::int64_t leading = 0, batch_stride = 0;
  std::int32_t batch = 1;
};
struct Preference {
  std::uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK;  // all: also sums in a narrow type
  std::uint64_t workspace = 0;
  std::uint32_t alignment[4] = {256, 256, 256, 256};
};

/// What a handle of cuBLASLt points to.
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
template <class Value>
cublasStatus_t set(Value& to, const void* from, std::size_t bytes) {
  if (bytes != sizeof to) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&to, from, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

std::optional<DType> type_of(cudaDataType_t type) {
  switch (type) {
    case CUDA_R_64F:
      return DType::f64;
    case CUDA_R_32F:
      return DType::f32;
    case CUDA_R_16F:
      return DType::f16;
    case CUDA_R_16BF:
      return DType::bf16;
    case CUDA_R_8F_E4M3:
      return DType::e4m3;
    case CUDA_R_8F_E5M2:
      return DType::e5m2;
    default:
      return std::nullopt;
  }
}

/// One call, all looked up.
struct Matmul {
  Description how;
  Layout a, b, c, d;
  double alpha = 1, beta = 0;
  const void *a_data = nullptr, *b_data = nullptr, *c_data = nullptr;
  void *d_data = nullptr, *workspace = nullptr;
  std::size_t workspace_bytes = 0;
  int algorithm = 0;

  [[nodiscard]] std::uint64_t depth() const {
    return how.first == CUBLAS_OP_N ? a.columns : a.rows;
  }
};

bool is_consistent(const Matmul& call) {
  const auto side = [](const Layout& layout, cublasOperation_t operation, bool down) {
    return (operation == CUBLAS_OP_N) == down ? layout.rows : layout.columns;
  };
  bool ok = side(call.a, call.how.first, true) == call.d.rows &&
            side(call.b, call.how.second, false) == call.d.columns &&
            side(call.b, call.how.second, true) == call.depth() && call.c.rows == call.d.rows &&
            call.c.columns == call.d.columns;
  for (const Layout* layout : {&call.a, &call.b, &call.c, &call.d}) {
    ok = ok && type_of(layout->type) && layout->batch == call.d.batch &&
         layout->leading >= static_cast<std::int64_t>(std::max<std::uint64_t>(layout->rows, 1));
  }
  return ok;
}

/// The library's table of types, and what fp8 demands.
bool is_supported(const Matmul& call, const std::uint32_t* alignment) {
  const DType a = *type_of(call.a.type), b = *type_of(call.b.type), d = *type_of(call.d.type);
  const bool in_f64 = call.how.compute == CUBLAS_COMPUTE_64F;
  if (in_f64 != (d == DType::f64) || in_f64 != (call.how.scale_type == CUDA_R_64F)) return false;
  if (call.c.type != call.d.type) return false;
  if (!is_fp8(a) && !is_fp8(b)) return a == b && (d == a || d == DType::f32);
  if (!is_fp8(a) || !is_fp8(b) || (a == DType::e5m2 && b == DType::e5m2) || is_fp8(d)) return false;
  if (call.how.first != CUBLAS_OP_T || call.how.second != CUBLAS_OP_N) return false;
  constexpr std::uint64_t unit = 16;
  for (const Layout* layout : {&call.a, &call.b, &call.d}) {
    if (layout->rows % unit != 0 || layout->columns % unit != 0 ||
        static_cast<std::uint64_t>(layout->leading) % unit != 0) {
      return false;
    }
  }
  return std::all_of(alignment, alignment + 4, [](std::uint32_t one) { return one % 16 == 0; });
}

constexpr std::uint64_t magic = 0x15057A1E15057A1EULL;
constexpr int algorithms = 3;
constexpr std::size_t workspace_unit = 4096;

/// Of everything that an algorithm was offered for.
std::uint64_t problem_number(const Matmul& call) {
  std::uint64_t number = 14695981039346656037ULL;
  const auto mix = [&](std::uint64_t value) { number = (number ^ value) * 1099511628211ULL; };
  for (const Layout* layout : {&call.a, &call.b, &call.d}) {
    mix(static_cast<std::uint64_t>(layout->type));
    mix(layout->rows);
    mix(layout->columns);
    mix(static_cast<std::uint64_t>(layout->leading));
    mix(static_cast<std::uint64_t>(layout->batch));
  }
  mix(static_cast<std::uint64_t>(call.how.first) * 4 + static_cast<std::uint64_t>(call.how.second));
  return number;
}

/// As f64, column-major and dense: m x k of batch `at`.
std::vector<double> operand(const Layout& layout, const void* data, cublasOperation_t operation,
                            std::int32_t at, bool tf32) {
  std::vector<double> values(layout.rows * layout.columns);
  with_floating(*type_of(layout.type), [&](auto element) {
    for (std::uint64_t column = 0; column < layout.columns; ++column) {
      for (std::uint64_t row = 0; row < layout.rows; ++row) {
        const auto from = static_cast<std::uint64_t>(at * layout.batch_stride) +
                          column * static_cast<std::uint64_t>(layout.leading) + row;
        auto value = static_cast<double>(decltype(element)::load(data, from));
        if (tf32) value = program::round_to_tf32(static_cast<float>(value));
        const bool flips = operation != CUBLAS_OP_N;
        values[flips ? row * layout.columns + column : column * layout.rows + row] = value;
      }
    }
    return true;
  });
  return values;
}

void require_operand(const Layout& layout, const void* data) {
  if (layout.rows * layout.columns == 0) return;
  const auto elements = static_cast<std::uint64_t>((layout.batch - 1) * layout.batch_stride) +
                        (layout.columns - 1) * static_cast<std::uint64_t>(layout.leading) +
                        layout.rows;
  require_reachable(data, elements * program::element_size(*type_of(layout.type)));
}

void run_one(const Matmul& call, std::int32_t at, double scale) {
  const bool tf32 = call.how.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  const std::vector<double> a = operand(call.a, call.a_data, call.how.first, at, tf32);
  const std::vector<double> b = operand(call.b, call.b_data, call.how.second, at, tf32);
  const std::uint64_t m = call.d.rows, k = call.depth();
  std::vector<double> sum(m);
  with_floating(*type_of(call.d.type), [&](auto element) {
    using Element = decltype(element);
    for (std::uint64_t column = 0; column < call.d.columns; ++column) {
      std::fill(sum.begin(), sum.end(), 0.0);
      for (std::uint64_t l = 0; l < k; ++l) {
        const double factor = b[column * k + l];
        for (std::uint64_t row = 0; row < m; ++row) sum[row] += a[l * m + row] * factor;
      }
      const auto first = [&](const Layout& layout) {
        return static_cast<std::uint64_t>(at * layout.batch_stride) +
               column * static_cast<std::uint64_t>(layout.leading);
      };
      for (std::uint64_t row = 0; row < m; ++row) {
        double value = scale * sum[row];
        if (call.beta != 0) {
          value += call.beta * static_cast<double>(Element::load(call.c_data, first(call.c) + row));
        }
        store_rounded<Element>(call.d_data, first(call.d) + row, value);
      }
    }
    return true;
  });
}

void run(const Matmul& call) {
  ++machine().matmuls;
  require_operand(call.a, call.a_data);
  require_operand(call.b, call.b_data);
  require_operand(call.d, call.d_data);
  if (call.beta != 0) require_operand(call.c, call.c_data);
  require_reachable(call.workspace, call.workspace_bytes);
  double scale = call.alpha;
  for (const float* one : {call.how.first_scale, call.how.second_scale}) {
    if (one == nullptr) continue;
    require_reachable(one, sizeof *one);
    scale *= static_cast<double>(*one);
  }
  if (call.workspace_bytes > 0) std::memset(call.workspace, 0x5A, call.workspace_bytes);
  for (std::int32_t at = 0; at < call.d.batch; ++at) run_one(call, at, scale);
  // One algorithm is the fastest by far, however busy the machine is.
  constexpr std::int64_t millisecond = 1'000'000, second = 1000 * millisecond;
  const bool is_fast = call.algorithm == machine().settings.fastest_algorithm;
  machine().skew += is_fast ? millisecond : second;
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
  auto& description = in<Description>(to);
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return set(description.first, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return set(description.second, value, bytes);
    case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER:
      return set(description.first_scale, value, bytes);
    case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER:
      return set(description.second_scale, value, bytes);
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
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
  auto& layout = in<Layout>(to);
  switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
      return set(layout.batch, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
      return set(layout.batch_stride, value, bytes);
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
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
  auto& preference = in<Preference>(to);
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return set(preference.workspace, value, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      return set(preference.reductions, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
      return set(preference.alignment[0], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
      return set(preference.alignment[1], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
      return set(preference.alignment[2], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return set(preference.alignment[3], value, bytes);
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t /*handle*/, cublasLtMatmulDesc_t how,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t chosen, int requested,
                                              cublasLtMatmulHeuristicResult_t* results,
                                              int* count) {
  const auto& preference = in<Preference>(chosen);
  // What no caller may ask for: programs are promised sums in f32.
  constexpr std::uint32_t in_f32 = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  if ((preference.reductions & ~in_f32) != 0) return CUBLAS_STATUS_NOT_SUPPORTED;
  const Matmul call{.how = in<Description>(how),
                    .a = in<Layout>(a),
                    .b = in<Layout>(b),
                    .c = in<Layout>(c),
                    .d = in<Layout>(d)};
  *count = 0;
  if (!is_consistent(call)) return CUBLAS_STATUS_INVALID_VALUE;
  if (!is_supported(call, preference.alignment)) return CUBLAS_STATUS_NOT_SUPPORTED;
  for (int i = 0; i < std::min(algorithms, requested); ++i) {
    cublasLtMatmulHeuristicResult_t& result = results[(*count)++];
    result = {};
    result.algo.data[0] = magic;
    result.algo.data[1] = problem_number(call);
    result.algo.data[2] = static_cast<std::uint64_t>(i);
    result.workspaceSize = workspace_unit * static_cast<std::size_t>(i);
    result.state = result.workspaceSize <= preference.workspace ? CUBLAS_STATUS_SUCCESS
                                                                : CUBLAS_STATUS_NOT_SUPPORTED;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t /*handle*/, cublasLtMatmulDesc_t how,
                              const void* alpha, const void* a_data, cublasLtMatrixLayout_t a,
                              const void* b_data, cublasLtMatrixLayout_t b, const void* beta,
                              const void* c_data, cublasLtMatrixLayout_t c, void* d_data,
                              cublasLtMatrixLayout_t d, const cublasLtMatmulAlgo_t* algorithm,
                              void* workspace, std::size_t workspace_bytes, cudaStream_t stream) {
  Matmul call{.how = in<Description>(how),
              .a = in<Layout>(a),
              .b = in<Layout>(b),
              .c = in<Layout>(c),
              .d = in<Layout>(d)};
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
  if (algorithm == nullptr || algorithm->data[0] != magic ||
      algorithm->data[1] != problem_number(call) || algorithm->data[2] >= algorithms) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  call.algorithm = static_cast<int>(algorithm->data[2]);
  call.workspace = workspace;
  call.workspace_bytes = workspace_unit * static_cast<std::size_t>(call.algorithm);
  if (!is_consistent(call) || call.workspace_bytes > workspace_bytes) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (call.algorithm == machine().settings.broken_algorithm) return CUBLAS_STATUS_NOT_SUPPORTED;
  submit(stream, [call] { run(call); });
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
