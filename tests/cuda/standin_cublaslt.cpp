// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// cuBLASLt, which refuses what the library refuses. Products are in f64 and round D once.
#include <cblas.h>
#include <cublasLt.h>

#include <algorithm>

#include "tests/cuda/standin.hpp"
#include "tests/executor/sketch.hpp"
#include "tests/support/gpu_rounding.hpp"

struct cublasLtContext {};

namespace isoscale::standin {
namespace {

using executor::is_fp8;
using program::DType;

struct Description {
  cublasComputeType_t compute{};
  cudaDataType_t scale_type{};
  cublasOperation_t first = CUBLAS_OP_N, second = CUBLAS_OP_N;
  std::int8_t fast = 0;
  const float *first_scale = nullptr, *second_scale = nullptr;
};
struct Layout {
  cudaDataType_t type{};
  std::uint64_t rows = 0, columns = 0;
  std::int64_t leading = 0, batch_stride = 0;
  std::int32_t batch = 1;

  /// The place of an element.
  [[nodiscard]] std::uint64_t at(std::int32_t matrix, std::uint64_t row,
                                 std::uint64_t column) const {
    return static_cast<std::uint64_t>(matrix * batch_stride) +
           column * static_cast<std::uint64_t>(leading) + row;
  }
};
struct Preference {
  std::uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK;  // all: also sums in a narrow type
  std::uint64_t workspace = 0;
  std::uint32_t alignment[4] = {256, 256, 256, 256};
};

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

std::optional<DType> type_of(cudaDataType_t type) {
  constexpr std::array<std::pair<cudaDataType_t, DType>, 6> types{{{CUDA_R_64F, DType::f64},
                                                                   {CUDA_R_32F, DType::f32},
                                                                   {CUDA_R_16F, DType::f16},
                                                                   {CUDA_R_16BF, DType::bf16},
                                                                   {CUDA_R_8F_E4M3, DType::e4m3},
                                                                   {CUDA_R_8F_E5M2, DType::e5m2}}};
  const auto* const found = std::ranges::find(types, type, &decltype(types)::value_type::first);
  return found == types.end() ? std::nullopt : std::optional{found->second};
}

/// Returns one operand of batch `at` as f64, column-major and dense: m x k.
std::vector<double> operand(const Layout& layout, const void* data, cublasOperation_t operation,
                            std::int32_t at, bool tf32) {
  std::vector<double> values(layout.rows * layout.columns);
  const DType type = *type_of(layout.type);
  for (std::uint64_t column = 0; column < layout.columns; ++column) {
    for (std::uint64_t row = 0; row < layout.rows; ++row) {
      double value = executor::element(type, data, layout.at(at, row, column));
      if (tf32) value = double{program::round_to_tf32(static_cast<float>(value))};
      const bool flips = operation != CUBLAS_OP_N;
      values[flips ? row * layout.columns + column : column * layout.rows + row] = value;
    }
  }
  return values;
}

void require_operand(const Layout& layout, const void* data) {
  if (layout.rows * layout.columns == 0) return;
  const std::uint64_t last = layout.at(layout.batch - 1, layout.rows - 1, layout.columns - 1);
  require_reachable(data, (last + 1) * program::element_size(*type_of(layout.type)));
}

void multiply(const Matmul& call, std::int32_t at, double scale) {
  const bool tf32 = call.how.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  const std::vector<double> a = operand(call.a, call.a_data, call.how.first, at, tf32);
  const std::vector<double> b = operand(call.b, call.b_data, call.how.second, at, tf32);
  const std::uint64_t m = call.d.rows, n = call.d.columns, k = call.depth();
  std::vector<double> sums(m * n);
  if (!sums.empty() && k > 0) {
    const auto rows = static_cast<int>(m), depth = static_cast<int>(k);
    cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, rows, static_cast<int>(n), depth, 1,
                a.data(), rows, b.data(), depth, 0, sums.data(), rows);
  }
  const DType type = *type_of(call.d.type);
  for (std::uint64_t column = 0; column < n; ++column) {
    for (std::uint64_t row = 0; row < m; ++row) {
      double value = scale * sums[column * m + row];
      if (call.beta != 0) {
        value += call.beta * executor::element(type, call.c_data, call.c.at(at, row, column));
      }
      executor::set_element(type, call.d_data, call.d.at(at, row, column), value);
    }
  }
}

/// Returns whether the operands' sizes fit each other.
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
  const auto is_odd = [](std::uint64_t number) { return number % 16 != 0; };
  for (const Layout* one : {&call.a, &call.b, &call.d}) {
    if (is_odd(one->rows) || is_odd(one->columns)) return false;
    if (is_odd(static_cast<std::uint64_t>(one->leading))) return false;
  }
  return std::none_of(alignment, alignment + 4, is_odd);
}

/// Hashes everything about the problem that an algorithm was offered for.
std::uint64_t problem_number(const Matmul& call) {
  std::uint64_t number = 14695981039346656037ULL;
  const auto mix = [&](auto value) {
    number = (number ^ static_cast<std::uint64_t>(value)) * 1099511628211ULL;
  };
  for (const Layout* layout : {&call.a, &call.b, &call.d}) {
    mix(layout->type);
    mix(layout->rows);
    mix(layout->columns);
    mix(layout->leading);
    mix(layout->batch);
  }
  mix(static_cast<int>(call.how.first) * 4 + static_cast<int>(call.how.second));
  mix(call.how.fast);
  // Algorithms are offered for products with scales, or for products without them.
  mix(call.how.first_scale != nullptr);
  mix(call.how.second_scale != nullptr);
  return number;
}

class MatmulWork final : public Work {
 public:
  explicit MatmulWork(const Matmul& call) : call_(call) {}
  bool run() override {
    const Settings& settings = machine().settings;
    if (machine().matmuls == settings.endless_matmul) return false;
    if (machine().matmuls == settings.faulty_matmul) throw Fault{};
    ++machine().matmuls;
    require_operand(call_.a, call_.a_data);
    require_operand(call_.b, call_.b_data);
    require_operand(call_.d, call_.d_data);
    if (call_.beta != 0) require_operand(call_.c, call_.c_data);
    require_reachable(call_.workspace, call_.workspace_bytes);
    if (call_.workspace_bytes > 0) std::memset(call_.workspace, 0x5A, call_.workspace_bytes);
    double scale = call_.alpha;
    for (const float* one : {call_.how.first_scale, call_.how.second_scale}) {
      if (one == nullptr) continue;
      require_reachable(one, sizeof *one);
      scale *= double{*one};
    }
    for (std::int32_t at = 0; at < call_.d.batch; ++at) multiply(call_, at, scale);
    machine().added_fast += call_.how.fast != 0 ? 1 : 0;
    machine().scaled_by_zero += scale == 0 ? 1 : 0;
    // One algorithm is the fastest by far, however busy the machine is.
    constexpr std::int64_t fast = 25'000'000, slow = 1'000'000'000;
    const std::int64_t cost = settings.matmul_cost
                                  ? settings.matmul_cost(call_.algorithm, machine().worked)
                                  : (call_.algorithm == settings.fastest_algorithm ? fast : slow);
    machine().worked += cost;
    machine().skew += cost;
    return true;
  }
  [[nodiscard]] WorkPointer again() const override { return std::make_shared<MatmulWork>(call_); }

 private:
  Matmul call_;
};

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
const char* cublasLtGetStatusName(cublasStatus_t /*status*/) { return "CUBLAS_STATUS"; }
const char* cublasLtGetStatusString(cublasStatus_t /*status*/) { return "said by the stand-in"; }
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
  const Matmul call = matmul_of(how, a, b, c, d);
  // No caller may ask for sums in a type narrower than f32, which programs are promised.
  constexpr std::uint32_t in_f32 = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  const bool is_narrow = call.d.type != CUDA_R_32F && call.d.type != CUDA_R_64F;
  if (is_narrow && (preference.reductions & ~in_f32) != 0) return CUBLAS_STATUS_NOT_SUPPORTED;
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
