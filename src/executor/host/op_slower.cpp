// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/host/op_slower.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "program/fill.hpp"
#include "program/partners.hpp"

namespace isoscale::executor::host {
Call OpSlower::slowed(Call call, const program::Op& op, std::uint32_t index, std::size_t lane) {
  const program::OpKind kind = program::kind_of(op.payload);
  if (program::communicates(kind)) {
    const double factor = link_factor(op);
    if (factor == 1) return call;
    return std::make_unique<SlowedCall>(
        SlowedCall{std::move(call), Slowing::communication(factor, least_of(op, lane))});
  }
  const double factor = kind == program::OpKind::gemm ? faults_.gemm_factor : 1;
  if (!program::computes(kind) || (factor == 1 && faults_.jitter == 0)) return call;
  const std::uint64_t origin = program::fill_origin(program::fill_origin(faults_.seed) + index);
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
