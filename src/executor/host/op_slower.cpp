// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/host/op_slower.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "program/fill_and_checksum.hpp"
#include "program/op.hpp"

namespace isoscale::executor::host {
namespace {

units::Nanoseconds time_of(const program::Gemm& op, double rate) {
  const double flop = 2.0 * op.m * op.n * op.k * op.batch;
  return units::to_nanoseconds(units::Seconds{flop / rate});
}

ClearCall clearing(std::byte* d, std::size_t element_size, const program::Gemm& op) {
  return {.d = d,
          .rows = op.m,
          .row_bytes = op.n * element_size,
          .batch = op.batch,
          .row_stride = op.d.row_stride * element_size,
          .batch_stride = op.d.batch_stride * element_size};
}

/// The call of a GEMM that multiplies nothing. What it would add to stays as it is, unless that is
/// somewhere else.
Call without_product(const Call& call, const program::Gemm& op) {
  if (const auto* const plain = std::get_if<GemmCall>(&call)) {
    if (op.beta != 0 && !plain->c_to_d) return NoCall{};
    return clearing(plain->d, plain->element == Element::f32 ? sizeof(float) : sizeof(double), op);
  }
  const auto& emulated = std::get<EmulatedGemmCall>(call);
  const StoredMatrix& d = emulated.operands.back();
  const StoredMatrix& c = emulated.operands.at(emulated.operands.size() - 2);
  if (op.beta != 0 && c.data == d.data) return NoCall{};
  return clearing(d.data, program::element_size(d.type), op);
}

}  // namespace

void run(const ClearCall& call) {
  const bool is_dense = call.row_stride == call.row_bytes;
  const std::size_t rows = is_dense ? std::min<std::size_t>(call.rows, 1) : call.rows;
  const std::size_t bytes = is_dense ? call.rows * call.row_bytes : call.row_bytes;
  for (std::size_t b = 0; b < call.batch; ++b) {
    for (std::size_t row = 0; row < rows; ++row) {
      std::memset(call.d + b * call.batch_stride + row * call.row_stride, 0, bytes);
    }
  }
}

Call OpSlower::slowed(Call call, const program::Op& op, std::uint32_t index, std::size_t lane) {
  const program::OpKind kind = program::kind_of(op.payload);
  if (program::communicates(kind)) {
    const double factor = link_factor(op);
    if (factor == 1) return call;
    return std::make_unique<SlowedCall>(
        SlowedCall{std::move(call), Slowing::communication(factor, least_of(op, lane))});
  }
  const double factor = kind == program::OpKind::gemm ? faults_.gemm_factor : 1;
  const std::uint64_t origin = program::fill_origin(program::fill_origin(faults_.seed) + index);
  if (const auto* const gemm = std::get_if<program::Gemm>(&op.payload);
      gemm != nullptr && faults_.gemm_rate != 0) {
    return std::make_unique<SlowedCall>(SlowedCall{
        without_product(call, *gemm),
        Slowing::delay(time_of(*gemm, faults_.gemm_rate), factor, faults_.jitter, origin)});
  }
  if (!program::computes(kind) || (factor == 1 && faults_.jitter == 0)) return call;
  return std::make_unique<SlowedCall>(
      SlowedCall{std::move(call), Slowing::compute(factor, faults_.jitter, origin)});
}

/// The largest of the links that the op uses; 1 when it uses none that is slow.
double OpSlower::link_factor(const program::Op& op) const {
  double factor = 1;
  const std::vector<int> others = program::partners(op, mesh_, rank_);
  for (const program::SlowLink& link : faults_.slow_links) {
    if (rank_ != link.low && rank_ != link.high) continue;
    const int other = rank_ == link.low ? link.high : link.low;
    if (std::ranges::find(others, other) != others.end()) factor = std::max(factor, link.factor);
  }
  return factor;
}

/// Ops of one lane that do the same with the same partners share a least time: one of them that
/// found its partners waiting tells what all take.
LeastTime& OpSlower::least_of(const program::Op& op, std::size_t lane) {
  std::vector<std::uint64_t> key{lane, static_cast<std::uint64_t>(program::kind_of(op.payload))};
  if (const auto* const collective = std::get_if<program::Collective>(&op.payload)) {
    key.insert(key.end(),
               {collective->axes.bits(), collective->send.count, collective->receive.count});
  } else if (const auto* const exchange = std::get_if<program::Exchange>(&op.payload)) {
    for (const program::Transfer& transfer : exchange->transfers) {
      key.insert(key.end(), {static_cast<std::uint64_t>(transfer.direction),
                             static_cast<std::uint64_t>(transfer.axis),
                             static_cast<std::uint64_t>(transfer.offset), transfer.slice.count});
    }
  }
  const auto [at, is_new] = alike_.try_emplace(std::move(key), least_times_.size());
  if (is_new) least_times_.push_back(std::make_unique<LeastTime>());
  return *least_times_[at->second];
}

}  // namespace isoscale::executor::host
