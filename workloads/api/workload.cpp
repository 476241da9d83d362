// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "workloads/api/workload.hpp"

#include <array>

namespace isoscale::workloads {
namespace {

using program::DType;

/// The L2 size assumed for a GPU whose L2 size is unknown; no GPU so far has a larger one (B200:
/// 126 MB).
constexpr units::Bytes largest_cache{std::uint64_t{128} << 20U};

constexpr std::array every_type{DType::f64,  DType::f32, DType::f16, DType::bf16, DType::e4m3,
                                DType::e5m2, DType::i64, DType::i32, DType::i8,   DType::u8};

}  // namespace

std::string_view name(Scaling scaling) { return scaling == Scaling::strong ? "strong" : "weak"; }

PlayBounds play_bounds(const Machine& machine) {
  if (machine.device == "host") return {};
  const units::Bytes cache = machine.gpu_cache.value() > 0 ? machine.gpu_cache : largest_cache;
  return {// Events of a GPU have a resolution of 0.5 us.
          .least_time = units::Seconds{2e-3},
          .least_calls = 20,
          // The host takes at most about this long to launch a call of NCCL or cuBLASLt.
          .short_call = units::Seconds{10e-6},
          .most_short_calls = 64,
          .cold = units::Bytes{2 * cache.value()}};
}

std::vector<DType> element_types(const Request& request, std::string_view list) {
  if (list.empty()) return {stored_type(request.precision)};
  std::vector<DType> types;
  for (const std::string& text : parse_list("types", list)) {
    for (const DType type : every_type) {
      if (program::name(type) == text) types.push_back(type);
    }
  }
  return types;
}

}  // namespace isoscale::workloads
