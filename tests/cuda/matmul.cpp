// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "tests/cuda/matmul.hpp"

#include <cblas.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "tests/cuda/elements.hpp"
#include "tests/cuda/standin.hpp"

namespace isoscale::standin {
namespace {

using program::DType;

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
/// Returns one operand of batch `at` as f64, column-major and dense: m x k.
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
  const std::uint64_t m = call.d.rows, n = call.d.columns, k = call.depth();
  std::vector<double> sums(m * n);
  if (!sums.empty() && k > 0) {
    const auto rows = static_cast<int>(m), depth = static_cast<int>(k);
    cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, rows, static_cast<int>(n), depth, 1,
                a.data(), rows, b.data(), depth, 0, sums.data(), rows);
  }
  with_floating(*type_of(call.d.type), [&](auto element) {
    using Element = decltype(element);
    for (std::uint64_t column = 0; column < n; ++column) {
      const auto first = [&](const Layout& layout) {
        return static_cast<std::uint64_t>(at * layout.batch_stride) +
               column * static_cast<std::uint64_t>(layout.leading);
      };
      for (std::uint64_t row = 0; row < m; ++row) {
        double value = scale * sums[column * m + row];
        if (call.beta != 0) {
          value += call.beta * static_cast<double>(Element::load(call.c_data, first(call.c) + row));
        }
        store_rounded<Element>(call.d_data, first(call.d) + row, value);
      }
    }
    return true;
  });
}

}  // namespace

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

/// Hashes everything about the problem that an algorithm was offered for.
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
  mix(static_cast<std::uint64_t>(call.how.fast));
  return number;
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
  machine().added_fast += call.how.fast != 0 ? 1 : 0;
  machine().scaled_by_zero += scale == 0 ? 1 : 0;
  // One algorithm is the fastest by far, however busy the machine is.
  constexpr std::int64_t fast = 25'000'000, slow = 1'000'000'000;
  const Settings& settings = machine().settings;
  const std::int64_t cost = settings.matmul_cost
                                ? settings.matmul_cost(call.algorithm, machine().worked)
                                : (call.algorithm == settings.fastest_algorithm ? fast : slow);
  machine().worked += cost;
  machine().skew += cost;
}

}  // namespace isoscale::standin
